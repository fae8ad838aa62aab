"""The steps of an experiment, top to bottom: catalog, mixtures, attributes, features, tasks, results.

What a long step has done is kept when it is interrupted: features in their cache, captions in their log. Results are
one file per task set, encoder and method, so that a method that is added is the only one to be evaluated.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import Reader, detect
from shotproof.attributes.detectors.photometric import PhotometricDetector
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import apply_names, apply_splits
from shotproof.catalog.layout import read_layout
from shotproof.comparison.numbers import listed
from shotproof.core.errors import InsufficientData, Mismatch, UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.files import is_there
from shotproof.features.encoder import encode, recorded
from shotproof.features.encoders.pretrained_network import NetworkEncoder, look_while_encoding
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.media.images import is_readable
from shotproof.pipeline.checks import check_draws, check_models, check_surroundings, check_tuning, placed, with_stages
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.drawn_sets import DrawnSet, DrawnSets
from shotproof.pipeline.steps.evaluated_files import EvaluatedFiles
from shotproof.pipeline.steps.steps import Steps, file_name, file_stamps
from shotproof.sounds.mix import expected_mixtures, mix
from shotproof.tasks.sampler import samplers
from shotproof.tasks.taskset import TaskSet, TaskShape

if TYPE_CHECKING:
    from shotproof.models.model import Model


SIZES = ("way", "shot", "query")


def read_catalog(experiment: Experiment) -> Catalog:
    """The data of an experiment, before anything is mixed: looked at anew, so that changed files are seen."""
    given = experiment
    if given.at_hand.catalogs:
        return given.at_hand.catalogs[0]
    if given.catalog_file is not None:
        catalog = Catalog.read(given.catalog_file)
        catalog = catalog if given.root is None else Catalog(catalog.table, given.root, catalog.record)
        catalog = catalog if given.splits is None else apply_splits(catalog, given.splits)
        catalog = catalog if given.names is None or given.mix else apply_names(catalog, given.names)
        if not catalog.record.name or given.name:
            named = given.name or given.catalog_file.stem
            catalog = Catalog(catalog.table, catalog.root, replace(catalog.record, name=named))
    else:
        assert given.root is not None
        assert given.layout is not None
        names = None if given.mix else given.names  # of mixtures, they are given to these
        catalog = read_layout(given.root, given.layout, splits=given.splits, names=names, name=given.name)
    return catalog if given.only_split is None or given.mix else catalog.in_split(given.only_split)


@dataclass
class ExperimentSteps:
    """Makes what an experiment asks for; whatever is up to date is not made again.

    leave_out: leave out samplers, other than the first, whose tasks the data cannot give; these are an error otherwise
    left_out: why these were left out, by spelling
    """

    experiment: Experiment
    steps: Steps
    leave_out: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    _encoded: dict[str, Features] = field(default_factory=dict)  # by encoder, from the pass that made words

    def make(self) -> Inputs | None:
        """Make everything up to the results, and return it; None in a dry run."""
        with placed(self.experiment, "[evaluate], model"):
            models = self.experiment.read_models()
        with self.steps.stage("catalog") as stage:
            catalog = self._kept(self._checked_catalog(models))
            classes = len(catalog.table.column("label").unique())
            stage.done = f"{counted(len(catalog), 'item')}, {classes:,} classes"
        with self.steps.stage("attributes"):
            attributes = self._attributes(catalog)
        with self.steps.stage("features", len(self.experiment.encoders)):
            self._require_readable(catalog, attributes)
            features: dict[str, Features | None] = {own.name: own for own in self.experiment.at_hand.features}
            features |= {str(encoder): self._features(catalog, encoder) for encoder in self.experiment.encoders}
            catalog = self._readable(catalog, features)
        with self.steps.stage("tasks"):
            tasks = self._drawn(DrawnSets(self.experiment, self.steps, catalog, attributes, features))
        evaluation = EvaluatedFiles(self.experiment, self.steps, catalog, features, models)
        with self.steps.stage("evaluation", evaluation.count(tasks)):
            results = evaluation.on(tasks)
        if self.steps.dry_run:
            return None
        self.steps.finish()
        folder = self.steps.folder
        return Inputs(
            results=[made for made in results if made is not None],
            tasks=[drawn.tasks for drawn in tasks.values() if drawn.tasks is not None],
            catalogs=[catalog],
            features=[encoded for encoded in features.values() if encoded is not None],
            attributes=[words for words in attributes.values() if words is not None],
            methods=self.experiment.methods,
            folders=[*([] if folder is None else [folder]), *(file.parent for file in self.experiment.task_files)],
            keeper=self.steps,
        )

    def _drawn(self, sets: DrawnSets) -> dict[str, DrawnSet]:
        """Task sets drawn before, and those of every draw; without those that the data cannot give, where left out."""
        found = {}
        for name, given in self._task_files(sets.catalog).items():
            kept = self.steps.step(TaskSet, name, [given], None, lambda given=given: given)  # type: ignore[misc]
            shape = TaskShape(**{key: size for key, size in zip(SIZES, given.common_sizes(), strict=True) if size})
            found[name] = DrawnSet(kept, shape)
        for number, draw in enumerate(self.experiment.draws):
            files = list(self.steps.files)
            try:
                found |= sets.of_draw(draw)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                self.steps.files[:] = files
                self.left_out[str(draw.sampler)] = f"{_fewer_ways(sets, draw)}{error}"
        return found

    def _task_files(self, catalog: Catalog) -> dict[str, TaskSet]:
        """The task sets that were drawn before, by the names of their files in the run's folder."""
        found = {}
        for file in self.experiment.task_files:
            with placed(self.experiment, "[tasks], files"):
                tasks = _with_files_beside(TaskSet.read(file), file.parent)
                drawn_from = tasks.record.source("catalog")
                if drawn_from not in (None, catalog.digest):
                    raise Mismatch(
                        f"the tasks of {file} were drawn from catalog {drawn_from}, not from {catalog.digest}"
                    )
                for side in ("support", "query"):
                    catalog.rows_of(pc.list_flatten(tasks.table.column(side)), f"the tasks of {file}")
            found[file.name if file.name.startswith("tasks-") else f"tasks-{file.name}"] = tasks
        return found

    def _check_draws(self, catalog: Catalog) -> None:
        """Refuse, or leave out, what the data cannot give."""
        self._task_files(catalog)
        attributes = self._attribute_files()
        kept = []
        for number, draw in enumerate(self.experiment.draws):
            try:
                check_draws(replace(self.experiment, draws=(draw,)), catalog, attributes)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                ways = _fewer_ways(DrawnSets(self.experiment, self.steps, catalog, {**attributes}, {}), draw)
                self.left_out[str(draw.sampler)] = f"{ways}{error.__cause__ or error}"  # without its place in the file
            else:
                kept.append(draw)
        self.experiment = replace(self.experiment, draws=tuple(kept))

    def _kept(self, catalog: Catalog) -> Catalog:
        """The catalog as its file has it."""
        parameters = [catalog.record.name, catalog.record.to_meta()]
        written: Catalog | None = self.steps.step(Catalog, "catalog.parquet", [catalog], parameters, lambda: catalog)
        return catalog if written is None else written.with_stamp_of(catalog)

    def _checked_catalog(self, models: dict[str, Model]) -> Catalog:
        """The data, and nothing made of it before all that is asked for was seen to be possible."""
        given = self.experiment
        runtime = current_runtime()
        check_surroundings(given, None if runtime.remote else runtime.device)  # other machines have other devices
        with placed(given, "[catalog]"):
            recordings = catalog = read_catalog(given)
        if given.mix is not None:
            with placed(given, "[mix]"):
                catalog = self._mixtures(recordings, make=False)
        self._check_draws(catalog)
        given = self.experiment
        check_models(given, models, catalog)
        check_tuning(given, models, catalog)
        given = self.experiment = with_stages(given, catalog)
        for name, chosen in given.detectors.items():
            if not self.steps.is_current(*self._detection(catalog, name)):
                with placed(given, "[attributes], detectors"):
                    for detector in chosen:
                        detector.check(catalog)
        for encoder in given.encoders:
            if not self.steps.is_current(*self._encoding(catalog, encoder)):
                with placed(given, "[features], encoders"):
                    encoder.check(catalog)
        if given.mix is not None:
            with placed(given, "[mix]"):
                mixed = self._mixtures(recordings, make=True)
            if mixed.digest != catalog.digest:  # some were left out, for silence or by a threshold
                self._check_draws(mixed)
            return mixed
        return catalog

    def _mixtures(self, recordings: Catalog, make: bool) -> Catalog:
        """The mixtures of the recordings: as they are, or made where they are not; else as they are expected to be."""
        given = self.experiment
        assert given.mix is not None
        mapping, settings = given.mix.mapping, given.mix.settings
        folder = given.mix.folder(recordings.digest)
        step = f"{folder}/catalog.parquet", [recordings, recordings.stamp], given.mix.parameters()
        mixed: Catalog | None = None
        if make:
            mixed = self.steps.step(Catalog, *step, lambda: mix(recordings, mapping, given.folder / folder, settings))
        elif self.steps.is_current(*step):
            mixed = Catalog.read(given.folder / step[0])
        if mixed is None:
            mixed = expected_mixtures(recordings, mapping, given.folder / folder, settings)
        mixed = mixed if given.names is None else apply_names(mixed, given.names)
        return mixed if given.only_split is None else mixed.in_split(given.only_split)

    def _attribute_files(self) -> dict[str, Attributes]:
        """The sets of attributes that were made before, by name."""
        found = {}
        for name, file in self.experiment.attribute_files.items():
            with placed(self.experiment, "[attributes], file" if not name else f"[attributes], files, {name}"):
                read = Attributes.read(file)
            found[name] = _named(read, name or read.record.name or file.stem)
        return {**found, **{own.record.name: own for own in self.experiment.at_hand.attributes}}

    def _attributes(self, catalog: Catalog) -> dict[str, Attributes | None]:
        """Sets of attributes by name."""
        found: dict[str, Attributes | None] = {}
        for name, given in self._attribute_files().items():

            def there(given: Attributes = given) -> Attributes:
                return given

            found[name] = self.steps.step(Attributes, _attributes_file(name), [given], given.record.name, there)
        for name, chosen in self.experiment.detectors.items():
            spelled = " + ".join(map(str, chosen))

            def make(name: str = name, chosen: Any = chosen, spelled: str = spelled) -> Attributes:
                # Of images that cannot be read, the step of the features says what is done about them.
                told_later = self._encodes and all(isinstance(one, PhotometricDetector) for one in chosen)
                with without_warnings() if told_later else contextlib.nullcontext():
                    return _named(detect(catalog, *chosen, reader=self._reader(catalog)), name or spelled)

            found[name] = self.steps.step(Attributes, *self._detection(catalog, name), make)
        return found

    def _reader(self, catalog: Catalog) -> Reader | None:
        """Return what decodes each image once, for words and for the first encoder that is yet to read all of them."""
        runtime = current_runtime()
        for encoder in self.experiment.encoders:
            if not isinstance(encoder, NetworkEncoder) or not encoder.reduces or encoder.medium != catalog.medium:
                continue
            made = str(encoder) in self._encoded or self.steps.is_current(*self._encoding(catalog, encoder))
            if not made and not runtime.remote:
                return partial(self._read, encoder)
        return None

    def _read(self, encoder: NetworkEncoder, catalog: Catalog, look: Callable[[Path], Any]) -> list[Any]:
        """Return what is seen of each image, and keep the features that were made meanwhile."""
        features, seen = look_while_encoding(catalog, encoder, look, current_runtime())
        if features is not None:
            self._encoded[str(encoder)] = features
        return seen

    def _detection(self, catalog: Catalog, name: str) -> tuple[str, list[Any], list[str]]:
        """The file of a set of attributes, what it is made from, and by what."""
        chosen = self.experiment.detectors[name]
        stamps = [file_stamps(one) for one in chosen]
        return _attributes_file(name), [catalog, catalog.stamp, stamps], [name, *map(str, chosen)]

    def _features(self, catalog: Catalog, encoder: Any) -> Features | None:
        def make() -> Features:
            encoded = self._encoded.pop(str(encoder), None)
            if encoded is not None:
                if encoded.record.skipped and self.experiment.on_error != "skip":
                    raise unreadable_files(catalog, list(encoded.record.skipped))
                return recorded(encoded, encoder, catalog)
            if self.experiment.on_error == "skip":
                return encode(catalog, encoder, on_error="skip")
            try:
                return encode(catalog, encoder)
            except UnreadableItem:
                # All of them are told at once; what can be read is kept for the next run.
                with without_warnings():
                    skipped = encode(catalog, encoder, on_error="skip").record.skipped
                raise unreadable_files(catalog, skipped) from None

        encoded = self.steps.step(Features, *self._encoding(catalog, encoder), make)
        return None if encoded is None else transform(encoded, self.experiment.transforms)

    def _encoding(self, catalog: Catalog, encoder: Any) -> tuple[str, list[Any], list[str]]:
        """The file of an encoder's features, what it is made from, and by what."""
        inputs = [catalog, catalog.stamp, file_stamps(encoder)]
        return (
            f"features-{self.steps.short_name(str(encoder))}.parquet",
            inputs,
            [str(encoder), self.experiment.on_error],
        )

    @property
    def _encodes(self) -> bool:
        """Whether an encoder reads the files of the items."""
        return any(isinstance(encoder, NetworkEncoder) for encoder in self.experiment.encoders)

    def _require_readable(self, catalog: Catalog, attributes: Mapping[str, Attributes | None]) -> None:
        """Refuse images that cannot be read before anything is encoded, if detectors found nothing in them."""
        if self.experiment.on_error == "skip" or catalog.medium != "image" or not self._encodes:
            return
        unknown = {item for words in attributes.values() if words is not None for item in words.unknown}
        suspects = [(item, path) for item, path in zip(catalog.items, catalog.paths, strict=True) if item in unknown]
        skipped = [item for item, path in suspects if not is_readable(path)]
        if skipped:
            raise unreadable_files(catalog, skipped)

    def _readable(self, catalog: Catalog, features: dict[str, Features | None]) -> Catalog:
        """Without the items whose files some encoder could not read."""
        skipped = sorted({item for one in features.values() if one is not None for item in one.record.skipped})
        if not skipped:
            return catalog
        keep = pc.invert(pc.is_in(catalog.table.column("item"), value_set=pa.array(skipped)))
        readable = Catalog(catalog.table.filter(keep), catalog.root, catalog.record)
        written = self.steps.step(Catalog, "catalog-readable.parquet", [catalog, skipped], None, lambda: readable)
        return readable if written is None else written


