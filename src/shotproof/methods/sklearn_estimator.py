"""Any scikit-learn classifier, or anything with `fit` and `predict`, as a method: task by task."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from typing import Any

import torch
from torch import Tensor

from shotproof.errors import InputError, MissingExtra, UnknownName
from shotproof.methods.method import Estimator, SeededMethod
from shotproof.registry import check_options
from shotproof.specs import parse_call, write_call

PREFIX = "sklearn:"


class SklearnEstimator(SeededMethod):
    """Score: 1 for the class that the estimator predicts, 0 for the others.

    A fresh copy is fitted to each task. Where `random_state` is None, each task sets it to its own seed.
    """

    about = "an estimator with fit and predict, one task at a time"
    in_order = True

    def __init__(self, estimator: Estimator, name: str = "") -> None:
        self.estimator = estimator
        described = " ".join(repr(estimator).split()) if hasattr(estimator, "get_params") else type(estimator).__name__
        self.name = name or described
        self._unseeded = [
            key for key, value in self._options().items() if key.split("__")[-1] == "random_state" and value is None
        ]

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Fit and predict each task in turn, in float64."""
        rows, targets, asked = (tensor.cpu().numpy() for tensor in (support.double(), labels, query.double()))
        predicted = []
        for task, seed in enumerate(seeds.tolist()):
            estimator = self._fresh(seed)
            try:
                estimator.fit(rows[task], targets[task])
                answer = torch.as_tensor(estimator.predict(asked[task])).long()
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"method '{self.name}' failed: {str(error).strip() or type(error).__name__}"
                ) from error
            if answer.shape != (asked.shape[1],) or not bool(((answer >= 0) & (answer < way)).all()):
                raise InputError(f"method '{self.name}': expected a label of the support set for each query row")
            predicted.append(answer)
        return torch.nn.functional.one_hot(torch.stack(predicted), way).to(support)

    def parameters(self) -> dict[str, Any]:
        """The estimator's class and all of its parameters."""
        kind = type(self.estimator)
        return {"class": f"{kind.__module__}.{kind.__qualname__}", **self._options()}

    def _options(self) -> dict[str, Any]:
        return dict(self.estimator.get_params()) if hasattr(self.estimator, "get_params") else {}

    def _fresh(self, seed: int) -> Any:
        if not hasattr(self.estimator, "get_params"):
            return copy.deepcopy(self.estimator)
        from sklearn.base import clone

        estimator = clone(self.estimator)
        return estimator.set_params(**dict.fromkeys(self._unseeded, seed)) if self._unseeded else estimator


def parse_estimator(spec: str) -> SklearnEstimator:
    """`sklearn:sklearn.svm.SVC(C=10)` to a method: read, never evaluated; only public classifiers of scikit-learn."""
    path, options = parse_call(spec.strip().removeprefix(PREFIX))
    kind = _classifier(path, spec)
    check_options(f"method '{PREFIX}{path}'", kind, options)
    try:
        return SklearnEstimator(kind(**options), name=PREFIX + write_call(path, options))
    except TypeError as error:
        raise InputError(f"method '{spec}': {error}") from error


def _classifier(path: str, spec: str) -> Any:
    """The classifier's class at a dotted path under `sklearn.`."""
    package, *parts = path.split(".")
    if (
        package != "sklearn"
        or len(parts) != 2
        or any(not part.isidentifier() or part.startswith("_") for part in parts)
    ):
        raise InputError(
            f"method '{spec}': expected a public class of scikit-learn, such as {PREFIX}sklearn.svm.SVC(C=10)"
        )
    try:
        import sklearn
        from sklearn.base import ClassifierMixin
    except ImportError as error:
        raise MissingExtra(f"method '{spec}'", "sklearn") from error
    module_name, class_name = parts
    modules = [found.name for found in pkgutil.iter_modules(sklearn.__path__) if found.name in sklearn.__all__]
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
