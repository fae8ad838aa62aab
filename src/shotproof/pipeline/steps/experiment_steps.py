"""Steps of an experiment, in order: catalog, masks, mixtures, attributes, features, tasks, results.

Interrupted steps keep what they computed: features in their cache, captions in their log. Results are one file per task
set, encoder and method, so that if a method is added, only this method is evaluated.
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
from shotproof.catalog import item_files
from shotproof.catalog.catalog import CHANGE, MASK, Catalog
from shotproof.catalog.class_files import apply_names, apply_splits
from shotproof.catalog.layout import read_layout
from shotproof.catalog.usable_masks import with_usable_masks
from shotproof.changes.change import BackgroundChange
from shotproof.comparison.numbers import listed
from shotproof.core.errors import InputError, InsufficientData, Mismatch, UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.files import path_exists
from shotproof.core.tables import check_output
from shotproof.features.encoder import encode, with_record
from shotproof.features.encoders.pretrained_network import NetworkEncoder, look_while_encoding
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.masks.cut_images import CATALOG, CutSettings, expected_masks, find_masks, mask_files, write_masks
from shotproof.masks.mix import expected_mixtures, mix
from shotproof.media.images import is_readable
from shotproof.pipeline.checks import (
    check_draws,
    check_models,
    check_surroundings,
    check_tuning,
    error_location,
    with_stages,
)
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.encode_tasks import describe_changed_items, with_changed_items
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.masks_section import with_all_images
from shotproof.pipeline.steps.drawn_sets import DrawnSet, DrawnSets
from shotproof.pipeline.steps.evaluated_files import EncodedData, EvaluatedFiles
from shotproof.pipeline.steps.reporting_runtime import ReportingRuntime
from shotproof.pipeline.steps.steps import Steps, file_name, file_stamps, layer_stamps, stamp
from shotproof.report.pages.contact_sheet import write_contact_sheet
from shotproof.tasks.changed import ChangingSampler
from shotproof.tasks.sampler import samplers
from shotproof.tasks.taskset import TaskSet, TaskShape

if TYPE_CHECKING:
    from shotproof.models.model import Model


logger = logging.getLogger("shotproof")

SIZES = ("way", "shot", "query")
CONTACT_SHEET = "contact-sheet.html"  # beside the masks that a run has cut
CHANGED = "-changed"  # end of the names of files of features that also have changed items


def read_catalog(experiment: Experiment) -> Catalog:
    """Read the data of an experiment, before cutting and mixing. Files are always inspected, to notice changes."""
    if experiment.at_hand.catalogs:
        return experiment.at_hand.catalogs[0]
    if experiment.catalog_file is not None:
        catalog = Catalog.read(experiment.catalog_file)
        catalog = catalog if experiment.root is None else Catalog(catalog.table, experiment.root, catalog.record)
        catalog = catalog if experiment.splits is None else apply_splits(catalog, experiment.splits)
        catalog = catalog if experiment.names is None or experiment.mix else apply_names(catalog, experiment.names)
        if not catalog.record.name or experiment.name:
            name = experiment.name or experiment.catalog_file.stem
            catalog = Catalog(catalog.table, catalog.root, replace(catalog.record, name=name))
    else:
        assert experiment.root is not None
        assert experiment.layout is not None
        names = None if experiment.mix else experiment.names  # otherwise applied to the mixtures
        catalog = read_layout(
            experiment.root, experiment.layout, splits=experiment.splits, names=names, name=experiment.name
        )
    return catalog if experiment.only_split is None or experiment.mix else catalog.in_split(experiment.only_split)


@dataclass
class ExperimentSteps:
    """Steps of an experiment; files that are up to date are not created again.

    leave_out: leave out samplers for which the data is not sufficient, other than the first; otherwise raise an error
    left_out: reasons why samplers were left out, by spelling
    """

    experiment: Experiment
    steps: Steps
    leave_out: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    _encoded: dict[str, Features] = field(default_factory=dict)  # by encoder, computed while detecting attributes
    _no_mask: str = ""  # why no image has a good mask, if none has and all are kept

    def make(self) -> Inputs | None:
        """Run all steps up to the results, and return their outputs; None in a dry run."""
        with error_location(self.experiment, "[evaluate], model"):
            models = self.experiment.read_models()
        with self.steps.stage("catalog") as stage:
            catalog = self._write_catalog(self._check_catalog(models))
            classes = len(catalog.table.column("label").unique())
            stage.summary = f"{counted(len(catalog), 'item')}, {classes:,} classes"
        with self.steps.stage("attributes"):
            attributes = self._attributes(catalog)
        with self.steps.stage("features", len(self.experiment.encoders)):
            self._require_readable(catalog, attributes)
            features: dict[str, Features | None] = {
                existing.name: existing for existing in self.experiment.at_hand.features
            }
            features |= {str(encoder): self._features(catalog, encoder) for encoder in self.experiment.encoders}
            catalog = self._drop_bad_masks(self._drop_unreadable(catalog, features))
        with self.steps.stage("tasks"):
            tasks = self._draw(DrawnSets(self.experiment, self.steps, catalog, attributes, features))
        data = changed = EncodedData(catalog, features)
        changed_sets = [drawn.tasks for drawn in tasks.values() if drawn.is_changed]
        if changed_sets:
            with self.steps.stage("changes", len(features)) as stage:
                changed = self._encode_changes(data, changed_sets)
                stage.summary = counted(len(changed.catalog) - len(catalog), "changed item")
        evaluation = EvaluatedFiles(self.experiment, self.steps, data, changed, models)
        with self.steps.stage("evaluation", evaluation.count(tasks)):
            results = evaluation.evaluate_all(tasks)
        if self.steps.dry_run:
            return None
        self.steps.finish()
        folder = self.steps.folder
        return Inputs(
            results=[file_results for file_results in results if file_results is not None],
            tasks=[drawn.tasks for drawn in tasks.values() if drawn.tasks is not None],
            catalogs=[catalog],
            features=[
                encoder_features
                for encoded in (data, *([changed] if changed_sets else []))
                for encoder_features in encoded.features.values()
                if encoder_features is not None
            ],
            attributes=[words for words in attributes.values() if words is not None],
            methods=self.experiment.methods,
            folders=[*([] if folder is None else [folder]), *(file.parent for file in self.experiment.task_files)],
            keeper=self.steps,
        )

    def _encode_changes(self, data: EncodedData, changed_sets: Sequence[TaskSet | None]) -> EncodedData:
        """Encode the changed items of task sets, with all others, so that both are compared as one classifier."""
        drawn = [tasks for tasks in changed_sets if tasks is not None]
        if len(drawn) < len(changed_sets):  # a dry run
            return EncodedData(data.catalog, dict.fromkeys(data.features))
        catalog = with_changed_items(data.catalog, drawn)
        encoders = self.experiment.encoders
        is_encoded = all(self.steps.is_current(*self._encoding(catalog, encoder, CHANGED)) for encoder in encoders)
        if not is_encoded:
            count = f" by each of {len(encoders)} encoders" if len(encoders) > 1 else ""
            logger.info("encoding %s", describe_changed_items(catalog, count))
        features: dict[str, Features | None] = {}
        for existing in self.experiment.at_hand.features:
            _require_changed_items(existing, catalog)
            features[existing.name] = existing
        with ReportingRuntime.of(current_runtime()):
            features |= {str(encoder): self._features(catalog, encoder, CHANGED) for encoder in encoders}
        return EncodedData(catalog, features)

    def _draw(self, sets: DrawnSets) -> dict[str, DrawnSet]:
        """Return the existing task sets and those of all entries, except for entries that are left out."""
        drawn_sets = {}
        for name, existing in self._read_task_files(sets.catalog).items():
            tasks = self.steps.step(TaskSet, name, [existing], None, lambda existing=existing: existing)  # type: ignore[misc]
            sizes = zip(SIZES, existing.common_sizes(), strict=True)
            shape = TaskShape(**{key: size for key, size in sizes if size})
            drawn_sets[name] = DrawnSet(tasks, shape, existing.is_changed)
        for number, draw in enumerate(self.experiment.draws):
            files = list(self.steps.files)
            if self._is_left_out_with_reference(draw):
                continue
            try:
                drawn_sets |= sets.draw_entry(draw)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                self.steps.files[:] = files
                self._leave_out(draw, f"{_suggest_ways(sets, draw)}{error}")
        return drawn_sets

    def _read_task_files(self, catalog: Catalog) -> dict[str, TaskSet]:
        """Read the existing task sets, by the names of their files in the run folder."""
        tasks_by_name = {}
        for file in self.experiment.task_files:
            with error_location(self.experiment, "[tasks], files"):
                tasks = _locate_sampler_files(TaskSet.read(file), file.parent)
                source_catalog = tasks.record.source("catalog")
                if source_catalog not in (None, catalog.digest):
                    raise Mismatch(
                        f"the tasks of {file} were drawn from catalog {source_catalog}, not from {catalog.digest}"
                    )
                for side in ("support", "query"):
                    catalog.rows_of(pc.list_flatten(tasks.table.column(side)), f"the tasks of {file}")
            tasks_by_name[file.name if file.name.startswith("tasks-") else f"tasks-{file.name}"] = tasks
        return tasks_by_name

    def _check_draws(self, catalog: Catalog) -> None:
        """Raise an error for samplers for which the data is not sufficient, or leave them out."""
        self._read_task_files(catalog)
        attributes = self._read_attribute_files()
        draws: list[Draw] = []
        for number, draw in enumerate(self.experiment.draws):
            if self._is_left_out_with_reference(draw):
                continue
            try:
                check_draws(replace(self.experiment, draws=(draw,)), catalog, attributes, draws)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                hint = _suggest_ways(DrawnSets(self.experiment, self.steps, catalog, {**attributes}, {}), draw)
                self._leave_out(draw, f"{hint}{error.__cause__ or error}")  # without the location
            else:
                draws.append(draw)
        self.experiment = replace(self.experiment, draws=tuple(draws))

    def _leave_out(self, draw: Draw, reason: str) -> None:
        """Leave out a sampler. If it asks for items with a mask, and no mask is good, that is the reason."""
        needs_mask = f"{MASK} != ''" in str(draw.sampler)
        self.left_out[str(draw.sampler)] = self._no_mask if self._no_mask and needs_mask else reason

    def _is_left_out_with_reference(self, draw: Draw) -> bool:
        """Leave out a sampler whose reference was left out, and return whether it was."""
        if draw.like not in self.left_out:
            return False
        self.left_out[str(draw.sampler)] = (
            f"it is compared with {draw.like}, which is missing: {self.left_out[draw.like]}"
        )
        return True

    def _write_catalog(self, catalog: Catalog) -> Catalog:
        """Write the catalog, and return it as read from its file."""
        parameters = [catalog.record.name, catalog.record.to_meta()]
        inputs = [catalog, catalog.stamp, *layer_stamps(catalog)]
        written: Catalog | None = self.steps.step(Catalog, "catalog.parquet", inputs, parameters, lambda: catalog)
        return catalog if written is None else written.with_stamp_of(catalog)

    def _check_catalog(self, models: dict[str, Model]) -> Catalog:
        """Read the data, and check the whole experiment against it before writing anything."""
        experiment = self.experiment
        runtime = current_runtime()
        check_surroundings(experiment, None if runtime.remote else runtime.device)  # other machines have other devices
        with error_location(experiment, "[catalog]"):
            data = read_catalog(experiment)
        catalog = self._prepare(data, make=False)
        self._check_draws(catalog)
        experiment = self.experiment
        check_models(experiment, models, catalog)
        check_tuning(experiment, models, catalog)
        experiment = self.experiment = with_stages(experiment, catalog)
        for name, detectors in experiment.detectors.items():
            if not self.steps.is_current(*self._detection(catalog, name)):
                with error_location(experiment, "[attributes], detectors"):
                    for detector in detectors:
                        detector.check(catalog)
        for encoder in experiment.encoders:
            if not self.steps.is_current(*self._encoding(catalog, encoder)):
                with error_location(experiment, "[features], encoders"):
                    encoder.check(catalog)
        if experiment.masks is None and experiment.mix is None:
            return catalog
        prepared = self._prepare(data, make=True)
        if prepared.digest != catalog.digest:  # bad masks, silent recordings or mixtures were left out
            self._check_draws(prepared)
        return prepared

    def _prepare(self, data: Catalog, make: bool) -> Catalog:
        """Return the data cut and mixed, created if `make` is set; otherwise what exists or is expected."""
        if self.experiment.masks is not None:
            with error_location(self.experiment, "[masks]"):
                data = self._cut(data, make)
        if self.experiment.mix is not None:
            with error_location(self.experiment, "[mix]"):
                data = self._mix(data, make)
        return data

    def _cut(self, images: Catalog, make: bool) -> Catalog:
        """Return the images with masks, of the foregrounds if they are mixed next; see `_prepare`."""
        masks, mixing = self.experiment.masks, self.experiment.mix
        assert masks is not None
        labels = None if mixing is None else mixing.mapping.foregrounds
        expected = expected_masks(images, self.experiment.folder, masks.settings, labels=labels)
        folder = masks.folder(images.digest, labels)
        name, inputs = f"{folder}/catalog.parquet", [images, images.stamp, _mask_stamps(masks.settings)]
        step = name, inputs, [masks.parameters(), labels]
        masked: Catalog | None = None
        if make:
            output = self.experiment.folder / folder
            with self.steps.stage("masks") as stage:
                sheet = f"; look at {folder}/{CONTACT_SHEET}"
                try:
                    masked = self.steps.step(
                        Catalog, *step, lambda: _cut_with_sheet(images, output, masks.settings, labels), compared=False
                    )
                except InsufficientData as error:  # no mask is good
                    if not masks.keep_all:
                        raise InsufficientData(f"{error}{sheet}") from error
                    stage.summary = self._no_mask = f"{error}{sheet}"
                    return with_all_images(images, None)
                if masked is not None:
                    count = len(images) - len(masked)
                    outcome = "without a good mask" if masks.keep_all else "left out"
                    bad = f"{count:,} of {counted(len(images), 'image')} {outcome}" if count else "no mask is bad"
                    stage.summary = bad + (sheet if path_exists(output / CONTACT_SHEET) else "")
        elif self.steps.is_current(*step):
            masked = Catalog.read(self.experiment.folder / name)
        masked = expected if masked is None else masked
        return with_all_images(images, masked) if masks.keep_all else masked

    def _mix(self, recordings: Catalog, make: bool) -> Catalog:
        """Return the mixtures of the recordings or images; see `_prepare`."""
        experiment = self.experiment
        assert experiment.mix is not None
        mapping, settings = experiment.mix.mapping, experiment.mix.settings_for(recordings.medium)
        folder = experiment.mix.folder(recordings.digest)
        step = f"{folder}/catalog.parquet", [recordings, recordings.stamp], experiment.mix.parameters()
        mixed: Catalog | None = None
        if make:
            mixed = self.steps.step(
                Catalog, *step, lambda: mix(recordings, mapping, experiment.folder / folder, settings)
            )
        elif self.steps.is_current(*step):
            mixed = Catalog.read(experiment.folder / step[0])
        if mixed is None:
            mixed = expected_mixtures(recordings, mapping, experiment.folder / folder, settings)
        mixed = mixed if experiment.names is None else apply_names(mixed, experiment.names)
        return mixed if experiment.only_split is None else mixed.in_split(experiment.only_split)

    def _read_attribute_files(self) -> dict[str, Attributes]:
        """Read the existing sets of attributes, by name."""
        attribute_sets = {}
        for name, file in self.experiment.attribute_files.items():
            with error_location(self.experiment, "[attributes], file" if not name else f"[attributes], files, {name}"):
                attributes = Attributes.read(file)
            attribute_sets[name] = _rename(attributes, name or attributes.record.name or file.stem)
        at_hand = {attributes.record.name: attributes for attributes in self.experiment.at_hand.attributes}
        return {**attribute_sets, **at_hand}

    def _attributes(self, catalog: Catalog) -> dict[str, Attributes | None]:
        """Return all sets of attributes, by name."""
        attribute_sets: dict[str, Attributes | None] = {}
        for name, existing in self._read_attribute_files().items():

            def copy(existing: Attributes = existing) -> Attributes:
                return existing

            attribute_sets[name] = self.steps.step(
                Attributes, _attributes_file(name), [existing], existing.record.name, copy
            )
        for name, detectors in self.experiment.detectors.items():
            spelling = " + ".join(map(str, detectors))

            def make(name: str = name, detectors: Any = detectors, spelling: str = spelling) -> Attributes:
                # If images are unreadable, the step of the features reports them.
                is_reported_later = self._encodes and all(
                    isinstance(detector, PhotometricDetector) for detector in detectors
                )
                with without_warnings() if is_reported_later else contextlib.nullcontext():
                    return _rename(detect(catalog, *detectors, reader=self._reader(catalog)), name or spelling)

            attribute_sets[name] = self.steps.step(Attributes, *self._detection(catalog, name), make)
        return attribute_sets

    def _reader(self, catalog: Catalog) -> Reader | None:
        """Return a reader that decodes each image once for detectors and the first encoder without features, if any."""
        runtime = current_runtime()
        for encoder in self.experiment.encoders:
            if not isinstance(encoder, NetworkEncoder) or not encoder.reduces or encoder.medium != catalog.medium:
                continue
            is_encoded = str(encoder) in self._encoded or self.steps.is_current(*self._encoding(catalog, encoder))
            if not is_encoded and not runtime.remote:
                return partial(self._read, encoder)
        return None

    def _read(self, encoder: NetworkEncoder, catalog: Catalog, look: Callable[[Path], Any]) -> list[Any]:
        """Apply `look` to each image, and keep the features that are computed in the same pass."""
        features, observations = look_while_encoding(catalog, encoder, look, current_runtime())
        if features is not None:
            self._encoded[str(encoder)] = features
        return observations

    def _detection(self, catalog: Catalog, name: str) -> tuple[str, list[Any], list[str]]:
        """Return the file of a set of attributes, its inputs and its parameters."""
        detectors = self.experiment.detectors[name]
        stamps = [file_stamps(detector) for detector in detectors]
        return _attributes_file(name), [catalog, catalog.stamp, stamps], [name, *map(str, detectors)]

    def _features(self, catalog: Catalog, encoder: Any, suffix: str = "") -> Features | None:
        """Compute the features of an encoder, unless their file is up to date, and apply the transforms."""

        def make() -> Features:
            encoded = self._encoded.pop(str(encoder), None)
            if encoded is not None:
                if encoded.record.skipped and self.experiment.on_error != "skip":
                    raise unreadable_files(catalog, list(encoded.record.skipped))
                return with_record(encoded, encoder, catalog)
            if self.experiment.on_error == "skip":
                return encode(catalog, encoder, on_error="skip")
            try:
                return encode(catalog, encoder)
            except UnreadableItem:
                # List all unreadable files at once; readable items are cached for the next run.
                with without_warnings():
                    skipped = encode(catalog, encoder, on_error="skip").record.skipped
                raise unreadable_files(catalog, skipped) from None

        encoded = self.steps.step(Features, *self._encoding(catalog, encoder, suffix), make)
        return None if encoded is None else transform(encoded, self.experiment.transforms)

    def _encoding(self, catalog: Catalog, encoder: Any, suffix: str = "") -> tuple[str, list[Any], list[str]]:
        """Return the file of an encoder's features, its inputs and its parameters."""
        inputs = [catalog, catalog.stamp, file_stamps(encoder)]
        return (
            f"features-{self.steps.short_name(str(encoder))}{suffix}.parquet",
            inputs,
            [str(encoder), self.experiment.on_error],
        )

    @property
    def _encodes(self) -> bool:
        """Return whether an encoder reads the files of the items."""
        return any(isinstance(encoder, NetworkEncoder) for encoder in self.experiment.encoders)

    def _require_readable(self, catalog: Catalog, attributes: Mapping[str, Attributes | None]) -> None:
        """Raise an error for unreadable images before encoding, among those without attributes."""
        if self.experiment.on_error == "skip" or catalog.medium != "image" or not self._encodes:
            return
        unknown = {item for words in attributes.values() if words is not None for item in words.unknown}
        suspects = [(item, path) for item, path in zip(catalog.items, catalog.paths, strict=True) if item in unknown]
        skipped = [item for item, path in suspects if not is_readable(path)]
        if skipped:
            raise unreadable_files(catalog, skipped)

    def _drop_unreadable(self, catalog: Catalog, features: dict[str, Features | None]) -> Catalog:
        """Return the catalog without the items whose files an encoder could not read."""
        skipped = sorted(
            {
                item
                for encoder_features in features.values()
                if encoder_features is not None
                for item in encoder_features.record.skipped
            }
        )
        if not skipped:
            return catalog
        keep = pc.invert(pc.is_in(catalog.table.column("item"), value_set=pa.array(skipped)))
        readable = Catalog(catalog.table.filter(keep), catalog.root, catalog.record)
        inputs = [catalog, catalog.stamp, *layer_stamps(catalog), skipped]
        written = self.steps.step(Catalog, "catalog-readable.parquet", inputs, None, lambda: readable)
        return readable if written is None else written

    def _drop_bad_masks(self, catalog: Catalog) -> Catalog:
        """Return the catalog without the images whose masks cannot be used, if tasks show other backgrounds.

        Masks that the experiment cut itself were checked then.
        """
        samplers = [draw.sampler for draw in self.experiment.draws if isinstance(draw.sampler, ChangingSampler)]
        is_needed = any(isinstance(change, BackgroundChange) for sampler in samplers for change in sampler.made_changes)
        if self.experiment.masks is not None or not is_needed or MASK not in catalog.table.column_names:
            return catalog
        on_error = self.experiment.on_error
        written = self.steps.step(
            Catalog,
            "catalog-masks.parquet",
            [catalog, catalog.stamp, *layer_stamps(catalog)],
            on_error,
            lambda: with_usable_masks(catalog, on_error),
        )
        return catalog if written is None else written.with_stamp_of(catalog)


