"""Inputs of an analysis: results, task sets, catalogs, features and attributes, found by their digests."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.compute as pc

from shotproof.analysis.reevaluation.kept_arrays import Keeper, KeptArrays
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.file_options import FileOptions
from shotproof.core.limits import HALVINGS, TASKS_PER_HALF
from shotproof.core.records import TRANSFORMED, FeaturesRecord, MethodRecord, Source
from shotproof.core.trust import NotTrusted, Trust, reading_below, recorded_code, trusting
from shotproof.features.features import Features
from shotproof.features.transforms import Transform, transform, transforms
from shotproof.learners.custom.code import is_in_file
from shotproof.learners.method import AnyMethod, Method, make_method
from shotproof.results.evaluated import Evaluated
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

# Settings of a quick study: the fewest halvings that estimate a variance, and few tasks on each half. The variance
# added by few tasks is estimated and subtracted; as that estimate is less precise, the intervals are wider.
_QUICK_HALVINGS, _QUICK_TASKS_PER_HALF = 20, 50

Stored = TypeVar("Stored", Catalog, TaskSet, Features, Attributes)


def with_digest(candidates: Sequence[Stored], digest: str | None, description: str) -> Stored:
    """Return the object with this digest. Raise Mismatch if there is none.

    The error message begins with the description, which says what needs the object.
    """
    for candidate in candidates:
        if candidate.digest == digest:
            return candidate
    digests = ", ".join(candidate.digest for candidate in candidates) or "none"
    raise Mismatch(f"{description} {digest}, which was not given; available: {digests}")


@dataclass(frozen=True)
class Inputs:
    """Results with everything they were computed from.

    results: evaluation results
    tasks: task sets that the results are on
    catalogs: data sets
    features: features, one per encoder
    attributes: attributes, if a sampler needs them
    methods: methods that cannot be rebuilt from their spelling, such as a configured scikit-learn estimator or custom
        code
    halvings: number of random halvings of the data; None means 100, or fewer if that would take long
    tasks_per_half: number of tasks drawn on each half; None means 200
    seed: seed of the halvings
    trust: whether code named in the files may be imported and files elsewhere may be read, or which ones, as listed by
        `NotTrusted`
    folders: folders of the files; files below them may be read
    keeper: cache of re-evaluations; None means they are computed again

    Raises:
        InputError: fewer than two halvings or tasks per half, or a value that is not a list.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=12, items=40).catalog()
        >>> features = sp.encode(catalog, "dial(share=0.5)")
        >>> tasks = sp.sample(catalog, "random", tasks=20, query=5)
        >>> results = sp.evaluate(tasks, features, "ncc")
        >>> Inputs([results], [tasks], [catalog], [features], halvings=4)
        <Inputs: 1 results, 1 tasks, 1 catalogs, 1 features>
    """

    results: Sequence[Results] = ()
    tasks: Sequence[TaskSet] = ()
    catalogs: Sequence[Catalog] = ()
    features: Sequence[Features] = ()
    attributes: Sequence[Attributes] = ()
    methods: Sequence[AnyMethod] = ()
    halvings: int | None = None
    tasks_per_half: int | None = None
    seed: int = 0
    trust: Trust = False
    folders: Sequence[Path] = ()
    keeper: Keeper | None = None

    def __repr__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in ("results", "tasks", "catalogs", "features", "attributes")}
        return f"<Inputs: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}>"

    def __post_init__(self) -> None:
        if self.halvings is not None:
            HALVINGS.check("halvings", self.halvings)
        if self.tasks_per_half is not None:
            TASKS_PER_HALF.check("tasks_per_half", self.tasks_per_half)
        for name in ("results", "tasks", "catalogs", "features", "attributes", "methods"):
            if not isinstance(getattr(self, name), list | tuple):
                raise InputError(f"{name}: expected a list, found {type(getattr(self, name)).__name__}")

    def quickly(self) -> Inputs:
        """Return the inputs with fewer halvings and tasks, for faster re-evaluation and wider intervals."""
        return replace(self, halvings=_QUICK_HALVINGS, tasks_per_half=_QUICK_TASKS_PER_HALF)

    def require(self, interval: str, *names: str) -> None:
        """Raise InputError if one of these inputs is empty."""
        missing = [name for name in names if not getattr(self, name)]
        if missing:
            raise InputError(
                f"the interval '{interval}' re-evaluates the methods and needs {', '.join(names)}; no "
                f"{' and no '.join(missing)} were given: pass the files, or the run's folder that holds them"
            )

    def catalog(self, digest: str | None) -> Catalog:
        """Return the catalog with this digest."""
        return with_digest(self.catalogs, digest, "the tasks were drawn from catalog")

    def catalog_of(self, tasks: TaskSet) -> Catalog | None:
        """Return the catalog that tasks were drawn from, or the only one available."""
        catalog = next((catalog for catalog in self.catalogs if catalog.digest == tasks.record.source("catalog")), None)
        return self.catalogs[0] if catalog is None and len(self.catalogs) == 1 else catalog

    def attributes_of(self, tasks: TaskSet) -> Attributes | None:
        """Return the attributes that drew the tasks, else those of their catalog, else those with the first item."""
        item, catalog = tasks.table.column("support")[0][0], tasks.record.source("catalog")
        rules: list[Callable[[Attributes], bool]] = [
            lambda words: words.digest == tasks.record.source("attributes"),
            lambda words: catalog is not None and words.record.source("catalog") == catalog,
            lambda words: pc.index(words.table.column("item"), item).as_py() >= 0,
        ]
        return next((words for matches in rules for words in self.attributes if matches(words)), None)

    def cues_of(self, tasks: TaskSet) -> Mapping[str, Set[str]]:
        """Map items to their context or to their attributes, whichever the tasks were drawn by.

        Raises:
            Mismatch: the catalog or the attributes are missing.
        """
        column = tasks.record.context_column
        if column is None:
            words = with_digest(
                self.attributes, tasks.record.source("attributes"), "the tasks were drawn by attributes"
            )
            return {item: set(item_words or ()) for item, item_words in words.to_words().items()}
        catalog = self.catalog(tasks.record.source("catalog"))
        contexts = contexts_of(catalog, column)
        return {item: {context} for item, context in zip(catalog.items, contexts, strict=True) if context is not None}

    def task_set(self, digest: str | None, catalog: str | None) -> TaskSet:
        """Return the task set with this digest, preferably the copy drawn from this catalog."""
        same_catalog_first = sorted(self.tasks, key=lambda task_set: task_set.record.source("catalog") != catalog)
        return with_digest(same_catalog_first, digest, "the results are on the task set")

    def features_of(self, encoder: str, digest: str | None) -> Features:
        """Return the features that an encoder's results were computed on, with the recorded transforms applied."""
        if digest is None:  # the results do not record them
            if not self.features:
                raise Mismatch(f"the results of encoder '{encoder}' need features, and none were given")
            return self.features[0]
        records = (results.record for results in self.results)
        record = next((record.features for record in records if record.features_digest == digest), FeaturesRecord())
        candidates = self.with_transforms(record.as_source(digest))
        return with_digest(candidates, digest, f"the results of encoder '{encoder}' are on features")

    def with_transforms(self, source: Source) -> list[Features]:
        """Return all features and, if none matches the source, those of its encoder with its transforms applied."""
        all_features = list(self.features)
        if source.transforms and all(features.digest != source.digest for features in all_features):
            same_encoder = [
                features
                for features in all_features
                if TRANSFORMED.join([features.name, *source.transforms]) == source.name
            ]
            with self.trusted():
                steps = [self._located(spelling) for spelling in source.transforms] if same_encoder else []
                all_features += [transform(features, steps) for features in same_encoder]
        return all_features

    def _located(self, spelling: str) -> Transform:
        """Make a recorded transform; its files are named without their folders."""
        step = transforms.make(spelling)
        return step.located(self.folders) if isinstance(step, FileOptions) else step

    def method(self, spelling: str) -> Method:
        """Return the method of this spelling: a given one, or else rebuilt."""
        for method in map(make_method, self.methods):
            if method.spelling == spelling:
                return method
        records = (record for results in self.results for record in results.record.methods)
        prefix = f"method '{spelling}' of the results cannot be rebuilt: "
        digests = [str(record.options["file_digest"]) for record in records if _is_code(record, spelling)]
        # Paths of code files are relative to the run's folder or to the user's working directory.
        for folder in (*(self.folders if is_in_file(spelling) else ()), None):
            try:
                with self.trusted(), recorded_code(digests):
                    return make_method(spelling, folder)
            except NotTrusted as error:
                raise error.with_prefix(prefix) from error
            except InputError as error:
                reason = error
        raise reason.with_prefix(prefix) from reason

    def is_cached(self, kind: str, sets: Sequence[Evaluated]) -> bool:
        """Return whether a re-evaluation of these task sets of one design is cached."""
        return self.keeper is not None and self.keeper.is_current(*self._reevaluation(kind, sets))

    def cached_reevaluation(self, kind: str, sets: Sequence[Evaluated], make: Callable[[], KeptArrays]) -> KeptArrays:
        """Return a re-evaluation of task sets of one design from the cache, or compute and cache it.

        Args:
            kind: kind of re-evaluation: `images`, `classes`, `shuffles`, ...
            sets: the task sets with their classifiers
            make: function that computes it
        """
        if self.keeper is None:
            return make()
        arrays = self.keeper.step(KeptArrays, *self._reevaluation(kind, sets), make, compared=False)
        assert arrays is not None  # not a dry run
        return arrays

    def _reevaluation(self, kind: str, sets: Sequence[Evaluated]) -> tuple[str, list[Any], list[Any]]:
        """Return the file name of a re-evaluation, its inputs, and its parameters."""
        design = sets[0].origin.design
        records = {
            (results.record.features.classifier, record.spelling): record.options
            for results in self.results
            for record in results.record.methods
        }
        classifiers = dict.fromkeys(classifier for evaluated in sets for classifier in evaluated.values)
        inputs = [
            [evaluated.origin.tasks_digest for evaluated in sets],
            sorted({(encoder, str(digest)) for evaluated in sets for encoder, digest in evaluated.features.items()}),
            [[*classifier, records.get(classifier, {})] for classifier in classifiers],
        ]
        distinguishing = json.dumps([design.catalog, design.split, design.query, design.dial])  # none is a path
        digest = hashlib.sha256(distinguishing.encode()).hexdigest()[:6]
        name = f"reevaluations/{kind}-{design.way}way-{design.shot}shot-{digest}.parquet"
        return name, inputs, [self.halvings, self.tasks_per_half, self.seed]

    @contextlib.contextmanager
    def trusted(self) -> Iterator[None]:
        """Allow access to what the files name, as far as the user agrees, within the context."""
        with trusting(self.trust), reading_below(*self.folders):
            yield


def _is_code(record: MethodRecord, spelling: str) -> bool:
    """Return whether the record is that of a method with this spelling, defined in its own file."""
    return record.spelling == spelling and "file_digest" in record.options
