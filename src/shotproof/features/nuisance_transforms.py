"""Transforms against what should not matter, in closed form, fitted on base classes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import CHANGED, unchanged_names
from shotproof.catalog.contexts import contexts_of
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.options import option
from shotproof.core.records import TRANSFORMED, FittedOn, Maker, MapRecord, Source
from shotproof.core.spelling import parse_spelling
from shotproof.features.base_classes import BaseClasses
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.features.map_transforms import MapTransform
from shotproof.features.transforms import OnBase, Transform, apply_step, in_blocks, per_channel
from shotproof.functional.nuisance import (
    LowRankMap,
    context_differences,
    group_deviations,
    group_means,
    leace_map,
    nuisance_directions,
    projection_map,
    wccn_map,
    within_class_axes,
    word_differences,
)

CONTEXT_COLUMN = "column of the catalog with the contexts"
ATTRIBUTES = "for words: the words of the base items"


@dataclass(frozen=True)
class OnClasses(OnBase):
    """Step that is fitted on the classes of a base set, which should be other classes than those evaluated."""

    catalog: Path | Catalog = option(help="catalog with the classes of the base items", path=True)
    split: str | None = option(None, "split of the catalog to fit on; by default, all items of the base set")

    def after(self, features: Features, steps: Mapping[str, Transform]) -> Self:
        """Apply the earlier steps of the features to the base set, unless it went through them already."""
        base = self.base_set
        further = tuple(map(str, features.record.transforms))[len(base.record.transforms) :]
        if not further or features.name != TRANSFORMED.join([base.name, *further]):
            return self
        following, earlier = copy.copy(self), dict(steps)
        for spelling in further:
            _, base = apply_step(base, earlier.get(spelling, spelling), earlier)
        vars(following).update(_contents=self._contents, base_set=base)
        return following

    def remarks(self, features: Features) -> Iterator[str]:
        """Warn if the base set was prepared in another way, or has all items or classes that are to be evaluated."""
        yield from super().remarks(features)
        if self.base_set.record.transforms != features.record.transforms:
            yield (
                f"the base set '{self.base_set.name}' and the features '{features.name}' went through different steps: "
                "apply the same ones to both"
            )
        labels = self._catalog.table.column("label").take(
            pc.index_in(features.table.column("item"), value_set=self._catalog.item_column)
        )
        is_base_class = pc.is_in(labels, value_set=pa.array(self.base_classes.labels, pa.string()))
        if pc.all(is_base_class).as_py() and not self._has_all_items(features):
            yield (
                "all classes to evaluate are in the base set, whose statistics leak information about them: "
                "fit on other classes, e.g. with split='train'"
            )

    def fitted_on(self) -> FittedOn:
        """Return the step, and the number of base classes."""
        return FittedOn(Maker.of(self), len(self.base_classes.labels))

    @cached_property
    def base_classes(self) -> BaseClasses:
        """Return the labeled items of the base set."""
        with error_prefix(f"{self._title}: "):
            return BaseClasses.of(self.base_set, self._catalog, self.split)

    @property
    def base_items(self) -> pa.Array:
        """Return the items that the step is fitted on."""
        return self.base_classes.items

    @property
    def _catalog(self) -> Catalog:
        catalog: Catalog = self.content("catalog")
        return catalog


@dataclass(frozen=True)
class ClassMap(OnClasses, MapTransform):
    """Step that fits a linear map on base classes."""

    @cached_property
    def map(self) -> FittedMap:
        """Return the map, fitted on the base set."""
        labels = self.base_classes.labels
        with error_prefix(f"{self._title}: "):
            low_rank = self.fit()
        base = self.base_set
        sources = {
            "features": Source(base.digest, base.name),
            "catalog": Source(self._catalog.digest, self._catalog.record.name),
        }
        if self._attributes is not None:
            sources["attributes"] = Source(self._attributes.digest, self._attributes.record.name)
        record = MapRecord(
            name=self.name,
            sources=sources,
            transform=Maker.of(self),
            features=base.name,
            transforms=tuple(map(str, base.record.transforms)),
            classes=tuple(labels),
        )
        return FittedMap.of(low_rank, record)

    def varied(self, **options: Any) -> Self:
        """Return the step with other options, fitted by what was computed of the same base set."""
        varied = copy.copy(self)
        vars(varied).update(options)
        vars(varied).pop("map", None)
        return varied

    @abstractmethod
    def fit(self) -> LowRankMap:
        """Fit the map in float64."""

    @property
    def _attributes(self) -> Attributes | None:
        return None


@dataclass(frozen=True)
class Wccn(ClassMap):
    """x -> c (S + r I)^(-1/2) x, where S is the covariance within base classes.

    Directions in which items of one class differ become short. The ridge r is a multiple of the mean eigenvalue of S:
    with a small one, directions that hardly vary in the base set dominate. c leaves the mean variance within base
    classes as it is.
    """

    about = "shrink directions in which items of a class differ (within-class covariance normalization)"
    paper = "Hatch et al., Within-Class Covariance Normalization for SVM-Based Speaker Recognition, Interspeech 2006"
    example = "wccn(base='base.parquet', catalog='catalog.parquet')"

    ridge: float = option(10.0, "ridge, in mean eigenvalues of the covariance within classes", above=0)

    def fit(self) -> LowRankMap:
        """Compute the map from the pooled covariance."""
        eigenvalues, vectors = self._axes
        if not eigenvalues.sum() > 0:
            raise InputError("the items of the base set do not differ within classes")
        return wccn_map(eigenvalues, vectors, self.ridge)

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues and eigenvectors of the pooled covariance."""
        return within_class_axes(self.base_classes.values, self.base_classes.classes)


