"""BOIL at test time: a gradient step of the backbone from the learned start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.adaptation.adaptation import DecodedTasks, one_class_at_a_time
from shotproof.methods.adaptation.learned_start import LearnedStart
from shotproof.methods.adaptation.maml import BATCH_NORM
from shotproof.models.inner_loop import adapted, linear_head
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objectives.boil import Boil

PROTOCOL = "one pass over all queries, or as FewSTAB's code: one pass per class, batch norm by each batch"


@dataclass(frozen=True)
class BoilAdaptation(LearnedStart):
    """Score: the logits after gradient steps of the backbone on the cross-entropy of the support; the head stays.

    By the statistics of each batch, as in the paper, queries have a say in each other's scores. `protocol` published
    does as the code of FewSTAB: the queries of each class by themselves, normalized by their own statistics, which
    takes out what the class has of its own; and the head takes the steps too.
    """

    about = "a model of objective boil, adapted to each task by a gradient step of the backbone"
    paper = "Oh, Yoo, Kim and Yun, BOIL: Towards Representation Change for Few-shot Learning, 2021"
    example = "boil(protocol='published')"
    family = "transductive"
    objective = "boil"
    steps_option = "steps"

    batch_norm: Literal["batch", "running"] | None = option(None, BATCH_NORM)
    protocol: Literal["one-pass", "published"] = option("one-pass", PROTOCOL)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Those of the objective, or those of the published protocol."""
        if self.protocol == "published":
            return one_class_at_a_time(tasks, lambda one: self._published(model, net, one))
        objective = self.changed(model, batch_norm=self.batch_norm)
        return objective.scores(net, tasks.support, tasks.labels, tasks.query, tasks.way)

    def _published(self, model: Model, net: FewShotNetwork, task: DecodedTasks) -> Callable[[Tensor], Tensor]:
        objective = self.changed(model)
        assert isinstance(objective, Boil)
        linear_head(net, task.way)
        return adapted(
            net,
            task.support,
            task.labels,
            adapts=lambda name: True,
            steps=objective.steps,
            rate=objective.rate,
            batch_norm="batch",
        )
