"""MAML, ANIL and BOIL at test time: gradient steps from the initialization that an objective has learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shotproof.core.errors import Mismatch
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks, score_class_by_class
from shotproof.models.inner_loop import adapted, linear_head, normalized_by
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective
from shotproof.models.objectives.gradient_steps import Boil

if TYPE_CHECKING:
    from torch import Tensor

BATCH_NORM = "statistics of each batch, or running statistics; None: as the model was trained"
PROTOCOL = "one pass over all queries, or as in FewSTAB's code: one pass per class, with batch statistics"


@dataclass(frozen=True)
class LearnedStart(Adaptation):
    """Gradient steps from the initial weights that the objective of the same name has learned.

    objective: name of the objective whose models the method adapts
    steps_option: the objective's option for the number of steps at test time
    """

    objective: ClassVar[str]
    steps_option: ClassVar[str] = "test_steps"
    rates = (0.01, 0.03, 0.1, 0.3)

    steps: int | None = option(None, "gradient steps on the support; None: as the model was trained", least=0)
    rate: float | None = option(None, "learning rate; None: as the model was trained", above=0)

    def require_model(self, model: Model) -> None:
        """Raise Mismatch for models of other objectives."""
        if model.objective.name != self.objective:
            raise Mismatch(
                f"method '{self.spelling}' needs a model of objective '{self.objective}', found one of "
                f"'{model.objective}'"
            )

    def objective_with_options(self, model: Model, **options: Any) -> Objective[Any]:
        """Return the model's objective with the steps and the rate of this method."""
        options = {self.steps_option: self.steps, "rate": self.rate, **options}
        objective: Any = model.objective
        updated: Objective[Any] = replace(
            objective, **{key: value for key, value in options.items() if value is not None}
        )
        return updated


@dataclass(frozen=True)
class MamlAdaptation(LearnedStart):
    """Score: the logits after gradient steps of backbone and head on the cross-entropy of the support.

    With batch statistics, as in the paper, the scores of a query depend on the other queries.
    """

    about = "a model of objective maml, adapted to each task by gradient steps on all weights"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(steps=20)"
    family = "transductive"
    objective = "maml"

    batch_norm: Literal["batch", "running"] | None = option(None, BATCH_NORM)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Score by the objective."""
        objective = self.objective_with_options(model, batch_norm=self.batch_norm)
        return objective.scores(net, tasks.support, tasks.labels, tasks.query, tasks.way)


@dataclass(frozen=True)
class AnilAdaptation(LearnedStart):
    """Score: the logits after gradient steps of the head on the cross-entropy of the support.

    `protocol='published'` follows FewSTAB's code: the support and the queries of one class at a time pass through the
    network as one batch, normalized by its own statistics.
    """

    about = "a model of objective anil, adapted to each task by gradient steps on the head"
    paper = "Raghu, Raghu, Bengio and Vinyals, Rapid Learning or Feature Reuse? 2020"
    example = "anil(protocol='published')"
    objective = "anil"

    protocol: Literal["one-pass", "published"] = option("one-pass", PROTOCOL)

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """Return `transductive` for the published protocol, in which queries affect each other's scores."""
        return "transductive" if self.protocol == "published" else "inductive"

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Score by the objective, with running statistics or those of one batch per class."""
        if self.protocol == "published":
            return score_class_by_class(tasks, lambda task: self._published(model, net, task))
        vectors_and_labels = net(tasks.support), tasks.labels, net(tasks.query)
        return self.objective_with_options(model).scores(net, *vectors_and_labels, tasks.way)

    def _published(self, model: Model, net: FewShotNetwork, task: DecodedTasks) -> Callable[[Tensor], Tensor]:
        objective, count = self.objective_with_options(model), task.support.shape[1]

        def scores(query: Tensor) -> Tensor:
            with normalized_by(net, "batch"):
                vectors = net(torch.cat([task.support, query], 1))
            return objective.scores(net, vectors[:, :count], task.labels, vectors[:, count:], task.way)

        return scores


@dataclass(frozen=True)
class BoilAdaptation(LearnedStart):
    """Score: the logits after gradient steps of the backbone on the cross-entropy of the support; the head stays.

    With batch statistics, as in the paper, the scores of a query depend on the other queries. `protocol='published'`
    follows FewSTAB's code: the queries of each class pass separately, normalized by their own statistics, which removes
    what distinguishes the class; and the head is adapted too.
    """

    about = "a model of objective boil, adapted to each task by a gradient step on the backbone"
    paper = "Oh, Yoo, Kim and Yun, BOIL: Towards Representation Change for Few-shot Learning, 2021"
    example = "boil(protocol='published')"
    family = "transductive"
    objective = "boil"
    steps_option = "steps"

    batch_norm: Literal["batch", "running"] | None = option(None, BATCH_NORM)
    protocol: Literal["one-pass", "published"] = option("one-pass", PROTOCOL)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Score by the objective, or by the published protocol."""
        if self.protocol == "published":
            return score_class_by_class(tasks, lambda task: self._published(model, net, task))
        objective = self.objective_with_options(model, batch_norm=self.batch_norm)
        return objective.scores(net, tasks.support, tasks.labels, tasks.query, tasks.way)

    def _published(self, model: Model, net: FewShotNetwork, task: DecodedTasks) -> Callable[[Tensor], Tensor]:
        objective = self.objective_with_options(model)
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
