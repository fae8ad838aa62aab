from __future__ import annotations

import pytest
import torch

from shotproof.models.objective import ClassBatch
from shotproof.models.objectives.neg_cosine import NegCosine
from shotproof.models.prototypes import class_means
from tests.drawn_tasks import formula
from tests.models.objectives.given_vectors import as_items, network_on


@pytest.mark.parametrize(("margin", "expected"), [(0.0, 1.176665), (-0.02, 1.049820), (-0.3, 0.164032)])
def test_the_loss_of_the_fixture_with_class_means_as_weights(margin: float, expected: float) -> None:
    task, labels = formula()
    objective = NegCosine(margin=margin)
    net = network_on(objective, 8, 1, 1, classes=3)
    with torch.no_grad():
        net.head.weight.copy_(class_means(task.support, task.labels, 3)[0])
    loss = objective.loss(net, ClassBatch(as_items(task.query[0]), labels[0]), torch.Generator())
    assert loss.item() == pytest.approx(expected, abs=2e-5)
