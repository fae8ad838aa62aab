"""Methods that work on the items themselves instead of features: their tasks and their predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.learners.method import Method
from shotproof.media.unwritten import ItemFile

if TYPE_CHECKING:
    from torch import Tensor

NO_CLASS = -1  # predicted if an answer names none of the classes: counts as wrong, and its number is recorded


@dataclass(frozen=True)
class ItemsTask:
    """One task as items, each an image or a sound: a file, or a mixture that is rendered when it is read.

    number: number of the task in its task set
    seed: seed of the task, for methods that draw random numbers, 0 <= seed < 2**31
    classes: the label of each class, [way]
    support, labels: the support items, and the class of each, 0 to way - 1
    query: the items to classify
    """

    number: int
    seed: int
    classes: tuple[str, ...]
    support: tuple[ItemFile, ...]
    labels: tuple[int, ...]
    query: tuple[ItemFile, ...]


class ItemsMethod(Method):
    """Few-shot classifier on items. The predictions of a task depend on that task alone.

    `sp.evaluate(tasks, catalog=catalog, methods=[...])` passes all tasks at once, so that the method can batch them,
    send many requests to a server at a time, and show its own progress.
    """

    needs = "items"
    evaluated_on = "items"

    @abstractmethod
    def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
        """Predict the class of each query, 0 to way - 1, or NO_CLASS: an array [m] for each task.

        Args:
            tasks: of any shape, in the order of the task set
            runtime: workers, devices, cache and progress
        """

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Raise InputError: features are not enough."""
        raise InputError(f"method '{self.spelling}' needs the items themselves, not features: evaluate it on a catalog")
