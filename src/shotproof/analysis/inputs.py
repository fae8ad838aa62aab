"""All that an analysis may need: results, task sets, catalogs, features and attributes, found by their digests."""

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
from shotproof.core.limits import HALVINGS, TASKS_PER_HALF
from shotproof.core.records import TRANSFORMED, FeaturesRecord, MethodRecord, Source
from shotproof.core.trust import NotTrusted, Trust, reading_below, recorded_code, trusting
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.learners.custom.code import is_in_file
from shotproof.learners.method import AnyMethod, Method, make_method
from shotproof.results.evaluated import Evaluated
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

# What a quick study re-evaluates: the fewest halvings of the data that tell a variance, and few tasks on each half.
# What few tasks add to the variance is known and taken off; that it is known less well makes the intervals wider.
_QUICK_HALVINGS, _QUICK_TASKS_PER_HALF = 20, 50

Stored = TypeVar("Stored", Catalog, TaskSet, Features, Attributes)


def with_digest(given: Sequence[Stored], digest: str | None, what: str) -> Stored:
    """The one with this digest; `what` says in the error who needs it."""
    for one in given:
        if one.digest == digest:
            return one
    known = ", ".join(one.digest for one in given) or "none"
    raise Mismatch(f"{what} {digest}, which was not given; given: {known}")