@dataclass(frozen=True)
class OnNuisance(ClassMap):
    """Step that is fitted on what should not matter: contexts or words, within base classes."""

    attributes: Path | Attributes | None = option(None, ATTRIBUTES, path=True)
    context_column: str = option("context", CONTEXT_COLUMN)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._source == "words" and self.attributes is None:
            raise InputError(
                f"{self._title}: by='words' needs attributes, e.g. attributes='attributes.parquet', which "
                "shotproof detect makes"
            )

    @property
    @abstractmethod
    def _source(self) -> str:
        """Return what should not matter."""

    @property
    def _attributes(self) -> Attributes | None:
        """Return the words of the base items, if they are used."""
        attributes: Attributes | None = self.content("attributes") if self._source == "words" else None
        return attributes

    def _in_contexts(self) -> tuple[BaseClasses, IntArray]:
        """Return the base items that have a context, with the number of each context, [n]."""
        contexts = self.base_classes.contexts(self.context_column)
        has_context = np.array([context is not None for context in contexts])
        names = [context for context in contexts if context is not None]
        return self.base_classes.select(has_context), np.unique(names, return_inverse=True)[1].astype(np.int64)

    def _with_words(self) -> tuple[BaseClasses, scipy.sparse.csr_matrix]:
        """Return the base items with known words, and whether each holds each word, [n, w]."""
        attributes = self._attributes
        assert attributes is not None  # checked when the step is made
        words = attributes.of_items(self.base_classes.items)
        if not words.matrix.nnz:
            raise InputError("the attributes have no words for the base items")
        return self.base_classes.select(words.known), words.matrix[words.known]


