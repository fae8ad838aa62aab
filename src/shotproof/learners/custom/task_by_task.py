"""Custom classifiers as methods that work task by task: functions, objects like easyfsl's, estimators."""

from __future__ import annotations

import contextlib
import functools
import sys
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import Option
from shotproof.core.runtime.devices import one_thread_per_operation
from shotproof.learners.custom.generators import shared_generators
from shotproof.learners.method import SeededMethod

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Wrapper(SeededMethod):
    """Method around a custom classifier, which is called for one task after another, in one thread.

    Its options are the classifier's own. Two methods are equal if they were built from the same spelling, or wrap the
    same object. The generators of Python, NumPy and PyTorch, which a classifier may use, are seeded with the task's
    seed before each task.
    """

    classifier: Any

    in_order = True
    task_cost = 5  # measured against heads that work in batches; scikit-learn's estimators take even more

    @abstractmethod
    def answer(self, support: Tensor, labels: Tensor, query: Tensor, seed: int) -> Any:
        """Classify the queries of one task: scores [m, way], or labels [m] from 0 to way - 1.

        Args:
            support, labels, query: [n, d], [n] and [m, d]
            seed: seed of the task
        """

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Score each task in turn; a predicted label becomes 1 for that class and 0 for the others."""
        scores = []
        with one_thread(), shared_generators() as generators:
            for seed, task in zip(seeds.tolist(), zip(support, labels, query, strict=True), strict=True):
                generators.seed(seed)
                try:
                    answer = torch.as_tensor(self.answer(*task, seed)).detach().to(query.device)
                except (ValueError, TypeError, RuntimeError) as error:
                    reason = str(error).strip() or type(error).__name__
                    raise InputError(f"method '{self.spelling}' failed: {reason}") from error
                scores.append(self._as_scores(answer, task[2], way))
        return torch.stack(scores)

    def _as_scores(self, answer: Tensor, query: Tensor, way: int) -> Tensor:
        """Convert an answer to scores [m, way]. Raise InputError if it is neither scores nor labels."""
        count = len(query)
        if answer.shape == (count, way) and answer.is_floating_point():
            return answer
        is_integer = not (answer.is_floating_point() or answer.is_complex() or answer.dtype == torch.bool)
        if answer.shape == (count,) and is_integer and bool(((answer >= 0) & (answer < way)).all()):
            return torch.nn.functional.one_hot(answer.long(), way).to(query)
        raise InputError(
            f"method '{self.spelling}': expected scores of shape {(count, way)}, or {count} labels from 0 to "
            f"{way - 1}, found {str(answer.dtype).removeprefix('torch.')} of shape {tuple(answer.shape)}"
        )

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return no options: only the classifier knows its own."""
        return ()

    @property
    def name(self) -> str:
        """Return the location of the code, or the name of the function or class."""
        return super().name if self.origin else getattr(self.classifier, "__name__", type(self.classifier).__name__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wrapper) or self.origin != other.origin:
            return False
        return self.origin is not None or self.classifier is other.classifier

    def __hash__(self) -> int:
        return hash(self.origin or id(self.classifier))


@runtime_checkable
class EpisodicClassifier(Protocol):
    """Object that processes a support set and is then called with queries, such as easyfsl's classifiers."""

    def process_support_set(self, support: Any, labels: Any) -> Any:
        """Learn from the support set: rows [n, d] and labels [n]."""

    def __call__(self, query: Any) -> Any:
        """Score queries [m, d]: [m, way]."""


@dataclass(frozen=True, eq=False)
class TaskByTask(Wrapper):
    """Score: that of a custom classifier; if it returns labels, 1 for the label and 0 for the other classes.

    The classifier gets tensors: support [n, d], labels [n] from 0 to way - 1, query [m, d], and returns scores [m, way]
    or labels [m], as a tensor or an array. It sees all queries of a task at once, so it counts as transductive unless
    it has an attribute `family` or, like easyfsl's classifiers, a method `is_transductive()` that says otherwise.
    """

    about = "a custom classifier, one task at a time"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_transductive = getattr(self.classifier, "is_transductive", None)
        is_inductive = callable(is_transductive) and not is_transductive()
        self._settle(family=getattr(self.classifier, "family", "inductive" if is_inductive else "transductive"))

    def parameters(self) -> dict[str, Any]:
        """Return the location of the classifier and the options it was built with."""
        kind = self.classifier if hasattr(self.classifier, "__qualname__") else type(self.classifier)
        location = self.origin.name if self.origin else f"{kind.__module__}:{kind.__qualname__}"
        return {"python": location, **(self.origin.options if self.origin else {}), **super().parameters()}

    def answer(self, support: Tensor, labels: Tensor, query: Tensor, seed: int) -> Any:
        """Return what the classifier returns."""
        if isinstance(self.classifier, EpisodicClassifier):
            self.classifier.process_support_set(support, labels)
            return self.classifier(query)
        return self.classifier(support, labels, query)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch, and BLAS and OpenMP if threadpoolctl is installed, to one thread.

    The operations of a few-shot task are so small that several threads would mostly wait for each other.
    """
    with contextlib.ExitStack() as limits:
        limits.enter_context(one_thread_per_operation())
        with contextlib.suppress(ImportError):
            limits.enter_context(_thread_pools(len(sys.modules)).limit(limits=1))
        yield


@functools.lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Find the thread pools of all libraries. This takes milliseconds, so it is repeated only after new imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
