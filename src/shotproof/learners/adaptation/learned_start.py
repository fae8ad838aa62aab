"""MAML, ANIL and BOIL at test time: gradient steps from the start that an objective has learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shotproof.core.errors import Mismatch
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks, one_class_at_a_time
from shotproof.models.inner_loop import adapted, linear_head, normalized_by
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective
from shotproof.models.objectives.gradient_steps import Boil

if TYPE_CHECKING:
    from torch import Tensor

BATCH_NORM = "statistics of each batch, or the running ones; None: as the model was trained"
PROTOCOL = "one pass over all queries, or as FewSTAB's code: one pass per class, batch norm by each batch"


@dataclass(frozen=True)
class LearnedStart(Adaptation):
    """Gradient steps from the weights that an objective of the same name has learned to start from.

    objective: whose models it takes
    steps_option: what the objective calls its steps at test time
    """

    objective: ClassVar[str]
    steps_option: ClassVar[str] = "test_steps"
    rates = (0.01, 0.03, 0.1, 0.3)

    steps: int | None = option(None, "gradient steps on the support; None: as the model was trained for", least=0)
    rate: float | None = option(None, "learning rate; None: as the model was trained with", above=0)

    def require_model(self, model: Model) -> None:
        """Refuse models of other objectives."""
        if model.objective.name != self.objective:
            raise Mismatch(
                f"method '{self.spelling}' starts from what objective '{self.objective}' learns, the model is of "
                f"'{model.objective}'"
            )

    def changed(self, model: Model, **options: Any) -> Objective[Any]:
        """The model's objective with the steps and the rate that are asked for."""
        given = {self.steps_option: self.steps, "rate": self.rate, **options}
        objective: Any = model.objective
        changed: Objective[Any] = replace(
            objective, **{key: value for key, value in given.items() if value is not None}
        )
        return changed


@dataclass(frozen=True)
class MamlAdaptation(LearnedStart):
    """Score: the logits after gradient steps of backbone and head on the cross-entropy of the support.

    By the statistics of each batch, as in the paper, queries have a say in each other's scores.
    """

    about = "a model of objective maml, adapted to each task by gradient steps of all weights"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(steps=20)"
    family = "transductive"
    objective = "maml"

    batch_norm: Literal["batch", "running"] | None = option(None, BATCH_NORM)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Those of the objective."""
        objective = self.changed(model, batch_norm=self.batch_norm)
        return objective.scores(net, tasks.support, tasks.labels, tasks.query, tasks.way)


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