@dataclass(frozen=True)
class Nap(OnNuisance):
    """x - V V'x: remove the leading directions V in which items of the same base class differ, but should not.

    contexts: means of a class's items in each context, minus the mean of the class, weighted by their numbers
    words: for each class and word, the mean of the items that hold it minus that of the others, weighted likewise
    changes: features of an item and of its changed versions, minus their mean

    V are the right singular vectors of these differences with the largest singular values.
    """

    about = "remove the directions of what should not matter (nuisance attribute projection)"
    paper = "Solomonoff et al., Channel Compensation for SVM Speaker Recognition, Odyssey 2004"
    example = "nap(base='base.parquet', catalog='catalog.parquet', by='contexts')"

    by: Literal["contexts", "words", "changes"] = option("contexts", "what should not matter")
    directions: int = option(15, "number of directions to remove", least=1)

    def fit(self) -> LowRankMap:
        """Select the leading directions."""
        if self.directions > self.available:
            raise InputError(
                f"directions: expected at most {self.available}, the number of directions in which the {self.by} of "
                f"the base set differ within classes, found {self.directions}"
            )
        return projection_map(self._spanned[:, : self.directions])

    @property
    def available(self) -> int:
        """Return the number of directions that can be removed, so that at least one remains.

        Raises:
            InputError: there is nothing to fit on, such as no contexts.
        """
        dimensions, spanned = self._spanned.shape
        return int(min(spanned, dimensions - 1))

    @property
    def _source(self) -> str:
        return self.by

    @cached_property
    def _spanned(self) -> FloatArray:
        """Return all directions in which there are differences, [d, k], the strongest first."""
        differences = {"contexts": self._of_contexts, "words": self._of_words, "changes": self._of_changes}[self.by]
        directions = nuisance_directions(differences(), self.base_classes.values)
        if not directions.shape[1]:
            raise InputError(f"no items of a base class differ in {self.by}")
        return directions

    def _of_contexts(self) -> Iterator[FloatArray]:
        base, contexts = self._in_contexts()
        yield context_differences(base.values, base.classes, contexts)

    def _of_words(self) -> Iterator[FloatArray]:
        base, holds = self._with_words()
        for place in range(len(base.labels)):
            in_class = np.flatnonzero(base.classes == place)
            yield word_differences(base.values[in_class], holds[in_class])

    def _of_changes(self) -> Iterator[FloatArray]:
        base = BaseClasses.of(self.base_set, self._catalog, self.split, changed=True)
        if not base.changed.any():
            raise InputError(
                f"the base set '{self.base_set.name}' has no changed items, such as '{base.items[0].as_py()}{CHANGED}"
                "blur': shotproof encode CATALOG --tasks TASKS encodes those of task sets with changes"
            )
        yield group_deviations(base.values, base.originals)


@dataclass(frozen=True)
class Leace(OnNuisance):
    """r(x) = x - W^+ P W (x - mean): the least change after which no linear rule tells contexts or words.

    W whitens the features, and P projects on the covariance of the whitened features with the contexts or words. All
    are computed within base classes. The base set should have more items than dimensions: with fewer, what is erased is
    particular to these items.
    """

    about = "erase what linear rules can tell of contexts or words (least-squares concept erasure)"
    paper = "Belrose et al., LEACE: Perfect Linear Concept Erasure in Closed Form, NeurIPS 2023"
    example = "leace(base='base.parquet', catalog='catalog.parquet', by='contexts')"

    by: Literal["contexts", "words"] = option("contexts", "what to erase")
    words: int = option(20, "number of words to erase: those that vary most within base classes", least=1)

    def fit(self) -> LowRankMap:
        """Compute the erasure."""
        if self.by == "contexts":
            base, contexts = self._in_contexts()
            concepts = np.eye(contexts.max() + 1)[contexts]
        else:
            base, holds = self._with_words()
            concepts = _most_varying(base, holds, self.words)
        erasure = leace_map(base.values, base.classes, concepts)
        rank, d = erasure.directions.shape[1], len(erasure.directions)
        if not rank:
            raise InputError(f"no items of a base class differ in {self.by}")
        if rank >= d:
            raise InputError(f"to erase {concepts.shape[1]} {self.by} leaves nothing of {d} dimensions: erase fewer")
        return erasure

    @property
    def _source(self) -> str:
        return self.by