def _fewer_ways(sets: DrawnSets, draw: Draw) -> str:
    """Say which ways would do for tasks that the data cannot give; nothing where none would, or it is not known."""
    way = sets.fewer_ways(draw)
    return "" if way is None else f"{draw.way} ways are too many, --way {way} would do: "


def _attributes_file(name: str) -> str:
    return f"attributes-{file_name(name)}.parquet" if name else "attributes.parquet"


def _named(attributes: Attributes, name: str) -> Attributes:
    return Attributes(attributes.table, replace(attributes.record, name=name))


def _with_files_beside(tasks: TaskSet, folder: Path) -> TaskSet:
    """The task set, with files that its sampler's options name and that lie beside it: intervals draw it anew."""
    made = tasks.record.sampler
    if made is None or made.name not in samplers:
        return tasks
    named = {each.name: made.options.get(each.name) for each in samplers.get(made.name).options() if each.path}
    beside = {
        key: str(folder / name) for key, name in named.items() if isinstance(name, str) and is_there(folder / name)
    }
    record = replace(tasks.record, sampler=replace(made, options={**made.options, **beside}))
    return TaskSet(tasks.table, record) if beside else tasks


SHOWN = 10


def unreadable_files(catalog: Catalog, items: Sequence[str]) -> UnreadableItem:
    """Name the files that cannot be read, and the way to go on without them."""
    paths = dict(zip(catalog.items, catalog.paths, strict=True))
    named = listed([os.path.normpath(paths[item]) for item in items], SHOWN)
    return UnreadableItem(
        f"{counted(len(items), 'file')} of {len(catalog):,} cannot be read: {named}; mend or remove them, or leave "
        'them out with --skip-bad (in an experiment file: on_error = "skip" in [features])'
    )


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Within it, no warning is logged: whoever uses it tells the same as an error."""
    logger = logging.getLogger("shotproof")
    logger.addFilter(_refuse_record)
    try:
        yield
    finally:
        logger.removeFilter(_refuse_record)


def _refuse_record(record: logging.LogRecord) -> bool:
    return False
