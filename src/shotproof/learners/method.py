"""Base classes and registry of methods, which learn from a support set and score a query set, many tasks at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, SupportsIndex, runtime_checkable

from shotproof.core.errors import InputError
from shotproof.core.options import Component
from shotproof.core.records import FeaturesRecord
from shotproof.core.registry import Registry
from shotproof.core.spelling import parse_spelling, write_call
from shotproof.core.trust import require_trust, table_text

if TYPE_CHECKING:
    from torch import Tensor

    from shotproof.functional.feature_rows import UnitRows
    from shotproof.functional.gram import GramBlocks


@dataclass(frozen=True)
class CodeOrigin:
    """Location and options of custom code, enough to build the same method again in another process.

    name: as a user types it, without options: `my_heads.py:Head`, `python:my_package.heads:Head`
    options: options the method was built with
    file: absolute path of the file, None if the code was imported from a module
    digest: digest of the file's content
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    file: str | None = None
    digest: str | None = None

    @property
    def spelling(self) -> str:
        """Return the name with its options."""
        return write_call(self.name, self.options)


class TasksView(Protocol):
    """B tasks of one shape, as an evaluation presents them to a method; costly arrays are shared by all methods.

    support_labels: [B, n], 0 to way - 1
    seeds: seed of each task, for methods that draw random numbers, [B]
    """

    support_labels: Tensor
    seeds: Tensor
    way: int

    def rows(self, method: Method) -> tuple[Tensor, Tensor, Tensor, int]:
        """Return support, labels, query and way as `scores` takes them: vectors or maps, as the method needs."""

    def texts(self) -> Tensor:
        """Return the text embedding of each class, [B, way, d]."""

    def products(self) -> GramBlocks:
        """Return the inner products of support and queries."""

    def cosines(self, scaling: UnitRows) -> Tensor:
        """Return the inner products of all scaled rows, support first: [B, n + m, n + m]."""


