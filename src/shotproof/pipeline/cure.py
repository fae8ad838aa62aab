"""Cures of a study: gathers what remedies are fitted on, tries them, and writes what they need to be applied."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import detect
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import has_layers, with_changes
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core.errors import InputError, InsufficientData, UnknownName
from shotproof.core.file_options import FileOptions
from shotproof.core.nouns import counted
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.spelling import parse_spelling, write_call
from shotproof.core.storage.files import path_exists
from shotproof.core.storage.whole_files import new_folder
from shotproof.core.trust import Trust
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT, ClassParts, part_classes
from shotproof.cures.cure import CURE_FILE, Cure
from shotproof.cures.effects import is_judged
from shotproof.cures.feature_remedies import apply_steps
from shotproof.cures.remedy import RemedyData, has_items, select_items
from shotproof.cures.search import TASKS_TO_CHANGE, Log, Plan, find_cure
from shotproof.cures.stage import draw_stage, stage_at_hand
from shotproof.cures.training_remedy import apply_model
from shotproof.features.encoder import Encoder, encode
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.features.transforms import Transform
from shotproof.learners.method import Method
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.experiment_steps import read_catalog
from shotproof.pipeline.steps.steps import Steps
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import Evaluated, evaluated_sets
from shotproof.results.origin import PLACEBO, RANDOM, Design
from shotproof.tasks.changed import Variants
from shotproof.tasks.plates import Plates
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet, TaskShape

logger = logging.getLogger("shotproof")

CURE_FOLDER = "cure"
ITEMS_TO_CHANGE = 700  # items of the classes to fit on that are changed
PLATES_PER_ITEM = 3


def cure_inputs(
    inputs: Inputs,
    experiment: Experiment | None,
    section: CureSection,
    log: Log = lambda line: None,
    runtime: Runtime | None = None,
) -> Cure:
    """Try remedies on a classifier of a study.

    Args:
        inputs: results with their task sets, catalogs, features and attributes
        experiment: experiment that the study ran, if known: it has the rest of the data, and the encoder
        section: classifier, remedies and sizes
        log: called with one line per step
        runtime: runtime settings

    Raises:
        InputError: the study has no such classifier, or the classifier cannot be treated.
        InsufficientData: there are fewer classes than a fair confirmation needs, or nothing measures reliance.
    """
    chosen_remedies = section.chosen_remedies()
    sets = evaluated_sets(inputs.results)
    design, design_sets = _choose_design(sets, section.shot)
    encoder, method = _choose_classifier(design_sets, inputs, section)
    originals = [_task_set(evaluated, inputs) for evaluated in design_sets if evaluated.origin.sampler != PLACEBO]
    catalog = inputs.catalog(design.catalog)
    if not any(evaluated.origin.is_random for evaluated in design_sets):
        originals += _random_tasks(originals[0], catalog)
    features = _features(encoder, design_sets, inputs)
    gathering = _Gathering(inputs, experiment, features, runtime)
    all_items = gathering.all_items(catalog)
    features = gathering.with_items(features, all_items)
    all_items = all_items.filter(pc.is_in(all_items.item_column, value_set=features.table.column("item")))
    # A run of one split of its data does not name it.
    split = design.split or (catalog.splits[0] if len(catalog.splits) == 1 else None)
    parts = part_classes(all_items, split if len(all_items.splits) > 1 else None, design.way or 5, section.seed)
    log(f"classes: {parts.describe()}")
    attributes = gathering.attributes(originals, parts.catalog)
    context_column = _context_column(originals, parts.catalog)
    has_changes = any(tasks.is_changed for tasks in originals)
    changed = None
    if has_changes and gathering.encoder is not None:
        changed, features = gathering.changed(originals, parts, features, section)
    further = [
        other
        for other in {other.name: other for other in inputs.features}.values()
        if other.name != features.name and has_items(other, all_items.item_column)
    ]
    # Copies of supports need features of all their changed items, which only the classes of the tasks have.
    confirms_at_hand = parts.uses_tasks or len(all_items.splits) == 1
    data = RemedyData(
        catalog=parts.catalog,
        features=features,
        method=method,
        further_features=further,
        further_methods=[inputs.method(name) for name in _methods(design_sets, encoder) if name != method.spelling],
        attributes=attributes,
        context_column=context_column,
        changed=changed,
        copies=_changes_at_hand(originals, features, catalog) if confirms_at_hand else [],
        encoder=gathering.encoder,
        shape=TaskShape(design.way or 5, design.shot or 5, design.query or 15),
        seed=section.seed,
    )
    at_hand = replace(inputs, attributes=[attributes, *inputs.attributes] if attributes else inputs.attributes)
    if parts.uses_tasks:
        confirming = stage_at_hand(replace(at_hand, catalogs=[catalog]), originals, runtime)
    else:
        confirming = draw_stage(
            replace(at_hand, tasks=originals),
            parts.catalog,
            CONFIRM,
            features=features,
            attributes=attributes,
            runtime=runtime,
        )
    plan = Plan(
        replace(at_hand, tasks=originals),
        data,
        parts,
        confirming,
        chosen_remedies,
        section.tasks,
        section.level,
        section.seconds(),
    )
    return find_cure(plan, log, runtime)


def experiment_of(runs: Sequence[Steps], trust: Trust) -> Experiment | None:
    """Return the experiment of the only run that a study was read from; None if it is unknown or cannot be read."""
    owner = runs[0].manifest.owner if len(runs) == 1 else None
    if owner is None or not owner.experiment or runs[0].folder is None:
        return None
    file = runs[0].folder / owner.experiment
    if not path_exists(file):
        return None
    experiment = Experiment.read(file, trust)
    return replace(experiment, folder=runs[0].folder)


@dataclass(frozen=True)
class _Gathering:
    """Gathers what remedies are fitted on, which a run of the test classes may lack."""

    inputs: Inputs
    experiment: Experiment | None
    features: Features
    runtime: Runtime | None

    @property
    def encoder(self) -> Encoder | None:
        """Return the encoder of the features, if the experiment has it; without transforms, which are fitted to it."""
        if self.experiment is None or self.experiment.transforms:
            return None
        encoders = self.experiment.encoders
        return next((encoder for encoder in encoders if str(Maker.of(encoder)) == self.features.name), None)

    def all_items(self, catalog: Catalog) -> Catalog:
        """Return the items of all splits, also of those that the run left out."""
        if self.experiment is None or self.experiment.only_split is None or self.experiment.mix is not None:
            return catalog
        if self.encoder is None:
            return catalog
        everything = read_catalog(replace(self.experiment, only_split=None, at_hand=Inputs())).moved_to(catalog.root)
        others = everything.table.filter(pc.invert(pc.is_in(everything.item_column, value_set=catalog.item_column)))
        if not len(others):
            return catalog
        table = pa.concat_tables([catalog.table, others], promote_options="default")
        return Catalog(table, catalog.root, catalog.record)

    def with_items(self, features: Features, catalog: Catalog) -> Features:
        """Add the features of items that they lack, if the encoder is known."""
        lacking = catalog.table.filter(
            pc.invert(pc.is_in(catalog.item_column, value_set=features.table.column("item")))
        )
        if not len(lacking) or self.encoder is None:
            return features
        logger.info("encoding %s of other classes", counted(len(lacking), "item"))
        return join_features(features, encode(Catalog(lacking, catalog.root, catalog.record), self.encoder))

    def attributes(self, originals: Sequence[TaskSet], catalog: Catalog) -> Attributes | None:
        """Return the attributes, detected on other classes too if the detectors are known."""
        attributes = self.inputs.attributes_of(originals[0])
        if attributes is None:
            return None
        lacking = catalog.table.filter(
            pc.invert(pc.is_in(catalog.item_column, value_set=attributes.table.column("item")))
        )
        if not len(lacking) or self.experiment is None:
            return attributes
        detectors = next(iter(self.experiment.detectors.values()), ())
        if not detectors:
            return attributes
        logger.info("detecting attributes of %s of other classes", counted(len(lacking), "item"))
        others = detect(Catalog(lacking, catalog.root, catalog.record), *detectors, runtime=self.runtime)
        return Attributes(pa.concat_tables([attributes.table, others.table]).combine_chunks(), attributes.record)

    def changed(
        self, originals: Sequence[TaskSet], parts: ClassParts, features: Features, section: CureSection
    ) -> tuple[Features | None, Features]:
        """Encode changed items of the classes to fit on, and those of tasks of the classes to choose on.

        Returns:
            The features to fit on with all their versions, and the features with those of the tasks to choose on.
        """
        fit = parts.catalog.in_split(FIT)
        pairs = _pairs_to_fit(originals, fit)
        if not pairs:
            return None, features
        catalog = with_changes(fit, pairs)
        logger.info("encoding %s of classes to fit on", counted(len(catalog) - len(fit), "changed item"))
        names = pa.chunked_array([items for items, _ in pairs])
        encoded = self._encode_after(len(fit), catalog)
        unchanged = Features(
            features.table.take(pa.array(features.rows_of(pc.unique(names)))).combine_chunks(), features.record
        )
        return join_features(unchanged, encoded), self._with_choice(originals, parts, features, section)

    def _with_choice(
        self, originals: Sequence[TaskSet], parts: ClassParts, features: Features, section: CureSection
    ) -> Features:
        """Add the changed items of tasks of the classes to choose on."""
        choose = parts.catalog.in_split(CHOOSE)
        stage = draw_stage(
            replace(self.inputs, tasks=originals),
            parts.catalog,
            CHOOSE,
            tasks=section.tasks,
            changed_tasks=min(section.tasks, TASKS_TO_CHANGE),
            runtime=self.runtime,
        )
        variants = [Variants.of(tasks, parts.catalog) for tasks in stage.tasks if tasks.is_changed]
        if not variants:
            return features
        pairs = [(each.items, each.changes) for each in variants]
        catalog = with_changes(choose, pairs)
        logger.info("encoding %s of classes to choose on", counted(len(catalog) - len(choose), "changed item"))
        return join_features(features, self._encode_after(len(choose), catalog))

    def _encode_after(self, count: int, catalog: Catalog) -> Features:
        """Encode the changed items after the first `count` of a catalog, which may show the backgrounds of these."""
        assert self.encoder is not None
        return select_items(encode(catalog, self.encoder), catalog.item_column[count:])


def join_features(features: Features, others: Features) -> Features:
    """Add the rows of other features of the same encoder for items that the first lack."""
    is_new = pc.invert(pc.is_in(others.table.column("item"), value_set=features.table.column("item")))
    table = pa.concat_tables([features.table, others.table.filter(is_new)]).combine_chunks()
    return Features(table, replace(features.record, stated_digest=None))


def _pairs_to_fit(originals: Sequence[TaskSet], fit: Catalog) -> list[tuple[pa.Array, pa.Array]]:
    """Return items of the classes to fit on with the changes whose traces are to be removed.

    Backgrounds are exchanged by those of any other items, as `mixed-random` does, if a set changes them; otherwise each
    change of the sets is made once.
    """
    spelled = dict.fromkeys(
        change
        for tasks in originals
        if tasks.record.sampler is not None and (change := tasks.record.sampler.options.get("change"))
    )
    made = [changes.make(spelling) for spelling in spelled]
    if any(isinstance(change, BackgroundChange) and change.plates is not None for change in made):
        if not has_layers(fit).any():
            return []
        items, spellings = Plates.of(fit, changes.make("mixed-random")).every_variant(np.array([-1]))  # type: ignore[arg-type]
        numbers = _number_within(items)
        selected = pc.is_in(items, value_set=_first_of_each_class(fit, pc.unique(items)))
        keep = np.asarray(selected) & (numbers < PLATES_PER_ITEM)
        return [(items.filter(pa.array(keep)), spellings.filter(pa.array(keep)))]
    plain = [change for change in made if not isinstance(change, BackgroundChange)]
    items = _first_of_each_class(fit, fit.item_column)
    return [(items, pa.repeat(change.spelling, len(items))) for change in plain]


def _number_within(items: pa.Array) -> np.ndarray:
    """Count, for each row, the earlier rows of the same item, [n]."""
    codes = items.dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    numbers = np.empty(len(codes), dtype=np.int64)
    numbers[order] = np.arange(len(codes)) - starts
    return numbers


def _first_of_each_class(catalog: Catalog, items: pa.Array) -> pa.Array:
    """Return as many of these items as may be changed, about equally many of each class."""
    labels = catalog.table.column("label").take(pa.array(catalog.rows_of(items, "the changes"))).combine_chunks()
    per_class = max(2, ITEMS_TO_CHANGE // max(1, pc.count_distinct(labels).as_py()))
    return items.filter(pa.array(_number_within(labels) < per_class))


def _choose_design(sets: Sequence[Evaluated], shot: int | None) -> tuple[Design, list[Evaluated]]:
    """Return the design to treat, with its task sets: of this many shots, or the most."""
    by_design: dict[Design, list[Evaluated]] = {}
    for evaluated in sets:
        by_design.setdefault(evaluated.origin.design, []).append(evaluated)
    judged = {
        design: group for design, group in by_design.items() if any(is_judged(evaluated.origin) for evaluated in group)
    }
    if not judged:
        raise InputError(
            "there is no loss to lower: no task set measures reliance on attributes, contexts or changes; evaluate "
            "fewstab, ood or changed tasks first"
        )
    available = sorted({design.shot for design in judged if design.shot is not None})
    if shot is not None and shot not in available:
        raise InputError(f"shot: expected one of {', '.join(map(str, available))}, found {shot}")
    wanted = shot if shot is not None else (available[-1] if available else None)
    design = max(
        (design for design in judged if design.shot == wanted),
        key=lambda design: sum(is_judged(evaluated.origin) for evaluated in judged[design]),
    )
    return design, judged[design]


def _choose_classifier(sets: Sequence[Evaluated], inputs: Inputs, section: CureSection) -> tuple[str, Method]:
    """Return the encoder and the method to treat."""
    classifiers = list(dict.fromkeys(classifier for evaluated in sets for classifier in evaluated.values))
    encoders = dict.fromkeys(classifier.encoder for classifier in classifiers)
    methods = dict.fromkeys(classifier.method for classifier in classifiers)
    wanted = None if section.encoder is None else encoder_called(section.encoder, encoders)
    if section.method is not None and section.method not in methods:
        raise UnknownName("method of the results", section.method, methods)
    classifier = next(
        (
            classifier
            for classifier in classifiers
            if wanted in (None, classifier.encoder) and section.method in (None, classifier.method)
        ),
        None,
    )
    if classifier is None:
        raise InputError(f"method '{section.method}' was not evaluated on encoder '{section.encoder}'")
    method = inputs.method(classifier.method)
    if method.evaluated_on != "features":
        raise InputError(
            f"method '{method}' works on a network or on items, not on features: remedies treat features, heads and "
            "supports; name a method on features (--method)"
        )
    return classifier.encoder, method


def encoder_called(name: str, encoders: Iterable[str]) -> str:
    """Return the encoder of this spelling, or else of this short name: folders of files do not matter."""
    spellings = list(encoders)
    short = {spelling: short_encoder_names([spelling])[spelling] for spelling in (*spellings, name)}
    same = [spelling for spelling in spellings if spelling == name] or [
        spelling for spelling in spellings if short[spelling] in (name, short[name])
    ]
    if len(same) != 1:
        raise UnknownName("encoder of the results", name, spellings)
    return same[0]


def _methods(sets: Sequence[Evaluated], encoder: str) -> list[str]:
    return list(
        dict.fromkeys(
            classifier.method
            for evaluated in sets
            for classifier in evaluated.values
            if classifier.encoder == encoder and evaluated.features.get(encoder) is not None
        )
    )


def _features(encoder: str, sets: Sequence[Evaluated], inputs: Inputs) -> Features:
    """Return the features of an encoder, with those of changed items if there are any."""
    candidates = [inputs.features_of(encoder, evaluated.features.get(encoder)) for evaluated in sets]
    return max(candidates, key=len)


def _task_set(evaluated: Evaluated, inputs: Inputs) -> TaskSet:
    return inputs.task_set(evaluated.origin.tasks_digest, evaluated.origin.design.catalog)


def _random_tasks(like: TaskSet, catalog: Catalog) -> list[TaskSet]:
    """Draw random tasks of the size of a task set, to measure what remedies cost; none if the data is too small."""
    record = like.record
    sizes = {name: size for name in ("way", "shot", "query") if (size := getattr(record, name))}
    try:
        return [sample(catalog, RANDOM, split=record.split, tasks=len(like), seed=record.seed or 0, **sizes)]
    except InsufficientData:
        return []


def _context_column(originals: Sequence[TaskSet], catalog: Catalog) -> str | None:
    """Return the column with the contexts: that of the tasks, or `context`, if the catalog has it."""
    names = [tasks.record.context_column for tasks in originals if tasks.record.context_column]
    return next(iter([*names, *(["context"] if "context" in catalog.table.column_names else [])]), None)


def _changes_at_hand(originals: Sequence[TaskSet], features: Features, catalog: Catalog) -> list[str]:
    """Return the changes of the study that can be made of all supports: their changed items have features."""
    spellings = []
    for tasks in originals:
        if not tasks.is_changed or tasks.record.sampler is None:
            continue
        variants = Variants.of(tasks, catalog)
        if variants.is_complete and has_items(features, variants.names):
            spellings.append(str(tasks.record.sampler.options["change"]))
    return [spelling for spelling in dict.fromkeys(spellings) if not spelling.startswith(("only-", "mixed-rival"))]


def read_cure(folder: Path | None) -> Cure | None:
    """Read the cure in the folder of a run; None if there is none."""
    return Cure.read(folder) if folder is not None and path_exists(folder / CURE_FILE) else None


def write_cure(cure: Cure, folder: Path) -> Cure:
    """Write a cure, with the maps that its transforms fitted and the models that it trained, into the folder of a run.

    Args:
        cure: cure to write
        folder: folder of the run

    Returns:
        The cure, whose remedies are applied by these files.
    """
    rows = []
    with new_folder(folder / CURE_FOLDER):
        for row in cure.tried:
            treatment = cure.treatments[row.remedy]
            steps = [_stored(step, row.remedy, folder) for step in treatment.steps]
            row = replace(row, apply=apply_steps(steps)) if steps else row
            if treatment.model is not None:
                file = _file(row.remedy, "model")
                treatment.model.write(folder / file)
                encoder = write_call(f"model:{file}", parse_spelling(cure.encoder)[2])
                row = replace(row, apply=(apply_model(encoder),))
            rows.append(row)
    written = replace(cure, tried=tuple(rows))
    written.write(folder / CURE_FILE)
    return written


def _stored(step: Transform | str, remedy: str, folder: Path) -> str:
    """Return the spelling of a step; the map that it fitted, or else what it is fitted on, is written to files."""
    if not isinstance(step, FileOptions):
        return str(step)
    fitted = getattr(step, "map", None)
    if isinstance(fitted, FittedMap):
        file = _file(remedy, "parquet")
        fitted.write(folder / file)
        return write_call("fitted", {"file": file})
    values = {option.name: getattr(step, option.name) for option in step.options()}
    for name, value in values.items():
        if isinstance(value, Features | Catalog):
            values[name] = _file(f"{remedy} {name}", "parquet")
            value.write(folder / values[name])
    return write_call(step.name, {name: value for name, value in values.items() if value is not None})


def _file(remedy: str, extension: str) -> str:
    """Return the file of what a remedy fitted, in the folder of a run."""
    return f"{CURE_FOLDER}/{'-'.join(re.findall('[a-z0-9]+', remedy))}.{extension}"
