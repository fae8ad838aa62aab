"""What objectives on tasks have in common, beyond what every objective promises."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from shotproof.functional import local_maps
from shotproof.models.objective import Objective, objectives
from tests.small_networks import WAY, network_of, spelled, task_batch

ON_FEATURES = [
    name
    for name in objectives.names()
    if objectives.get(name).trains_on == "tasks" and objectives.get(name).needs != "items"
]


def scores_of(objective: Objective[Any], alike: bool = False) -> torch.Tensor:
    net, tasks = network_of(objective).eval(), task_batch()
    with torch.no_grad():
        support, query = (net(side, objective.needs) for side in (tasks.support, tasks.query))
        if alike:
            support, query = (side[:1, :1].expand_as(side) for side in (support, query))
        return objective.scores(net, support, tasks.support_labels, query, WAY)


@pytest.mark.parametrize("name", [name for name in ON_FEATURES if objectives.get(name).symmetric])
def test_items_that_are_all_alike_leave_no_class_ahead(name: str) -> None:
    scores = scores_of(objectives.make(spelled(name)), alike=True)
    torch.testing.assert_close(scores, scores[..., :1].expand_as(scores), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["can", "dn4", "frn", "gnn", "relationnet", "renet"])
def test_queries_in_chunks_get_the_scores_of_all_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = objectives.make(spelled(name))
    whole = scores_of(objective)
    monkeypatch.setattr(local_maps, "CHUNK_SIZE", 1)
    torch.testing.assert_close(scores_of(objective), whole, rtol=1e-4, atol=1e-4)