@dataclass(frozen=True)
class CenterContexts(OnClasses):
    """Subtract from each item the mean of the base items in its context, and add that of all base items in contexts.

    The contexts of the items to evaluate must be in the catalog, and be known when the classifier is used. Items
    without a context, or in one that no base item has, are left as they are, with a warning, and so are items on a
    changed background; it is an error if all are. Other changed items have the context of the item that they are made
    of.
    """

    about = "subtract the mean of each item's context"
    example = "center-contexts(base='base.parquet', catalog='catalog.parquet')"

    context_column: str = option("context", CONTEXT_COLUMN)

    def prepare(self, features: Features) -> None:
        """Check that the context of at least one item occurs in the base set."""
        super().prepare(features)
        left, problem = self._left_items(features)
        if left == len(features):
            raise InputError(f"{self._title}: {problem}; the base set has {', '.join(self._names[:12])}")

    def remarks(self, features: Features) -> Iterator[str]:
        """Warn if items are left as they are."""
        yield from super().remarks(features)
        left, problem = self._left_items(features)
        if left:
            yield f"{problem}: they are left as they are"

    def apply(self, values: FloatArray) -> FloatArray:
        """Reject values alone, whose items are not known."""
        raise InputError(f"{self._title} needs to know which items the values are of: use transform, not apply")

    def apply_to(self, features: Features) -> npt.NDArray[Any]:
        """Subtract the means of the items' contexts; for maps, at every location."""
        codes = self._codes(self._contexts_of(features))
        return in_blocks(features, lambda values, rows: values - per_channel(self._means[codes[rows]], values))

    def _left_items(self, features: Features) -> tuple[int, str]:
        """Return the number of items that have no context of the base set, and a description of them."""
        contexts = self._contexts_of(features)
        is_left = self._codes(contexts) == len(self._names)
        place, left = int(np.argmax(is_left)), int(np.count_nonzero(is_left))
        item, context = features.table.column("item")[place].as_py(), contexts[place]
        example = f"'{item}' has none" if context is None else f"'{item}' is in '{context}'"
        return left, f"{left:,} of the {len(contexts):,} items have no context of the base set, e.g. {example}"

    @cached_property
    def _base_contexts(self) -> list[str | None]:
        base = self.base_classes
        with error_prefix(f"{self._title}: "):
            return base.contexts(self.context_column)

    @cached_property
    def _names(self) -> list[str]:
        """Return the contexts of the base set, sorted."""
        return sorted({context for context in self._base_contexts if context is not None})

    @cached_property
    def _means(self) -> FloatArray:
        """Return the mean of each context minus that of all, [contexts + 1, d]; the last is 0."""
        codes = self._codes(self._base_contexts)
        has_context = codes < len(self._names)
        values = self.base_classes.values[has_context]
        means = group_means(values, codes[has_context]) - values.mean(0)
        return np.concatenate([means, np.zeros((1, values.shape[1]))])

    def _codes(self, contexts: list[str | None]) -> IntArray:
        """Return the place of each context among those of the base set, and their number for any other."""
        places = {name: place for place, name in enumerate(self._names)}
        return np.array([places.get(context or "", len(places)) for context in contexts], dtype=np.int64)

    def _contexts_of(self, features: Features) -> list[str | None]:
        """Return the context of each item of the features."""
        items = features.table.column("item")
        unchanged = unchanged_names(self._catalog, items)
        rows = self._catalog.rows_of(pc.coalesce(unchanged, items), f"{self._title}: items to evaluate")
        with error_prefix(f"{self._title}: "):
            contexts = contexts_of(self._catalog, self.context_column)
        triples = zip(items.to_pylist(), unchanged.to_pylist(), rows, strict=True)
        return [None if _has_other_background(item, original) else contexts[row] for item, original, row in triples]


def _has_other_background(item: str, unchanged: str) -> bool:
    """Return whether an item has another background than the one that it is made of."""
    if item == unchanged:
        return False
    name, _, _ = parse_spelling(item.removeprefix(f"{unchanged}{CHANGED}"))
    return name in changes and issubclass(changes.get(name), BackgroundChange)


def _most_varying(base: BaseClasses, holds: scipy.sparse.csr_matrix, words: int) -> FloatArray:
    """Return the words that vary most within classes, as indicators [n, words]."""
    sizes = np.bincount(base.classes)
    members = scipy.sparse.csr_matrix((np.ones(len(base.classes)), (base.classes, np.arange(len(base.classes)))))
    shares = np.asarray((members @ holds.astype(np.float64)).todense()) / sizes[:, None]
    variation = (shares * (1 - shares) * sizes[:, None]).sum(0)
    most = np.sort(np.argsort(-variation, kind="stable")[:words])
    indicators: FloatArray = holds[:, most].toarray().astype(np.float64)
    return indicators