def _require_changed_items(features: Features, catalog: Catalog) -> None:
    """Raise InputError if existing features lack changed items of a catalog."""
    names = catalog.item_column.filter(pc.is_valid(catalog.table.column(CHANGE)))
    missing = names.filter(pc.invert(pc.is_in(names, value_set=features.table.column("item"))))
    if len(missing):
        raise InputError(
            f"the features '{features.name}' lack {counted(len(missing), 'changed item')}, e.g. "
            f"'{missing[0].as_py()}': name an encoder, which encodes them, or give features of sp.encode(catalog, "
            "encoder, tasks=[...])"
        )


def _suggest_ways(sets: DrawnSets, draw: Draw) -> str:
    """Suggest a smaller number of ways for which the data is sufficient; empty if there is none or it is unknown."""
    way = sets.find_fewer_ways(draw)
    return "" if way is None else f"{draw.way} ways are too many, but --way {way} is possible: "


def _cut_with_sheet(images: Catalog, folder: Path, settings: CutSettings, labels: Sequence[str] | None) -> Catalog:
    """Find the foreground of each image, and write the masks, their catalog and a contact sheet."""
    check_output(folder / CATALOG)
    results = find_masks(images, settings, labels=labels)
    write_contact_sheet(folder / CONTACT_SHEET, images, results)  # before an error about masks of which none is good
    return write_masks(images, results, folder, settings)