@dataclass(frozen=True)
class Inputs:
    """What was read from files, or made.

    results: what was evaluated
    tasks: the task sets that the results are on
    catalogs: the data sets
    features: one per encoder
    attributes: where a sampler needs them
    methods: those that cannot be made anew from their spelling, such as a scikit-learn estimator with its settings, or
        code of your own
    halvings: how often the data is halved at random; None is 100 times, or less often where that would take long
    tasks_per_half: how many tasks are drawn on each half; None is 200
    seed: of the halves
    trust: whether code that the files name may be imported, and files elsewhere be read; or which, as `NotTrusted`
        tells it
    folders: where the files lie; what they name below these may be read
    keeper: keeps re-evaluations, so that none is made twice; None: they are made anew

    Raises:
        InputError: fewer than two halvings or tasks on a half, or something that is not a list.

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
        held = {name: len(getattr(self, name)) for name in ("results", "tasks", "catalogs", "features", "attributes")}
        return f"<Inputs: {', '.join(f'{count} {name}' for name, count in held.items() if count)}>"

    def __post_init__(self) -> None:
        if self.halvings is not None:
            HALVINGS.check("halvings", self.halvings)
        if self.tasks_per_half is not None:
            TASKS_PER_HALF.check("tasks_per_half", self.tasks_per_half)
        for name in ("results", "tasks", "catalogs", "features", "attributes", "methods"):
            if not isinstance(getattr(self, name), list | tuple):
                raise InputError(f"{name}: expected a list, found {type(getattr(self, name)).__name__}")

    def quickly(self) -> Inputs:
        """Return the same, to be re-evaluated less, so that intervals are wider."""
        return replace(self, halvings=_QUICK_HALVINGS, tasks_per_half=_QUICK_TASKS_PER_HALF)

    def require(self, interval: str, *names: str) -> None:
        """Refuse to go on without these."""
        missing = [name for name in names if not getattr(self, name)]
        if missing:
            raise InputError(
                f"the interval '{interval}' re-evaluates the methods: it needs {', '.join(names)}, and there are no "
                f"{' and no '.join(missing)}; give the files, or the run's folder that has them"
            )

    def catalog(self, digest: str | None) -> Catalog:
        """The catalog with this digest."""
        return with_digest(self.catalogs, digest, "the tasks were drawn from catalog")

    def catalog_of(self, tasks: TaskSet) -> Catalog | None:
        """Return the catalog that tasks were drawn from, or the only one that there is."""
        own = next((catalog for catalog in self.catalogs if catalog.digest == tasks.record.source("catalog")), None)
        return self.catalogs[0] if own is None and len(self.catalogs) == 1 else own

    def attributes_of(self, tasks: TaskSet) -> Attributes | None:
        """Return the attributes that tasks were drawn with, or that are of the same catalog, or know the first item."""
        item, catalog = tasks.table.column("support")[0][0], tasks.record.source("catalog")
        rules: list[Callable[[Attributes], bool]] = [
            lambda words: words.digest == tasks.record.source("attributes"),
            lambda words: catalog is not None and words.record.source("catalog") == catalog,
            lambda words: pc.index(words.table.column("item"), item).as_py() >= 0,
        ]
        return next((words for fits in rules for words in self.attributes if fits(words)), None)

    def cues_of(self, tasks: TaskSet) -> Mapping[str, Set[str]]:
        """Map items to their context, or to their attributes, whichever the tasks were drawn by.

        Raises:
            Mismatch: the catalog, or the attributes, are not there.
        """
        column = tasks.record.context_column
        if column is None:
            words = with_digest(
                self.attributes, tasks.record.source("attributes"), "the tasks were drawn by attributes"
            )
            return {item: set(held or ()) for item, held in words.to_words().items()}
        catalog = self.catalog(tasks.record.source("catalog"))
        contexts = contexts_of(catalog, column)
        return {item: {context} for item, context in zip(catalog.items, contexts, strict=True) if context is not None}

    def task_set(self, digest: str | None, catalog: str | None) -> TaskSet:
        """The task set with this digest; the same tasks may be of several catalogs, best of this one."""
        best_first = sorted(self.tasks, key=lambda one: one.record.source("catalog") != catalog)
        return with_digest(best_first, digest, "the results are on the task set")

    def features_of(self, encoder: str, digest: str | None) -> Features:
        """The features that the results of an encoder were made from, after the transforms that their record tells."""
        if digest is None:  # the results do not say
            if not self.features:
                raise Mismatch(f"the results of encoder '{encoder}' need features, and none were given")
            return self.features[0]
        records = (results.record for results in self.results)
        record = next((one.features for one in records if one.features_digest == digest), FeaturesRecord())
        given = self.with_transforms(record.as_source(digest))
        return with_digest(given, digest, f"the results of encoder '{encoder}' are on features")

    def with_transforms(self, wanted: Source) -> list[Features]:
        """All features and, if none of them is what is wanted, those of its encoder after its transforms."""
        given = list(self.features)
        if wanted.transforms and all(features.digest != wanted.digest for features in given):
            same = [one for one in given if TRANSFORMED.join([one.name, *wanted.transforms]) == wanted.name]
            with self.trusted():
                given += [transform(features, wanted.transforms) for features in same]
        return given

    def method(self, spelling: str) -> Method:
        """The method of this spelling: one of those given, or made anew."""
        for given in map(make_method, self.methods):
            if given.spelling == spelling:
                return given
        records = (record for results in self.results for record in results.record.methods)
        refusal = f"method '{spelling}' of the results cannot be made anew: "
        digests = [str(record.options["file_digest"]) for record in records if _is_code(record, spelling)]
        # Files of code are spelled from the run's folder, or from where the user worked.
        for folder in (*(self.folders if is_in_file(spelling) else ()), None):
            try:
                with self.trusted(), recorded_code(digests):
                    return make_method(spelling, folder)
            except NotTrusted as error:
                raise error.placed(refusal) from error
            except InputError as error:
                reason = error
        raise reason.placed(refusal) from reason

    def is_kept(self, what: str, sets: Sequence[Evaluated]) -> bool:
        """Return whether a re-evaluation of these task sets of one design was kept."""
        return self.keeper is not None and self.keeper.is_current(*self._reevaluation(what, sets))

    def reevaluated(self, what: str, sets: Sequence[Evaluated], make: Callable[[], KeptArrays]) -> KeptArrays:
        """Return a re-evaluation of task sets of one design: as it was kept, or else made, and kept.

        Args:
            what: is evaluated: `images`, `classes`, `shuffles`, ...
            sets: the task sets with their classifiers
            make: evaluates it
        """
        if self.keeper is None:
            return make()
        kept = self.keeper.step(KeptArrays, *self._reevaluation(what, sets), make, compared=False)
        assert kept is not None  # it is no dry run
        return kept

    def _reevaluation(self, what: str, sets: Sequence[Evaluated]) -> tuple[str, list[Any], list[Any]]:
        """Return the name of a re-evaluation's file, what it is made from, and by what."""
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
        told_apart = json.dumps([design.catalog, design.split, design.query, design.dial])  # none of them is a path
        digest = hashlib.sha256(told_apart.encode()).hexdigest()[:6]
        name = f"reevaluations/{what}-{design.way}way-{design.shot}shot-{digest}.parquet"
        return name, inputs, [self.halvings, self.tasks_per_half, self.seed]

    @contextlib.contextmanager
    def trusted(self) -> Iterator[None]:
        """Within it, what the files name may be reached as far as the user agrees."""
        with trusting(self.trust), reading_below(*self.folders):
            yield


def _is_code(record: MethodRecord, spelling: str) -> bool:
    """Whether this is the record of a method of this spelling in a file of its own."""
    return record.spelling == spelling and "file_digest" in record.options
