"""scikit-learn classifiers, and other objects with `fit` and `predict`, as methods that work task by task."""

from __future__ import annotations

import copy
import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.core.errors import InputError, MissingExtra, UnknownName
from shotproof.core.lazy import torch
from shotproof.learners.custom.code import check_options
from shotproof.learners.custom.task_by_task import Wrapper
from shotproof.learners.method import CodeOrigin

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "sklearn:"
_PUBLIC = re.compile(r"sklearn(\.[^\W\d_]\w*){2}")


@dataclass(frozen=True, eq=False)
class SklearnEstimator(Wrapper):
    """Score: 1 for the class that the estimator predicts, 0 for the others.

    A fresh copy is fitted to each task. If `random_state` is None, it is set to the task's seed.
    """

    about = "an estimator with fit and predict, one task at a time"

    def answer(self, support: Tensor, labels: Tensor, query: Tensor, seed: int) -> Any:
        """Fit a fresh copy and predict, in float64."""
        rows, targets, queries = (tensor.cpu().numpy() for tensor in (support.double(), labels, query.double()))
        estimator = self._fresh_copy(seed)
        estimator.fit(rows, targets)
        return torch.as_tensor(estimator.predict(queries)).long()

    @property
    def spelling(self) -> str:
        """Return the spelling it was built from, or the repr of an estimator that was passed as an object."""
        is_described = not self.origin and hasattr(self.classifier, "get_params")
        return " ".join(repr(self.classifier).split()) if is_described else super().spelling

    def parameters(self) -> dict[str, Any]:
        """Return the estimator's class and all its parameters."""
        kind = type(self.classifier)
        location = self.origin.name.removeprefix(PREFIX) if self.origin else f"{kind.__module__}.{kind.__qualname__}"
        return {"class": location, **self._estimator_options, **super().parameters()}

    @cached_property
    def _estimator_options(self) -> dict[str, Any]:
        if hasattr(self.classifier, "get_params"):
            return dict(self.classifier.get_params())
        return dict(self.origin.options) if self.origin else {}

    def _fresh_copy(self, seed: int) -> Any:
        if not hasattr(self.classifier, "get_params"):
            return copy.deepcopy(self.classifier)
        from sklearn.base import clone

        options = self._estimator_options.items()
        unseeded = [key for key, value in options if key.split("__")[-1] == "random_state" and value is None]
        estimator = clone(self.classifier)
        return estimator.set_params(**dict.fromkeys(unseeded, seed)) if unseeded else estimator


def make_estimator(path: str, options: Mapping[str, Any]) -> SklearnEstimator:
    """Build a method from a public scikit-learn classifier, by its path such as `sklearn.svm.SVC`, and its options."""
    origin = CodeOrigin(f"{PREFIX}{path}", options)
    kind = _classifier(path, origin.name)
    check_options(origin.name, kind, options)
    try:
        method = SklearnEstimator(kind(**options))
    except TypeError as error:
        raise InputError(f"method '{origin.spelling}': {error}") from error
    method._settle(origin=origin)
    return method


def _classifier(path: str, name: str) -> Any:
    """Return the classifier class at a dotted path under `sklearn.`."""
    if not _PUBLIC.fullmatch(path):
        raise InputError(
            f"method '{name}': expected a public scikit-learn class, such as {PREFIX}sklearn.svm.SVC(C=10)"
        )
    try:
        import sklearn
        from sklearn.base import ClassifierMixin
    except ImportError as error:
        raise MissingExtra(f"method '{name}'", "sklearn") from error
    _, module_name, class_name = path.split(".")
    modules = [info.name for info in pkgutil.iter_modules(sklearn.__path__) if info.name in sklearn.__all__]
    if module_name not in modules:
        raise UnknownName("module of scikit-learn", module_name, modules)
    module = importlib.import_module(f"sklearn.{module_name}")
    classifiers = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, ClassifierMixin) and not name.startswith("_")
    ]
    if class_name not in classifiers:
        raise UnknownName(f"classifier of sklearn.{module_name}", class_name, classifiers)
    return getattr(module, class_name)
