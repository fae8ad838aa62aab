"""Plan of a profile: an experiment with every axis that the data allows, and the reasons why others are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.detector import detectors
from shotproof.catalog.catalog import NAME, OPTIONAL, REQUIRED, Catalog
from shotproof.catalog.changed_catalog import LAYER_COLUMNS, LAYERS_HINT, has_layers
from shotproof.catalog.layout import layouts
from shotproof.comparison.card import MissingAxis
from shotproof.core.errors import InputError, InsufficientData, MissingExtra
from shotproof.core.nouns import counted
from shotproof.core.spelling import parse_call
from shotproof.features.encoder import Encoder, encoders
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method, make_method
from shotproof.learners.model_head import ModelHead
from shotproof.masks.cut_images import PIXEL_BOX, CutSettings, require_folder
from shotproof.masks.cutter import cutters
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_file import (
    AttributesSection,
    CatalogSection,
    EvaluateSection,
    ExperimentFile,
    FeaturesSection,
    OutputSection,
    TasksSection,
)
from shotproof.pipeline.experiment_text import experiment_text, method_from, path_from, table_of, with_files
from shotproof.pipeline.masks_section import Masking
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.steps.experiment_steps import read_catalog
from shotproof.pipeline.steps.steps import read_manifest
from shotproof.tasks.changed import Changed
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import TASKS, samplers
from shotproof.tasks.taskset import TaskShape

WAY, SHOT, QUERY = 5, 5, 15
SHOTS = (1, 5, 10)
QUICK = 10  # factor by which a quick profile has fewer tasks
BASELINES = ("cosine", "ncc", "ridge", "knn")  # heads on the same features
PLAIN_ENCODERS = {"image": "pixels", "sound": "logmel"}  # features without a network, for one baseline
USUAL_ENCODERS = {"image": "lite0", "sound": "logmel"}
RANDOM = "random"
# Changes of one thing in the items, at their usual severity.
CHANGES = {
    "image": ("noise", "blur", "light", "color", "compression", "rotation"),
    "sound": ("sound-noise", "band", "gain", "reverberation"),
}
UNBALANCED = "random(query_dirichlet=2)"  # as in the α-TIM paper
TEST = "test"
CONTEXT = "context"
BACKGROUND = "background"
MAX_CONTEXTS = 200  # columns with more values are names or measurements
_NEVER_CONTEXTS = {*REQUIRED, *OPTIONAL, NAME} - {CONTEXT}
AXIS_NAMES = {
    "context": "contexts",
    "random": "unbalanced",
    "shift": BACKGROUND,
}  # for samplers whose axis has another name
# Files in which data sets store a hierarchy or distances of their classes.
HIERARCHIES = (
    *(f"{name}.{end}" for name in ("hierarchy", "tree", "class_distances") for end in ("csv", "json", "toml")),
    "attributes/class_attribute_labels_continuous.txt",
)


@dataclass(frozen=True)
class ProfileOptions:
    """Options of a profile; those that are None depend on the data.

    data: data folder, catalog, or run folder
    encoder, features, model: features of the classifier: an encoder, a features file, or a model file
    method: method of the classifier
    layout, splits, split: layout and splits of the data folder, and the split that is tested
    attributes, detectors: attributes files or detectors for FewSTAB tasks
    context_column: column of the catalog; class_distances: file with a hierarchy or distances of the classes
    masks: folder of masks of the images
    tasks: number of tasks per task set
    skip_bad: whether to leave out unreadable files
    """

    data: Path
    encoder: str | None = None
    method: str | None = None
    features: Path | None = None
    model: str | Path | None = None
    layout: str | None = None
    splits: Path | None = None
    split: str | None = None
    attributes: tuple[Path, ...] = ()
    detectors: tuple[str, ...] = ()
    context_column: str | None = None
    class_distances: Path | None = None
    masks: Path | None = None
    way: int = WAY
    query: int = QUERY
    tasks: int | None = None
    seed: int = 0
    quick: bool = False
    skip_bad: bool = False

    def __post_init__(self) -> None:
        sources = [name for name in ("encoder", "features", "model") if getattr(self, name) is not None]
        if len(sources) > 1:
            raise InputError(f"expected one of encoder, features and model, found {' and '.join(sources)}")
        if self.attributes and self.detectors:
            raise InputError("expected either attributes files or detectors, not both")


@dataclass(frozen=True)
class Plan:
    """Experiment of a profile, as the sections of its file.

    folder: folder of the file
    missing: axes for which the data is not sufficient, with the reasons
    notes: choices that the user should know about
    """

    file: ExperimentFile
    folder: Path
    missing: list[MissingAxis] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_toml(self) -> str:
        """Return the text of the experiment file."""
        about = "Written by shotproof profile. For report.html: shotproof run experiment.toml"
        return experiment_text(table_of(self.file, self.folder), about)

    def without(self, left_out: Mapping[str, str]) -> Plan:
        """Return the plan without samplers that were left out, given by their spelling with the reasons.

        If no item can be shown on another background, this is one missing axis, and not one for each change.
        """
        tasks = self.file.tasks
        draws = tuple(draw for draw in tasks.draws if str(draw.sampler) not in left_out)
        without_background = [name for name in left_out if _axis_of(name) == BACKGROUND]
        for draw in tasks.draws:
            if draw.like in without_background:
                without_background.append(str(draw.sampler))
        missing = [
            MissingAxis(_axis_of(name), reason)
            for name, reason in left_out.items()
            if name not in without_background[1:]
        ]
        file = replace(self.file, tasks=replace(tasks, samplers=draws))
        return replace(self, file=file, missing=[*self.missing, *missing])


def _axis_of(spelling: str) -> str:
    """Return the name of the axis of a sampler: that of the change, if it changes items."""
    name, options = parse_call(spelling)
    if name == "changed":
        return str(options.get("change", Changed.change))
    return AXIS_NAMES.get(name, spelling)


def plan_profile(options: ProfileOptions, folder: Path) -> Plan:
    """Plan the experiment that profiles a classifier on some data, with paths relative to its folder.

    Args:
        options: data and classifier
        folder: folder of the experiment

    Returns:
        The experiment, the axes for which the data is not sufficient, and notes.

    Raises:
        InputError: the data cannot be read, or has several splits but none named test.
    """
    builder = _PlanBuilder(options, folder)
    draws, missing = builder.samplers()
    features, evaluate = builder.classifiers()
    output = OutputSection(
        folder=folder,
        title=f"{builder.catalog.record.name}: all axes",
        intervals=("images", "sampler"),
        projection="none",
    )
    tasks = TasksSection(**builder.design, samplers=tuple(draws))
    file = ExperimentFile(
        builder.source,
        masks=builder.masks,
        attributes=builder.attributes,
        features=features,
        tasks=tasks,
        evaluate=evaluate,
        output=output,
    )
    return Plan(file, folder, missing, builder.notes)


class _PlanBuilder:
    """Builder of a plan."""

    def __init__(self, options: ProfileOptions, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.notes: list[str] = []
        self.source, run_attributes = self._build_source()
        self.catalog = self._read_catalog()
        self.attributes = self._choose_attributes(run_attributes)
        self.shot = self._choose_shot()
        self.masks, self.no_background = self._choose_masks()

    @property
    def _has_files(self) -> bool:
        """Return whether the files of the items exist; with a features file, they need not."""
        return len(self.catalog) > 0 and self.catalog.paths[0].is_file()

    @property
    def tasks(self) -> int:
        """Return the number of tasks per task set."""
        tasks = self.options.tasks or TASKS
        return max(tasks // QUICK, 2) if self.options.quick else tasks

    @property
    def design(self) -> dict[str, Any]:
        """Return the design of the tasks, which all axes share."""
        options = self.options
        shape = {"way": options.way, "shots": (self.shot,), "query": options.query}
        return {**shape, "tasks": self.tasks, "seeds": (options.seed,)}

    def samplers(self) -> tuple[list[Draw], list[MissingAxis]]:
        """Return the samplers of all axes that the data may allow, and the missing axes."""
        missing: list[MissingAxis] = []
        others = [shot for shot in SHOTS if shot != SHOT]
        shots = [shot for shot in sorted({self.shot, *others}) if shot == self.shot or self._fits(shot, missing)]
        draws = [self._draw("random", shots=tuple(shots))]
        if self.attributes != AttributesSection():
            draws.append(self._draw("fewstab"))
        else:
            reason = "the data has no attributes, and no images to detect them in: add attributes.parquet"
            missing.append(MissingAxis("fewstab", reason))
        contexts = self._choose_contexts()
        if isinstance(contexts, MissingAxis):
            missing.append(contexts)
        else:
            draws.append(self._draw(contexts))
        draws += [self._draw("hardest", like="random"), self._draw(UNBALANCED)]
        distances = self.options.class_distances or self._find_hierarchy()
        if distances is None:
            missing.append(MissingAxis("semantic", "the data has no hierarchy of classes: add --class-distances FILE"))
        else:
            draws.append(self._draw(f"semantic(class_distances={str(self._path(distances))!r})"))
        changed, missing_changes = self._choose_changes()
        return [*draws, *changed], [*missing, *missing_changes]

    def _choose_changes(self) -> tuple[list[Draw], list[MissingAxis]]:
        """Return the sets whose items are changed, one change each, and those that are missing."""
        medium = self.catalog.medium
        if medium is None or self._no_changes:
            return [], [MissingAxis("changes", self._no_changes)]
        names = CHANGES[medium]
        others = ", and those with other backgrounds, which are counted before they are encoded"
        self.notes.append(
            f"changes: {len(names)} of {counted(len(self.catalog), 'item')}, so "
            f"{len(names) * len(self.catalog):,} changed items are encoded" + ("" if self.no_background else others)
        )
        draws = [self._draw(f"changed(change={change!r})", like=RANDOM) for change in names]
        if self.no_background:
            return draws, [MissingAxis(BACKGROUND, self.no_background)]
        return [*draws, *self._background_draws()], []

    @property
    def _no_changes(self) -> str:
        """Return why items cannot be changed, or are not; empty if they are."""
        if self.options.features is not None or not self._has_files or self.catalog.medium is None:
            return "changed items must be encoded: give an encoder and the files of the items"
        return "a quick profile leaves changed items out, since each must be encoded" if self.options.quick else ""

    def _background_draws(self) -> list[Draw]:
        """Return the sets that show other backgrounds, after random tasks of the items whose foreground is known."""
        draws, like = [], RANDOM
        if self.masks is not None or not has_layers(self.catalog).all():
            columns = LAYER_COLUMNS[self.catalog.medium or "image"]
            condition = " and ".join(f"{column} != ''" for column in columns)
            masked = self._draw(f'shift(support_where="{condition}", query_where="{condition}", shifted=False)')
            draws, like = [masked], str(masked)
        pasted = self._draw("changed(change='mixed-same')", like=like)
        return [
            *draws,
            self._draw("changed(change='only-background')", like=like),
            pasted,
            self._draw("changed(change='mixed-random')", like=str(pasted)),
            self._draw("changed(change='mixed-rival')", like=str(pasted)),
        ]

    def _choose_masks(self) -> tuple[Masking | None, str]:
        """Return how foregrounds are cut out, if they must be, and why there are no axes of the background, if so."""
        if self.options.masks is not None and self.catalog.medium == "sound":
            raise InputError(
                "masks: expected images, found sounds: sounds need no masks; mix them first (shotproof mix --mapping)"
            )
        if self.options.masks is not None:
            require_folder(self.options.masks)
        if self._no_changes:
            return None, ""
        if self.options.masks is not None:
            return Masking(CutSettings(masks=self._path(self.options.masks)), keep_all=True), ""
        if has_layers(self.catalog).any():
            return None, ""
        if self.catalog.medium != "image" or not set(PIXEL_BOX) <= set(self.catalog.table.column_names):
            return None, LAYERS_HINT
        cutter = cutters.make("grabcut")
        try:
            cutter.require_extras()
        except MissingExtra:
            return (
                None,
                'the catalog has boxes, and OpenCV cuts the foregrounds out of them: pip install "shotproof[cut]"',
            )
        self.notes.append(
            f"masks: grabcut cuts the foreground out of {counted(len(self.catalog), 'image')} first, by their boxes; "
            "images without a good mask are in no task of another background, but in all others"
        )
        return Masking(CutSettings(cutter=cutter), keep_all=True), ""

    def classifiers(self) -> tuple[FeaturesSection, EvaluateSection]:
        """Return the sections of features and methods: the classifier, and baselines on its features and plain ones."""
        options, medium = self.options, self.catalog.medium
        plain = encoders.make(PLAIN_ENCODERS[medium]) if medium and self._has_files else None
        encoder, model = self._make_encoder(medium), None
        method = self._make_method(encoder)
        targets: dict[str, list[Encoder | str]] = {method.spelling: [encoder]}
        if isinstance(method, Adaptation):
            if options.model is None:
                raise InputError(f"method '{method}' adapts a network: add --model FILE.model or --model lite0")
            model = str(options.model)
            model = path_from(self.folder, Path(model)) if Path(model).exists() else model
            targets[method.spelling] = [model]
        for head in BASELINES:
            head_targets = targets.setdefault(head, [])
            head_targets += [encoder] if encoder not in head_targets else []
        # One head on plain features shows how much the encoder contributes.
        if plain is not None and plain != encoder:
            targets[BASELINES[0]].append(plain)
        methods = {**{head: make_method(head) for head in BASELINES}, method.spelling: method}
        uses = [MethodUse(methods[spelling], tuple(method_targets)) for spelling, method_targets in targets.items()]
        if isinstance(method, ModelHead):  # uses the features of its own model
            uses[0] = MethodUse(method)
        used_encoders = tuple(dict.fromkeys([encoder, *([plain] if plain else [])]))
        features = FeaturesSection(encoders=used_encoders, on_error="skip" if options.skip_bad else "raise")
        return features, EvaluateSection(methods=tuple(uses), model=model)

    def _draw(self, sampler: str, **values: Any) -> Draw:
        """Build an entry of the samplers, with values that differ from the design."""
        return Draw(sampler=samplers.make(sampler), **{**self.design, **values})

    def _make_encoder(self, medium: str | None) -> Encoder:
        """Build the encoder of the classifier; files are relative to the experiment's folder."""
        options = self.options
        if options.features is not None:
            return encoders.make(f"file:{self._path(options.features)}")
        if options.model is not None:
            path = Path(options.model)
            is_file_name = path.exists() or path.suffix
            return encoders.make(f"model:{self._path(path)}" if is_file_name else str(options.model))
        if options.encoder is not None:
            return with_files(encoders.make(options.encoder), self._path)
        if medium is None:
            raise InputError("the file names do not show whether the data is images or sounds: name the encoder")
        return encoders.make(USUAL_ENCODERS[medium])

    def _make_method(self, encoder: Encoder) -> Method:
        """Build the method, by default the head of a model or cosine; files are relative to the experiment's folder."""
        spelling = self.options.method
        if spelling is not None:
            return MethodUse.make(method_from(self.folder, spelling), self.folder)
        return make_method(str(encoder) if encoder.name == "model" else BASELINES[0])

    def _build_source(self) -> tuple[CatalogSection, dict[str, Path]]:
        """Return the section of the catalog, and the attributes files of a run, by name."""
        data, options = self.options.data, self.options
        if not data.exists():
            raise InputError(f"{data} does not exist: expected a data folder, a catalog or a run folder")
        splits = self._path(options.splits) if options.splits else None
        current = read_manifest(data).current if data.is_dir() else ()
        catalogs = [name for name in current if name.startswith("catalog")]
        if catalogs:
            run_attributes = {
                Path(file).stem.removeprefix("attributes").strip("-"): self._path(data / file)
                for file in current
                if file.startswith("attributes")
            }
            return CatalogSection(file=self._path(data / catalogs[-1]), splits=splits), run_attributes
        if data.suffix == ".parquet":
            return CatalogSection(file=self._path(data), splits=splits), {}
        return CatalogSection(self._path(data), layout=layouts.make(options.layout or "folder"), splits=splits), {}

    def _read_catalog(self) -> Catalog:
        """Read the catalog of the split that is tested."""
        source = self.source
        experiment = Experiment(
            self.folder, root=source.root, catalog_file=source.file, layout=source.layout, splits=source.splits
        )
        catalog = read_catalog(experiment)
        split = self.options.split
        if split is None and len(catalog.splits) > 1:
            if TEST not in catalog.splits:
                raise InputError(
                    f"{self.options.data} has the splits {', '.join(catalog.splits)} but none named {TEST}: choose one"
                )
            split = TEST
        self.source = replace(source, split=split)
        return catalog.in_split(split)

    def _choose_attributes(self, run_attributes: Mapping[str, Path]) -> AttributesSection:
        """Return the section of attributes: files, the run's, the catalog's columns, or photometric attributes."""
        options = self.options
        if options.detectors:
            return AttributesSection(tuple(with_files(detectors.make(name), self._path) for name in options.detectors))
        files = {path.stem: self._path(path) for path in options.attributes} or dict(run_attributes)
        if files:
            first, *others = files.values()
            return AttributesSection(files=files) if others else AttributesSection(file=first)
        schema = self.catalog.table.schema
        boolean_columns = [name for name in schema.names if pa.types.is_boolean(schema.field(name).type)]
        if boolean_columns:
            self.notes.append(f"attributes: {len(boolean_columns)} columns of the catalog, e.g. '{boolean_columns[0]}'")
            return AttributesSection((detectors.make("table"),))
        if self.catalog.medium == "image" and self._has_files:
            self.notes.append("attributes: photometric, because the data has no attributes")
            return AttributesSection((detectors.make("photometric"),))
        return AttributesSection()

    def _choose_shot(self) -> int:
        """Return the number of shots of all axes: the default, or as many as the smallest class allows."""
        pool = ItemPool.of(self.catalog)
        if not len(pool.sizes):
            return SHOT  # the sampler reports that there is no data
        smallest = int(np.argmin(pool.sizes))
        remaining = int(pool.sizes[smallest]) - self.options.query
        if remaining >= SHOT:
            return SHOT
        label, size, query = pool.classes[smallest], pool.sizes[smallest], self.options.query
        if remaining < 1:
            hint = f": use --query {size - 1} or less" if size > 1 else ": leave the class out"
            raise InsufficientData(
                f"class '{label}' has {counted(int(size), 'item')}, and {counted(query, 'query', 'queries')} leave "
                f"none for the support set{hint}"
            )
        self.notes.append(
            f"shots: {remaining} instead of {SHOT}, because class '{label}' has {size} items and {query} are queries"
        )
        return remaining

    def _fits(self, shot: int, missing: list[MissingAxis]) -> bool:
        """Return whether random tasks with this many shots can be drawn; if not, add the reason to `missing`."""
        try:
            samplers.make("random").check_sizes(self.catalog, TaskShape(self.options.way, shot, self.options.query))
        except InsufficientData as error:
            missing.append(MissingAxis(f"random-{shot}-shot", str(error)))
            return False
        return True

    def _choose_contexts(self) -> str | MissingAxis:
        """Return the spelling of the context sampler with the first column that is sufficient, or the missing axis."""
        requested = self.options.context_column
        columns = [requested] if requested is not None else context_columns(self.catalog)
        if not columns:
            return MissingAxis("contexts", "no column of the catalog looks like contexts: add --context-column NAME")
        reasons = []
        for column in columns:
            spelling, reason = self._make_context_sampler(column)
            if spelling is not None:
                others = [other for other in columns if other != column]
                hint = f"; others that look like contexts: {', '.join(others)} (--context-column)" if others else ""
                self.notes.append(f"contexts: column '{column}'{hint}")
                return spelling
            reasons.append(f"column '{column}': {reason}")
        rest = f"; nor is the data sufficient with {', '.join(columns[1:])}" if columns[1:] else ""
        return MissingAxis("contexts", reasons[0] + rest)

    def _make_context_sampler(self, column: str) -> tuple[str | None, str]:
        """Return the spelling of the matched sets, if necessary without hard-ood, or None and the reason."""
        shape = TaskShape(self.options.way, self.shot, self.options.query)
        reason = ""
        for options in (f"context_column={column!r}", f"context_column={column!r}, hard_ood=False"):
            spelling = f"context({options})"
            try:
                for sampler in samplers.make(spelling).sets(self.catalog).values():
                    sampler.bind(self.catalog, shape, self.options.seed).draw(range(2))
            except InsufficientData as error:
                reason = reason or str(error)
            else:
                return spelling, ""
        return None, reason

    def _find_hierarchy(self) -> Path | None:
        """Find a file with a hierarchy or distances of the classes in the data folder."""
        data = self.options.data
        root = data if data.is_dir() else data.parent
        return next((root / name for name in HIERARCHIES if (root / name).is_file()), None)

    def _path(self, path: Path) -> Path:
        """Return the path as in the experiment file, relative to its folder."""
        return self.folder / path_from(self.folder, path)


