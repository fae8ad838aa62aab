"""Somebody's own classifier as a method: a function, or an object as easyfsl has them; one task at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.learners.custom.generators import shared_generators
from shotproof.learners.custom.wrapper import Wrapper, one_thread
from shotproof.learners.method import SeededMethod


@runtime_checkable
class EpisodicClassifier(Protocol):
    """An object that is given a support set and is then called with queries, such as easyfsl's classifiers."""

    def process_support_set(self, support: Any, labels: Any) -> Any:
        """Learn from the support set: rows [n, d] and labels [n]."""

    def __call__(self, query: Any) -> Any:
        """The scores [m, way] of queries [m, d]."""


@dataclass(frozen=True, eq=False)
class TaskByTask(Wrapper, SeededMethod):
    """Scores: what the classifier returns for each task; of labels, 1 for the label and 0 for the others.

    The classifier gets tensors: support [n, d], labels [n] in 0 to way - 1, query [m, d], and returns scores [m, way]
    or labels [m], as a tensor or an array. It sees all queries of a task at once, so it counts as transductive unless
    it says otherwise: by an attribute `family`, or as easyfsl's do by `is_transductive()`. The generators of Python,
    NumPy and PyTorch that it may draw from start each task from the task's seed.
    """

    about = "a classifier of your own, one task at a time"

    def __post_init__(self) -> None:
        super().__post_init__()
        says = getattr(self.classifier, "is_transductive", None)
        inductive = callable(says) and not says()
        self._settle(family=getattr(self.classifier, "family", "inductive" if inductive else "transductive"))

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Each task in turn."""
        answers = []
        with one_thread(), shared_generators() as generators:
            for seed, task in zip(seeds.tolist(), zip(support, labels, query, strict=True), strict=True):
                generators.seed(seed)
                answers.append(self._of_one(*task, way))
        return torch.stack(answers)

    def parameters(self) -> dict[str, Any]:
        """Where the classifier is from, and what it was made with."""
        own = self.classifier if hasattr(self.classifier, "__qualname__") else type(self.classifier)
        place = self.origin.name if self.origin else f"{own.__module__}:{own.__qualname__}"
        return {"python": place, **(self.origin.options if self.origin else {}), **super().parameters()}

    def _of_one(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        try:
            answer = torch.as_tensor(self._answer(support, labels, query)).detach().to(query.device)
        except (ValueError, TypeError, RuntimeError) as error:
            reason = str(error).strip() or type(error).__name__
            raise InputError(f"method '{self.spelling}' failed: {reason}") from error
        if answer.shape == (len(query), way) and answer.is_floating_point():
            return answer
        whole = not (answer.is_floating_point() or answer.is_complex() or answer.dtype == torch.bool)
        if answer.shape == (len(query),) and whole and bool(((answer >= 0) & (answer < way)).all()):
            return torch.nn.functional.one_hot(answer.long(), way).to(query)
        raise InputError(
            f"method '{self.spelling}': expected scores of shape {(len(query), way)}, or {len(query)} labels from 0 to "
            f"{way - 1}, found {str(answer.dtype).removeprefix('torch.')} of shape {tuple(answer.shape)}"
        )

    def _answer(self, support: Tensor, labels: Tensor, query: Tensor) -> Any:
        if isinstance(self.classifier, EpisodicClassifier):
            self.classifier.process_support_set(support, labels)
            return self.classifier(query)
        return self.classifier(support, labels, query)