class Method(Component, ABC):
    """Few-shot classifier on features, batched over B tasks of one shape.

    Every class 0 to way - 1 has at least one support row; classes may have unequal numbers of rows, in any order.
    The scores of a task depend on that task alone. In an inductive method, the scores of a query do not depend on the
    other queries. Several threads may compute scores at once, unless `in_order` is set.

    Example:
        >>> import torch
        >>> support, labels, query = torch.eye(2)[None], torch.tensor([[0, 1]]), torch.tensor([[[0.9, 0.2]]])
        >>> make_method("ncc").scores(support, labels, query, way=2).argmax(-1).tolist()
        [[0]]
    """

    kind = "method"
    family: Literal["inductive", "transductive"] = "inductive"
    balanced: bool = False  # assumes that every class has equally many queries
    # vectors: support [B, n, d], query [B, m, d]; maps: [B, n, d, h, w], [B, m, d, h, w]; texts: vectors and the texts
    # of the classes, see `TextMethod`; items: see `ItemsMethod`
    needs: ClassVar[Literal["vectors", "maps", "texts", "items"]] = "vectors"
    evaluated_on: ClassVar[Literal["features", "items", "network"]] = "features"
    collapse_help: ClassVar[str] = ""  # if it may put all queries into few classes: when that happens, and what helps
    task_cost: ClassVar[int] = 1  # of a task, relative to a method that scores tasks in batches
    in_order: bool = False  # batches run one after another, for code that may keep state between calls
    origin: CodeOrigin | None = None  # of custom code

    @abstractmethod
    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score each query for each class; the largest score wins.

        Args:
            support: [B, n, d], or [B, n, d, h, w] if the method needs maps
            labels: [B, n], 0 to way - 1
            query: [B, m, d], or [B, m, d, h, w]
            way: number of classes of each task

        Returns:
            The scores, [B, m, way].
        """

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Score the tasks of an evaluation, [B, m, way], from the view of their items that the method needs."""
        return self.scores(*tasks.rows(self))

    def require_features(self, record: FeaturesRecord) -> None:
        """Raise Mismatch if the method cannot use the features this record describes."""

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Estimate how many float64 numbers a task holds in memory at once; sets how many tasks are computed together.

        Args:
            way: number of classes
            support: number of support rows
            query: number of query rows
            dims: numbers per row that the method sees
        """
        return 4 * (support + query) * dims

    @property
    def name(self) -> str:
        """Return the registered name, or the location of custom code such as `my_heads.py:Head`."""
        return self.origin.name if self.origin else super().name

    @property
    def spelling(self) -> str:
        """Return the name with its options, as tables and files show it and as a user types it."""
        return self.origin.spelling if self.origin else super().spelling

    def parameters(self) -> dict[str, Any]:
        """Return every option with its value, for the record, and the file digest of code read from a file."""
        digest = {"file_digest": self.origin.digest} if self.origin and self.origin.digest else {}
        return {**super().parameters(), **digest}

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # Another process cannot import a module that was read from a file, so it reads the file again.
        return (_rebuild, (self.origin,)) if self.origin else super().__reduce_ex__(protocol)

    def _settle(self, **attributes: Any) -> None:
        """Set attributes derived from the options while the frozen dataclass is being initialized."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class SeededMethod(Method):
    """Method that draws random numbers; each task has its own seed, so results do not depend on the batch."""

    @abstractmethod
    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Score as `scores` does, with a seed for each task: [B], 0 <= seed < 2**31."""

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Score from rows and seeds."""
        return self.seeded_scores(*tasks.rows(self), tasks.seeds)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score with seed 0."""
        return self.seeded_scores(support, labels, query, way, labels.new_zeros(len(labels)))


@runtime_checkable
class Estimator(Protocol):
    """Object with scikit-learn's `fit` and `predict`."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's names
        """Learn from rows X and labels y."""

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Predict the label of each row of X."""


# Types that `methods.make` accepts.
AnyMethod = str | Mapping[str, Any] | Method | type[Method] | Estimator | Callable[..., Any]

_BUILTIN = {
    "ncc": "shotproof.learners.heads.inductive.centroids:NearestCentroid",
    "cosine": "shotproof.learners.heads.inductive.centroids:CosineCentroid",
    "logistic": "shotproof.learners.heads.inductive.kernels:LogisticRegression",
    "ridge": "shotproof.learners.heads.inductive.kernels:RidgeRegression",
    "knn": "shotproof.learners.heads.inductive.kernels:NearestNeighbors",
    "simpleshot": "shotproof.learners.heads.inductive.centroids:SimpleShot",
    "matching": "shotproof.learners.heads.inductive.kernels:Matching",
    "linear": "shotproof.learners.heads.inductive.gradient_descent:LinearHead",
    "baseline++": "shotproof.learners.heads.inductive.gradient_descent:CosineHead",
    "svm": "shotproof.learners.heads.inductive.kernels:SupportVectorMachine",
    "dn4": "shotproof.learners.heads.maps:Dn4",
    "dn4-global": "shotproof.learners.heads.maps:GlobalDn4",
    "deepbdc": "shotproof.learners.heads.maps:DeepBdc",
    "frn": "shotproof.learners.heads.maps:FeatureMapReconstruction",
    "mcl": "shotproof.learners.heads.maps:MutualCentralizedLearning",
    "adm": "shotproof.learners.heads.maps:AsymmetricDistribution",
    "diffkendall": "shotproof.learners.heads.inductive.centroids:DiffKendall",
    "hela-vfa": "shotproof.learners.heads.inductive.centroids:HelaVfa",
    "bd-cspn": "shotproof.learners.heads.transductive.rectified:BdCspn",
    "laplacianshot": "shotproof.learners.heads.transductive.rectified:LaplacianShot",
    "tim": "shotproof.learners.heads.transductive.tim:Tim",
    "alpha-tim": "shotproof.learners.heads.transductive.tim:AlphaTim",
    "pt-map": "shotproof.learners.heads.transductive.transport:PtMap",
    "proto-lp": "shotproof.learners.heads.transductive.transport:ProtoLp",
    "paddle": "shotproof.learners.heads.transductive.paddle:Paddle",
    "bpa": "shotproof.learners.heads.transductive.bpa:Bpa",
    "ecpe": "shotproof.learners.heads.transductive.transport:Ecpe",
    "transductive-finetune": "shotproof.learners.heads.transductive.transductive_finetune:TransductiveFinetune",
    "zero-shot": "shotproof.learners.heads.texts:ZeroShot",
    "tip-adapter": "shotproof.learners.heads.texts:TipAdapter",
    "tip-adapter-f": "shotproof.learners.heads.texts:TipAdapterF",
    "text-probe": "shotproof.learners.heads.texts:TextProbe",
    "chat": "shotproof.learners.incontext.chat:Chat",
    "anil": "shotproof.learners.adaptation.learned_start:AnilAdaptation",
    "boil": "shotproof.learners.adaptation.learned_start:BoilAdaptation",
    "maml": "shotproof.learners.adaptation.learned_start:MamlAdaptation",
    "finetune": "shotproof.learners.adaptation.finetune:Finetune",
    "finetune-head": "shotproof.learners.adaptation.finetune:FinetuneHead",
    "lp-ft": "shotproof.learners.adaptation.finetune:LpFt",
    "transductive-finetune-network": ("shotproof.learners.adaptation.finetune:TransductiveFinetuneNetwork"),
    "tsa": "shotproof.learners.adaptation.adapters:Tsa",
    "ett": "shotproof.learners.adaptation.ett:Ett",
    "lora": "shotproof.learners.adaptation.adapters:Lora",
}
DEFAULT_METHODS = ("ncc", "cosine", "logistic", "ridge", "knn")


class MethodRegistry(Registry[Method]):
    """Registry of methods, which also builds methods from custom code, estimators and trained heads."""

    def make(self, spec: AnyMethod, folder: Path | None = None, **options: Any) -> Method:
        """Build a method from a name, a table, a class or an object.

        Args:
            spec: a spelling: a registered name with its options (`ncc`, `ridge(penalty=1)`), a scikit-learn classifier
                (`sklearn:sklearn.svm.SVC(C=10)`), the head of a trained model (`model:protonet.model`), custom code in
                a file (`my_heads.py:Head(epochs=10)`) or in a module (`python:my_package.heads:Head(epochs=10)`); or a
                table of a name and options; a Method or a subclass of it; an object with fit and predict; an object
                with process_support_set that is called with queries; or a function of support, labels and query
            folder: folder in which files of custom code are searched, the working folder if None
            options: further options, by name

        Returns:
            The method. A Method object is returned unchanged.

        Raises:
            UnknownName: no method has this name.
            InputError: the spelling cannot be parsed, the code is not found or fails, or the object is no method.
            NotTrusted: it reaches code, a server or a file that the user has neither typed nor agreed to.

        Example:
            >>> methods.make("ridge(penalty=2)").spelling
            'ridge(penalty=2)'
            >>> methods.make({"name": "knn", "k": 3})
            NearestNeighbors(k=3)
        """
        from shotproof.learners.custom import code, sklearn_estimator

        table: Any = {"name": spec} if isinstance(spec, str) else spec
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            if isinstance(spec, Method | Mapping) or (isinstance(spec, type) and issubclass(spec, Method)):
                return super().make(spec, **options)
            if options:
                raise InputError(f"options cannot be applied to an existing object, found {', '.join(options)}")
            return code.wrap(spec)
        spelling = table["name"].strip()
        options = {**{key: value for key, value in table.items() if key != "name"}, **options}
        typed = spelling if isinstance(spec, str) and not options else table_text({"name": spelling, **options})
        in_file = code.is_in_file(spelling)
        prefix, location, spelled_options = parse_spelling(
            f"{code.PREFIX}{spelling}" if in_file else spelling, self.kind
        )
        location = (location or "").strip().removesuffix("()")
        if prefix == "sklearn" and location:
            return sklearn_estimator.make_estimator(location, {**spelled_options, **options})
        if prefix == "python" and location:
            return code.load(location, {**spelled_options, **options}, folder, typed)
        if prefix == "model" and location:
            from shotproof.learners.model_head import ModelHead

            head = ModelHead.with_options(prefix, {"path": (folder or Path()) / location, **spelled_options, **options})
            for reach in head.reaches():
                require_trust(reach, typed)
            return head
        return super().make(spelling, **options)


methods = MethodRegistry("method", _BUILTIN)
make_method = methods.make


def _rebuild(origin: CodeOrigin) -> Method:
    """Build the method of an origin again, in another process."""
    from shotproof.learners.custom import code, sklearn_estimator

    if origin.name.startswith(sklearn_estimator.PREFIX):
        return sklearn_estimator.make_estimator(origin.name.removeprefix(sklearn_estimator.PREFIX), origin.options)
    return code.load_again(origin)
