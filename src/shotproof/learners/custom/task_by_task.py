"""Somebody's own classifier as a method, one task at a time: a function, an object like easyfsl's, an estimator."""

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
    """A classifier that is asked for one task after another, each in one thread.

    Its options are the classifier's own. Two that were made from one spelling are equal; others are if they wrap the
    same object. The generators of Python, NumPy and PyTorch, which a classifier may draw from, start each task from
    the task's seed.
    """

    classifier: Any

    in_order = True
    task_cost = 5  # measured beside heads in batches: scikit-learn's estimators take more still

    @abstractmethod
    def answer(self, support: Tensor, labels: Tensor, query: Tensor, seed: int) -> Any:
        """The classifier's answer to one task: scores [m, way], or labels [m] in 0 to way - 1.

        Args:
            support, labels, query: [n, d], [n] and [m, d]
            seed: of the task
        """

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Each task in turn; of labels, 1 for the label and 0 for the others."""
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
        """An answer as scores [m, way]; InputError if it is neither scores nor labels."""
        count = len(query)
        if answer.shape == (count, way) and answer.is_floating_point():
            return answer
        whole = not (answer.is_floating_point() or answer.is_complex() or answer.dtype == torch.bool)
        if answer.shape == (count,) and whole and bool(((answer >= 0) & (answer < way)).all()):
            return torch.nn.functional.one_hot(answer.long(), way).to(query)
        raise InputError(
            f"method '{self.spelling}': expected scores of shape {(count, way)}, or {count} labels from 0 to "
            f"{way - 1}, found {str(answer.dtype).removeprefix('torch.')} of shape {tuple(answer.shape)}"
        )

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """None that Shotproof knows of."""
        return ()

    @property
    def name(self) -> str:
        """Where its code is, or the name of the function or class."""
        return super().name if self.origin else getattr(self.classifier, "__name__", type(self.classifier).__name__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wrapper) or self.origin != other.origin:
            return False
        return self.origin is not None or self.classifier is other.classifier

    def __hash__(self) -> int:
        return hash(self.origin or id(self.classifier))


@runtime_checkable
class EpisodicClassifier(Protocol):
    """An object that is given a support set and is then called with queries, such as easyfsl's classifiers."""

    def process_support_set(self, support: Any, labels: Any) -> Any:
        """Learn from the support set: rows [n, d] and labels [n]."""

    def __call__(self, query: Any) -> Any:
        """The scores [m, way] of queries [m, d]."""


@dataclass(frozen=True, eq=False)
class TaskByTask(Wrapper):
    """Scores: what the classifier returns for each task; of labels, 1 for the label and 0 for the others.

    The classifier gets tensors: support [n, d], labels [n] in 0 to way - 1, query [m, d], and returns scores [m, way]
    or labels [m], as a tensor or an array. It sees all queries of a task at once, so it counts as transductive unless
    it says otherwise: by an attribute `family`, or as easyfsl's do by `is_transductive()`.
    """

    about = "a classifier of your own, one task at a time"

    def __post_init__(self) -> None:
        super().__post_init__()
        says = getattr(self.classifier, "is_transductive", None)
        inductive = callable(says) and not says()
        self._settle(family=getattr(self.classifier, "family", "inductive" if inductive else "transductive"))

    def parameters(self) -> dict[str, Any]:
        """Where the classifier is from, and what it was made with."""
        own = self.classifier if hasattr(self.classifier, "__qualname__") else type(self.classifier)
        place = self.origin.name if self.origin else f"{own.__module__}:{own.__qualname__}"
        return {"python": place, **(self.origin.options if self.origin else {}), **super().parameters()}

    def answer(self, support: Tensor, labels: Tensor, query: Tensor, seed: int) -> Any:
        """What the classifier returns."""
        if isinstance(self.classifier, EpisodicClassifier):
            self.classifier.process_support_set(support, labels)
            return self.classifier(query)
        return self.classifier(support, labels, query)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within it PyTorch, and where threadpoolctl is installed BLAS and OpenMP, compute in one thread.

    The operations of a few-shot task are so small that several threads spend their time waiting for each other.
    """
    with contextlib.ExitStack() as limits:
        limits.enter_context(one_thread_per_operation())
        with contextlib.suppress(ImportError):
            limits.enter_context(_thread_pools(len(sys.modules)).limit(limits=1))
        yield


@functools.lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Those of all libraries. To look for them takes milliseconds: it is done anew only where modules were imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
