"""What an adaptation is: it tunes a trained network on the support of a task, and scores the queries with it."""

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
    """B tasks of one shape, their items as the network's input.

    support, query: [B, n, channels, height, width] and [B, m, ...]
    labels: the class of each support item, 0 to way - 1, [B, n]
    query_labels: of each query, [B, m]: only for protocols that part the queries by class
    seeds: of each task, for what is drawn, [B], 0 <= seed < 2**31
    """

    support: Tensor
    labels: Tensor
    query: Tensor
    query_labels: Tensor
    seeds: Tensor
    way: int

    @property
    def target(self) -> Tensor:
        """The classes of the support one-hot, [B, n, way], in float32."""
        from torch.nn import functional

        return functional.one_hot(self.labels, self.way).float()

    def task(self, number: int) -> DecodedTasks:
        """One of them, with its axis of length 1."""
        one = slice(number, number + 1)
        query = self.query[one], self.query_labels[one]
        return DecodedTasks(self.support[one], self.labels[one], *query, self.seeds[one], self.way)

    def __len__(self) -> int:
        return len(self.labels)


class Adaptation(Method):
    """A few-shot classifier that adapts a network to each task; a subclass is a frozen dataclass of its options.

    `sp.evaluate(tasks, catalog=catalog, model=model, methods=[...])` decodes the items once and gives it tasks in
    batches. The network's weights are the same before and after: it works on others, by `torch.func`. Without any
    step, its scores are those of a head on the network's features.

    rates: learning rates to choose from on validation tasks, values of the option `rate`
    """

    needs = "items"
    evaluated_on = "network"
    rates: ClassVar[tuple[float, ...]] = (1e-4, 1e-3, 1e-2)

    @abstractmethod
    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The scores of each query for each class, [B, m, way], largest wins; a task's depend on that task alone.

        Args:
            model: whose network it is
            net: in evaluation mode, on the device of the tasks
            tasks: of one shape
        """

    def require_model(self, model: Model) -> None:
        """Refuse a model that it cannot adapt; InputError where it does."""

    def with_rate(self, rate: float) -> Self:
        """The same with another learning rate."""
        own: Any = self
        changed: Self = replace(own, rate=rate)
        return changed

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """There are none: features are not enough."""
        raise InputError(f"method '{self.spelling}' adapts a network: evaluate it on a catalog, with a model")


def one_class_at_a_time(tasks: DecodedTasks, adapted: Callable[[DecodedTasks], Callable[[Tensor], Tensor]]) -> Tensor:
    """The scores of each query beside the queries of its own class alone, [B, m, way].

    So does FewSTAB's published code: one pass for each class of a task. A method whose answers depend on the other
    queries, as by the statistics of a batch, then sees batches of one class.

    Args:
        tasks: any number
        adapted: of one task, what gives the scores [1, n, way] of some of its queries [1, n, ...]
    """
    scores = tasks.query.new_zeros(*tasks.query.shape[:2], tasks.way)
    for number in range(len(tasks)):
        task = tasks.task(number)
        scored = adapted(task)
        for label in range(tasks.way):
            rows = (task.query_labels[0] == label).nonzero().flatten()
            if len(rows):
                scores[number, rows] = scored(task.query[:, rows])[0]
    return scores
