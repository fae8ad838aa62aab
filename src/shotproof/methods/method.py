"""What a method is: it learns from a support set and scores a query set, many tasks at a time."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from shotproof.errors import InputError
from shotproof.registry import Registry
from shotproof.specs import parse_call, write_call

if TYPE_CHECKING:
    from torch import Tensor


class Method(ABC):
    """A few-shot classifier on features, batched over B tasks of one shape.

    Every class 0 to way - 1 has at least one support row; classes may have unequal numbers of rows, in any order.
    A task's scores depend on that task alone; a query's, in an inductive method, not on the other queries. Several
    threads may ask for scores at once, unless `in_order`.
    """

    about: ClassVar[str]
    family: Literal["inductive", "transductive"] = "inductive"
    balanced: bool = False  # assumes that every class has equally many queries
    needs: ClassVar[Literal["vectors", "maps"]] = "vectors"  # maps: support [B, n, d, h, w], query [B, m, d, h, w]
    in_order: bool = False  # one batch after another: of code that may keep something between calls
    name: str = ""  # in tables and files: the specification it was made from

    @abstractmethod
    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Support [B, n, d] with labels [B, n] in 0 to way - 1, query [B, m, d] to scores [B, m, way]; largest wins."""

    def floats_a_task(self, way: int, support: int, query: int, dims: int) -> int:
        """About how many float64 numbers it holds at once for a task: it decides how many tasks are done at a time."""
        return 4 * (support + query) * dims

    def parameters(self) -> dict[str, Any]:
        """The options that it was made with, for the record."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters if hasattr(self, name)}


class SeededMethod(Method):
    """A method that draws random numbers: each task brings its own seed, so that its batch-mates never matter."""

    @abstractmethod
    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """As `scores`, with a seed for each task: [B], 0 <= seed < 2**31."""

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores under seed 0."""
        return self.seeded_scores(support, labels, query, way, labels.new_zeros(len(labels)))


@runtime_checkable
class Estimator(Protocol):
    """Anything with scikit-learn's `fit` and `predict`."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's names
        """Learn from rows X and labels y."""

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The label of each row of X."""


AnyMethod = str | Method | Estimator | Callable[..., Any]  # what `make_method` takes

_BUILTIN = {
    "ncc": "shotproof.methods.ncc:NearestCentroid",
    "cosine": "shotproof.methods.cosine:CosineCentroid",
    "logistic": "shotproof.methods.logistic:LogisticRegression",
    "ridge": "shotproof.methods.ridge:RidgeRegression",
    "knn": "shotproof.methods.knn:NearestNeighbours",
    "simpleshot": "shotproof.methods.simpleshot:SimpleShot",
    "matching": "shotproof.methods.matching:Matching",
    "linear": "shotproof.methods.linear:LinearHead",
    "baseline++": "shotproof.methods.baseline_plus_plus:CosineHead",
    "svm": "shotproof.methods.svm:SupportVectorMachine",
    "dn4": "shotproof.methods.dn4:Dn4",
    "dn4-global": "shotproof.methods.dn4:GlobalDn4",
    "deepbdc": "shotproof.methods.deepbdc:DeepBdc",
    "frn": "shotproof.methods.frn:FeatureMapReconstruction",
    "mcl": "shotproof.methods.mcl:MutualCentralizedLearning",
    "adm": "shotproof.methods.adm:AsymmetricDistribution",
    "diffkendall": "shotproof.methods.diffkendall:DiffKendall",
    "hela-vfa": "shotproof.methods.hela_vfa:HelaVfa",
    "bd-cspn": "shotproof.methods.bd_cspn:BdCspn",
    "laplacianshot": "shotproof.methods.laplacian_shot:LaplacianShot",
    "tim": "shotproof.methods.tim:Tim",
    "alpha-tim": "shotproof.methods.alpha_tim:AlphaTim",
    "pt-map": "shotproof.methods.pt_map:PtMap",
    "proto-lp": "shotproof.methods.proto_lp:ProtoLp",
    "paddle": "shotproof.methods.paddle:Paddle",
    "bpa": "shotproof.methods.bpa:Bpa",
    "ecpe": "shotproof.methods.ecpe:Ecpe",
    "transductive-finetune": "shotproof.methods.transductive_finetune:TransductiveFinetune",
}
DEFAULT_METHODS = ("ncc", "cosine", "logistic", "ridge", "knn")

methods: Registry[Method] = Registry("method", _BUILTIN)


def make_method(spec: AnyMethod) -> Method:
    """A method from what a user has.

    A name with its options (`ncc`, `ridge(penalty=1)`), a scikit-learn classifier (`sklearn:sklearn.svm.SVC(C=10)`),
    something importable (`python:my_package.heads:my_head`), a Method, an object with fit and predict, an object with
    process_support_set that is called with queries, or a function of support, labels and query.
    """
    from shotproof.methods import sklearn_estimator, task_by_task

    if isinstance(spec, str):
        if spec.strip().startswith(sklearn_estimator.PREFIX):
            return sklearn_estimator.parse_estimator(spec)
        if spec.strip().startswith(task_by_task.PREFIX):
            method = make_method(task_by_task.import_classifier(spec))
            method.name = spec.strip()
            return method
        name, options = parse_call(spec)
        method = methods.make(name, **options)
        method.name = write_call(name, options)
        return method
    if isinstance(spec, Method):
        spec.name = spec.name or write_call(type(spec).__name__, spec.parameters())
        return spec
    if isinstance(spec, Estimator) and not isinstance(spec, type):
        return sklearn_estimator.SklearnEstimator(spec)
    if callable(spec) and not isinstance(spec, type):
        return task_by_task.TaskByTask(spec)
    kind = f"the class {spec.__name__}" if isinstance(spec, type) else f"an object of {type(spec).__name__}"
    raise InputError(
        f"expected a method's name, a Method, an object with fit and predict, or a function of support, labels and "
        f"query, found {kind}"
    )


def require_positive(option: str, value: Any, kind: type[int] | type[float]) -> None:
    """Refuse an option's value that is not a positive, finite number of the kind."""
    numeric = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    if not numeric or not 0 < value < float("inf"):
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{option}: expected {what} above 0, found {value!r}")


def require_between(
    option: str, value: Any, least: float, most: float = float("inf"), kind: type[int] | type[float] = float
) -> None:
    """Refuse an option's value that is not a finite number of the kind, from `least` to `most`."""
    numeric = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    if not numeric or not least <= value <= most or value == float("inf"):
        what = "a whole number" if kind is int else "a number"
        bounds = f"of at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
        raise InputError(f"{option}: expected {what} {bounds}, found {value!r}")