def _mask_stamps(settings: CutSettings) -> list[Any]:
    """Return the sizes and times of the files that masks are made with or read from."""
    if settings.made_cutter is not None:
        return file_stamps(settings.made_cutter)
    assert settings.masks is not None
    return [[path.relative_to(settings.masks).as_posix(), *stamp(path)] for path in mask_files(settings.masks)]


def _attributes_file(name: str) -> str:
    """Return the file name of a set of attributes."""
    return f"attributes-{file_name(name)}.parquet" if name else "attributes.parquet"


def _rename(attributes: Attributes, name: str) -> Attributes:
    """Return the attributes under another name."""
    return Attributes(attributes.table, replace(attributes.record, name=name))


def _locate_sampler_files(tasks: TaskSet, folder: Path) -> TaskSet:
    """Return the task set with full paths of its sampler's files, if these are beside it: intervals need them."""
    maker = tasks.record.sampler
    if maker is None or maker.name not in samplers:
        return tasks
    options = [option.name for option in samplers.get(maker.name).options() if option.path]
    values = {name: maker.options.get(name) for name in options}
    located = {
        name: str(folder / value)
        for name, value in values.items()
        if isinstance(value, str) and path_exists(folder / value)
    }
    record = replace(tasks.record, sampler=replace(maker, options={**maker.options, **located}))
    return TaskSet(tasks.table, record) if located else tasks


MAX_LISTED = 10


def unreadable_files(catalog: Catalog, items: Sequence[str]) -> UnreadableItem:
    """Return an error that lists unreadable files, and says how to continue without them."""
    files = item_files.unreadable_files(catalog, items)
    file_names = listed([os.path.normpath(file) for file in files], MAX_LISTED)
    return UnreadableItem(
        f"{counted(len(files), 'file')} of {counted(len(catalog), 'item')} cannot be read: {file_names}; repair or "
        'remove them, or leave them out with --skip-bad (in an experiment file: on_error = "skip" in [features]; in '
        'Python: sp.Study(..., on_error="skip"))'
    )


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress logged warnings in the block; the caller raises an error instead."""
    logger = logging.getLogger("shotproof")
    logger.addFilter(_reject_record)
    try:
        yield
    finally:
        logger.removeFilter(_reject_record)


def _reject_record(record: logging.LogRecord) -> bool:
    """Reject a log record."""
    return False
