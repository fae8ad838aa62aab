"""Methods that see the items themselves, not features of them: what they are given, and what they give."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.learners.method import Method
from shotproof.media.mixture import Clip

if TYPE_CHECKING:
    from torch import Tensor

NO_CLASS = -1  # the answer to a query that names none of the classes: it counts as wrong, and is counted


@dataclass(frozen=True)
class ItemsTask:
    """One task as items, each an image or a sound: its file, or a mixture that is made when it is read.

    number: of the task in its set
    seed: of the task, for methods that draw, 0 <= seed < 2**31
    classes: the label of each class, [way]
    support, labels: the support items, and the class of each, 0 to way - 1
    query: the items to be labeled
    """

    number: int
    seed: int
    classes: tuple[str, ...]
    support: tuple[Clip, ...]
    labels: tuple[int, ...]
    query: tuple[Clip, ...]


class ItemsMethod(Method):
    """A few-shot classifier on items. A task's answers depend on that task alone.

    `sp.evaluate(tasks, catalog=catalog, methods=[...])` gives it all tasks at once, so that it can batch them, ask a
    server for many at a time, and show its own progress.
    """

    needs = "items"
    evaluated_on = "items"

    @abstractmethod
    def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
        """The class of each query, 0 to way - 1, or NO_CLASS: for each task an array [m].

        Args:
            tasks: of any shape, in the order of the task set
            runtime: workers, devices, cache and progress
        """

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """There are none: features are not enough."""
        raise InputError(f"method '{self.spelling}' needs the items themselves, not features: evaluate it on a catalog")
