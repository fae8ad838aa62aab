"""Base class of adaptations, which tune a trained network on the support set of a task and score its queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from shotproof.core.errors import InputError
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor

    from shotproof.models.model import Model
    from shotproof.models.network import FewShotNetwork


@dataclass(frozen=True)
class DecodedTasks:
    """B tasks of one shape, with their items decoded as input of the network.

    support, query: [B, n, channels, height, width] and [B, m, ...]
    labels: class of each support item, 0 to way - 1, [B, n]
    query_labels: class of each query, [B, m], only for protocols that process the queries class by class
    seeds: seed of each task, for random draws, [B], 0 <= seed < 2**31
    """

    support: Tensor
    labels: Tensor
    query: Tensor
    query_labels: Tensor
    seeds: Tensor
    way: int

    @property
    def target(self) -> Tensor:
        """Return the one-hot classes of the support items, [B, n, way], in float32."""
        from torch.nn import functional

        return functional.one_hot(self.labels, self.way).float()

    def task(self, number: int) -> DecodedTasks:
        """Return one task, with a task axis of length 1."""
        task_slice = slice(number, number + 1)
        query = self.query[task_slice], self.query_labels[task_slice]
        return DecodedTasks(self.support[task_slice], self.labels[task_slice], *query, self.seeds[task_slice], self.way)

    def __len__(self) -> int:
        return len(self.labels)


class Adaptation(Method):
    """Few-shot classifier that adapts a network to each task; a subclass is a frozen dataclass of its options.

    `sp.evaluate(tasks, catalog=catalog, model=model, methods=[...])` decodes the items once and passes tasks in
    batches. The network's own weights never change: the method adapts copies of them, by `torch.func`. With zero steps,
    its scores are those of a head on the network's features.

    rates: values of the option `rate` to choose from on validation tasks
    """

    needs = "items"
    evaluated_on = "network"
    rates: ClassVar[tuple[float, ...]] = (1e-4, 1e-3, 1e-2)

    @abstractmethod
    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Score each query for each class, [B, m, way]; the largest wins. Scores of a task depend on that task alone.

        Args:
            model: model that the network belongs to
            net: network, in evaluation mode, on the device of the tasks
            tasks: tasks of one shape
        """

    def require_model(self, model: Model) -> None:
        """Raise Mismatch if the method cannot adapt this model."""

    def with_rate(self, rate: float) -> Self:
        """Return a copy of the method with another learning rate."""
        method: Any = self
        copy: Self = replace(method, rate=rate)
        return copy

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Raise InputError: features are not enough."""
        raise InputError(f"method '{self.spelling}' adapts a network: evaluate it on a catalog with a model")


def score_class_by_class(tasks: DecodedTasks, adapt: Callable[[DecodedTasks], Callable[[Tensor], Tensor]]) -> Tensor:
    """Score the queries of each class in a pass of their own: [B, m, way].

    FewSTAB's published code does this. A method whose scores depend on the other queries, for example through batch
    statistics, then sees batches of a single class.

    Args:
        tasks: tasks to score
        adapt: adapts to one task and returns a function from queries [1, n, ...] to their scores [1, n, way]
    """
    scores = tasks.query.new_zeros(*tasks.query.shape[:2], tasks.way)
    for number in range(len(tasks)):
        task = tasks.task(number)
        score_queries = adapt(task)
        for label in range(tasks.way):
            rows = (task.query_labels[0] == label).nonzero().flatten()
            if len(rows):
                scores[number, rows] = score_queries(task.query[:, rows])[0]
    return scores
