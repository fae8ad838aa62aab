"""ANIL at test time: gradient steps of the head from the learned start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.adaptation.adaptation import DecodedTasks, one_class_at_a_time
from shotproof.methods.adaptation.boil import PROTOCOL
from shotproof.methods.adaptation.learned_start import LearnedStart
from shotproof.models.inner_loop import normalized_by
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork


@dataclass(frozen=True)
class AnilAdaptation(LearnedStart):
    """Score: the logits after gradient steps of the head on the cross-entropy of the support.

    `protocol` published does as the code of FewSTAB: support and the queries of one class at a time go through the
    network as one batch, normalized by its own statistics.
    """

    about = "a model of objective anil, adapted to each task by gradient steps of the head"
    paper = "Raghu, Raghu, Bengio and Vinyals, Rapid Learning or Feature Reuse? 2020"
    example = "anil(protocol='published')"
    objective = "anil"

    protocol: Literal["one-pass", "published"] = option("one-pass", PROTOCOL)

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """As published, queries have a say in each other's scores."""
        return "transductive" if self.protocol == "published" else "inductive"

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Those of the objective, under running statistics or under those of one batch per class."""
        if self.protocol == "published":
            return one_class_at_a_time(tasks, lambda one: self._published(model, net, one))
        seen = net(tasks.support), tasks.labels, net(tasks.query)
        return self.changed(model).scores(net, *seen, tasks.way)

    def _published(self, model: Model, net: FewShotNetwork, task: DecodedTasks) -> Callable[[Tensor], Tensor]:
        objective, count = self.changed(model), task.support.shape[1]

        def scores(query: Tensor) -> Tensor:
            with normalized_by(net, "batch"):
                both = net(torch.cat([task.support, query], 1))
            return objective.scores(net, both[:, :count], task.labels, both[:, count:], task.way)

        return scores
