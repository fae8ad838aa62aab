"""What a method is: it learns from a support set and scores a query set, many tasks at a time."""

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
    """What it takes to find and make a method again, in another process too.

    name: as a user types it, without options: `my_heads.py:Head`, `python:my_package.heads:Head`
    options: what it was made with
    file: the absolute path of its file, None where it was imported
    digest: of the file's content
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    file: str | None = None
    digest: str | None = None

    @property
    def spelling(self) -> str:
        """The name with its options."""
        return write_call(self.name, self.options)


class TasksView(Protocol):
    """What an evaluation shows a method of B tasks of one shape; what is costly is gathered once for all methods.

    support_labels: [B, n], 0 to way - 1
    seeds: of each task, for methods that draw, [B]
    """

    support_labels: Tensor
    seeds: Tensor
    way: int

    def rows(self, method: Method) -> tuple[Tensor, Tensor, Tensor, int]:
        """Support, labels, query and way, as `scores` takes them: vectors or maps, as the method needs."""

    def texts(self) -> Tensor:
        """The text of each class, [B, way, d]."""

    def products(self) -> GramBlocks:
        """The inner products of support and queries."""

    def cosines(self, scaling: UnitRows) -> Tensor:
        """The inner products of all rows, scaled, support first: [B, n + m, n + m]."""


class Method(Component, ABC):
    """A few-shot classifier on features, batched over B tasks of one shape.

    Every class 0 to way - 1 has at least one support row; classes may have unequal numbers of rows, in any order.
    A task's scores depend on that task alone; a query's, in an inductive method, not on the other queries. Several
    threads may ask for scores at once, unless `in_order`.

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
    collapse_help: ClassVar[str] = ""  # of one that may put all queries into few classes: when, and what helps
    task_cost: ClassVar[int] = 1  # of a task, beside a method that scores tasks in batches
    in_order: bool = False  # one batch after another: of code that may keep something between calls
    origin: CodeOrigin | None = None  # of somebody's own code

    @abstractmethod
    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores of each query for each class; the largest wins.

        Args:
            support: [B, n, d], or [B, n, d, h, w] where the method needs maps
            labels: [B, n], 0 to way - 1
            query: [B, m, d], or [B, m, d, h, w]
            way: the number of classes of each task

        Returns:
            The scores, [B, m, way].
        """

    def scores_of(self, tasks: TasksView) -> Tensor:
        """The scores [B, m, way] of tasks in an evaluation, from what the method sees of their items."""
        return self.scores(*tasks.rows(self))

    def require_features(self, record: FeaturesRecord) -> None:
        """Refuse features that the method cannot use, by their record; Mismatch where it does."""

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """About how many float64 numbers it holds at once per task: it decides how many tasks are done at a time.

        Args:
            way: the number of classes
            support: the number of support rows
            query: the number of query rows
            dims: the numbers that the method sees per row
        """
        return 4 * (support + query) * dims

    @property
    def name(self) -> str:
        """The name under which it is registered, or where somebody's own code is: `my_heads.py:Head`."""
        return self.origin.name if self.origin else super().name

    @property
    def spelling(self) -> str:
        """The name with its options, in tables and files: what a user types to get the same again."""
        return self.origin.spelling if self.origin else super().spelling

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, for the record; of code in a file its digest too, which tells versions apart."""
        digest = {"file_digest": self.origin.digest} if self.origin and self.origin.digest else {}
        return {**super().parameters(), **digest}

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # Another process cannot import a module that was read from a file: it reads the file itself.
        return (_made_again, (self.origin,)) if self.origin else super().__reduce_ex__(protocol)

    def _settle(self, **attributes: Any) -> None:
        """Set attributes that follow from the options, while the frozen record is made."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class SeededMethod(Method):
    """A method that draws random numbers: each task brings its own seed, so that its batch-mates never matter."""

    @abstractmethod
    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """As `scores`, with a seed for each task: [B], 0 <= seed < 2**31."""

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Those of rows and seeds."""
        return self.seeded_scores(*tasks.rows(self), tasks.seeds)

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


# What `methods.make` takes.
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
    """Methods by their names, and all else that can be made a method: code of one's own, estimators, trained heads."""

    def make(self, given: AnyMethod, folder: Path | None = None, **options: Any) -> Method:
        """Make a method from what a user has.

        Args:
            given: a spelling: a registered name with its options (`ncc`, `ridge(penalty=1)`), a classifier of
                scikit-learn (`sklearn:sklearn.svm.SVC(C=10)`), the head of a trained model (`model:protonet.model`),
                one's own code in a file (`my_heads.py:Head(epochs=10)`) or in a module
                (`python:my_package.heads:Head(epochs=10)`); a table of a name and options; a Method or the class of
                one; an object with fit and predict; an object with process_support_set that is called with queries; or
                a function of support, labels and query
            folder: where files of one's own code are looked for, the working folder if None
            options: further options, by name

        Returns:
            The method; a Method that was given is returned as it is.

        Raises:
            UnknownName: no method has this name.
            InputError: it cannot be read, found or made, or is no method.
            NotTrusted: it reaches code, a server or a file that the user has neither typed nor agreed to.

        Example:
            >>> methods.make("ridge(penalty=2)").spelling
            'ridge(penalty=2)'
            >>> methods.make({"name": "knn", "k": 3})
            NearestNeighbors(k=3)
        """
        from shotproof.learners.custom import code, sklearn_estimator

        table: Any = {"name": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            if isinstance(given, Method | Mapping) or (isinstance(given, type) and issubclass(given, Method)):
                return super().make(given, **options)
            if options:
                raise InputError(f"an object that is made already takes no options, found {', '.join(options)}")
            return code.wrap(given)
        spelled = table["name"].strip()
        options = {**{key: value for key, value in table.items() if key != "name"}, **options}
        typed = spelled if isinstance(given, str) and not options else table_text({"name": spelled, **options})
        in_file = code.is_in_file(spelled)
        prefix, place, own = parse_spelling(f"{code.PREFIX}{spelled}" if in_file else spelled, self.kind)
        place = (place or "").strip().removesuffix("()")
        if prefix == "sklearn" and place:
            return sklearn_estimator.make_estimator(place, {**own, **options})
        if prefix == "python" and place:
            return code.load(place, {**own, **options}, folder, typed)
        if prefix == "model" and place:
            from shotproof.learners.model_head import ModelHead

            head = ModelHead.with_options(prefix, {"path": (folder or Path()) / place, **own, **options})
            for reach in head.reaches():
                require_trust(reach, typed)
            return head
        return super().make(spelled, **options)


methods = MethodRegistry("method", _BUILTIN)
make_method = methods.make


def _made_again(origin: CodeOrigin) -> Method:
    """The method of an origin, in another process."""
    from shotproof.learners.custom import code, sklearn_estimator

    if origin.name.startswith(sklearn_estimator.PREFIX):
        return sklearn_estimator.make_estimator(origin.name.removeprefix(sklearn_estimator.PREFIX), origin.options)
    return code.load_again(origin)