def context_columns(catalog: Catalog) -> list[str]:
    """Find the columns that look like contexts, `context` first.

    A context has few values; most classes have several values, and most values occur in several classes. Columns that
    are determined by the class, or that identify items, are not contexts.

    Args:
        catalog: items of one split

    Returns:
        Column names, in decreasing order of classes per value.
    """
    classes_per_value = {}
    for name in catalog.table.column_names:
        if (
            name not in _NEVER_CONTEXTS
            and name not in catalog.path_columns
            and _is_word(catalog.table.schema.field(name).type)
        ):
            mean_classes = _classes_per_value(catalog, name)
            if mean_classes is not None:
                classes_per_value[name] = mean_classes
    return sorted(classes_per_value, key=lambda name: (name != CONTEXT, -classes_per_value[name], name))


def _is_word(kind: pa.DataType) -> bool:
    """Return whether a column type can hold contexts."""
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind) or pa.types.is_integer(kind))


def _classes_per_value(catalog: Catalog, name: str) -> float | None:
    """Return the mean number of classes per value; None if the column does not look like contexts."""
    values = pc.cast(catalog.table.column(name), pa.string())
    table = pa.table({"label": catalog.table.column("label"), "value": values}).filter(
        pc.and_(pc.is_valid(values), pc.not_equal(values, ""))
    )
    cells = table.group_by(["label", "value"], use_threads=False).aggregate([])
    if not len(cells):
        return None
    classes, distinct = (pc.count_distinct(cells.column(column)).as_py() for column in ("label", "value"))
    if not 2 <= distinct <= MAX_CONTEXTS or len(cells) < 1.5 * classes or len(cells) < 1.5 * distinct:
        return None
    return float(len(cells) / distinct)
