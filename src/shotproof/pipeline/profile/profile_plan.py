"""The experiment of a profile, put together from the data: every axis that it allows, and why others are not there."""

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
from shotproof.catalog.layout import layouts
from shotproof.comparison.card import MissingAxis
from shotproof.core.errors import InputError, InsufficientData
from shotproof.features.encoder import Encoder, encoders
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method, make_method
from shotproof.learners.model_head import ModelHead
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
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.steps.experiment_steps import read_catalog
from shotproof.pipeline.steps.steps import read_manifest
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import TASKS, samplers
from shotproof.tasks.taskset import TaskShape

WAY, SHOT, QUERY = 5, 5, 15
SHOTS = (1, 5, 10)
QUICK = 10  # a quick profile has as many times fewer tasks
BASELINES = ("cosine", "ncc", "ridge", "knn")  # heads on the same features
PLAIN_ENCODERS = {"image": "pixels", "sound": "logmel"}  # features without a network, which one of the heads is on
USUAL_ENCODERS = {"image": "lite0", "sound": "logmel"}
UNBALANCED = "random(query_dirichlet=2)"  # as in α-TIM's paper
TEST = "test"
CONTEXT = "context"
MOST_CONTEXTS = 200  # a column with more values is a name or a measurement
_NEVER_CONTEXTS = {*REQUIRED, *OPTIONAL, NAME} - {CONTEXT}
AXIS_NAMES = {"context": "contexts", "random": "unbalanced"}  # of samplers that are called otherwise
# Where data sets keep what tells how near their classes are.
HIERARCHIES = (
    *(f"{name}.{end}" for name in ("hierarchy", "tree", "class_distances") for end in ("csv", "json", "toml")),
    "attributes/class_attribute_labels_continuous.txt",
)


@dataclass(frozen=True)
class ProfileOptions:
    """What a profile is of, as its caller says; what is None is by the data.

    data: a data folder, a catalog, or a run's folder
    encoder, features, model: the features of the classifier: an encoder, a file of features, or a model's file
    method: the classifier on them
    layout, splits, split: how the data folder is read, and the split that is tested
    attributes: files of attributes, or detectors, which FewSTAB's tasks are by
    context_column: of the catalog; class_distances: a file that tells how near classes are
    tasks: per task set
    skip_bad: leave out files that cannot be read
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
    way: int = WAY
    query: int = QUERY
    tasks: int | None = None
    seed: int = 0
    quick: bool = False
    skip_bad: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("encoder", "features", "model") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"expected one of encoder, features and model, found {' and '.join(given)}")
        if self.attributes and self.detectors:
            raise InputError("expected either files of attributes or detectors, not both")


@dataclass(frozen=True)
class Plan:
    """A profile's experiment, as the sections of its file.

    folder: of the file
    missing: the axes that the data cannot give, with the reasons
    told: what a user should know of what was chosen
    """

    file: ExperimentFile
    folder: Path
    missing: list[MissingAxis] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def to_toml(self) -> str:
        """The experiment's file."""
        about = "Made by shotproof profile. shotproof run experiment.toml makes report.html of it."
        return experiment_text(table_of(self.file, self.folder), about)

    def without(self, left_out: Mapping[str, str]) -> Plan:
        """Without samplers that the data could not give after all, by their spelling, with the reasons."""
        tasks = self.file.tasks
        draws = tuple(draw for draw in tasks.draws if str(draw.sampler) not in left_out)
        missing = [MissingAxis(AXIS_NAMES.get(name.partition("(")[0], name), why) for name, why in left_out.items()]
        file = replace(self.file, tasks=replace(tasks, samplers=draws))
        return replace(self, file=file, missing=[*self.missing, *missing])


def plan_profile(options: ProfileOptions, folder: Path) -> Plan:
    """The experiment that profiles a classifier on some data, whose paths are relative to its folder.

    Args:
        options: the data and the classifier
        folder: where the experiment's files will be

    Returns:
        The experiment, the axes that the data cannot give, and what to tell.

    Raises:
        InputError: the data cannot be read, or has several splits and none called test.
    """
    planning = _Planning(options, folder)
    draws, missing = planning.samplers()
    features, evaluate = planning.classifiers()
    output = OutputSection(
        folder=folder,
        title=f"{planning.catalog.record.name}: all axes",
        intervals=("images", "sampler"),
        projection="none",
    )
    tasks = TasksSection(**planning.design, samplers=tuple(draws))
    file = ExperimentFile(planning.source, None, planning.attributes, features, tasks, evaluate, output=output)
    return Plan(file, folder, missing, planning.told)


class _Planning:
    """A plan while it is made."""

    def __init__(self, options: ProfileOptions, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.told: list[str] = []
        self.source, found = self._source()
        self.catalog = self._catalog()
        self.attributes = self._attributes(found)
        self.shot = self._shot()

    @property
    def _has_files(self) -> bool:
        """Whether the items can be looked at: where features are given, nothing else need be there."""
        return len(self.catalog) > 0 and self.catalog.paths[0].is_file()

    @property
    def tasks(self) -> int:
        """How many per task set."""
        tasks = self.options.tasks or TASKS
        return max(tasks // QUICK, 2) if self.options.quick else tasks

    @property
    def design(self) -> dict[str, Any]:
        """The tasks of all axes."""
        options = self.options
        shape = {"way": options.way, "shots": (self.shot,), "query": options.query}
        return {**shape, "tasks": self.tasks, "seeds": (options.seed,)}

    def samplers(self) -> tuple[list[Draw], list[MissingAxis]]:
        """The samplers of all axes that the data may give, and the axes that it cannot."""
        missing: list[MissingAxis] = []
        others = [shot for shot in SHOTS if shot != SHOT]
        shots = [shot for shot in sorted({self.shot, *others}) if shot == self.shot or self._fits(shot, missing)]
        draws = [self._draw("random", shots=tuple(shots))]
        if self.attributes != AttributesSection():
            draws.append(self._draw("fewstab"))
        else:
            reason = "the data has no attributes, and no pictures to see light and color in: give attributes.parquet"
            missing.append(MissingAxis("fewstab", reason))
        contexts = self._contexts()
        if isinstance(contexts, MissingAxis):
            missing.append(contexts)
        else:
            draws.append(self._draw(contexts))
        draws += [self._draw("hardest", like="random"), self._draw(UNBALANCED)]
        distances = self.options.class_distances or self._hierarchy()
        if distances is None:
            missing.append(MissingAxis("semantic", "the data has no hierarchy: give --class-distances FILE"))
        else:
            draws.append(self._draw(f"semantic(class_distances={str(self._path(distances))!r})"))
        return draws, missing

    def classifiers(self) -> tuple[FeaturesSection, EvaluateSection]:
        """The sections of features and methods: the classifier, then baselines on its features and on plain ones."""
        options, medium = self.options, self.catalog.medium
        plain = encoders.make(PLAIN_ENCODERS[medium]) if medium and self._has_files else None
        own, model = self._encoder(medium), None
        method = self._method(own)
        places: dict[str, list[Encoder | str]] = {method.spelling: [own]}
        if isinstance(method, Adaptation):
            if options.model is None:
                raise InputError(f"method '{method}' adapts a network: name it, --model FILE.model or --model lite0")
            model = str(options.model)
            model = path_from(self.folder, Path(model)) if Path(model).exists() else model
            places[method.spelling] = [model]
        for head in BASELINES:
            of_head = places.setdefault(head, [])
            of_head += [own] if own not in of_head else []
        # One head on plain features tells what the encoder is worth.
        if plain is not None and plain != own:
            places[BASELINES[0]].append(plain)
        methods = {**{head: make_method(head) for head in BASELINES}, method.spelling: method}
        uses = [MethodUse(methods[spelling], tuple(on)) for spelling, on in places.items()]
        if isinstance(method, ModelHead):  # takes the features of its own model
            uses[0] = MethodUse(method)
        chosen = tuple(dict.fromkeys([own, *([plain] if plain else [])]))
        features = FeaturesSection(encoders=chosen, on_error="skip" if options.skip_bad else "raise")
        return features, EvaluateSection(methods=tuple(uses), model=model)

    def _draw(self, sampler: str, **own: Any) -> Draw:
        return Draw(sampler=samplers.make(sampler), **{**self.design, **own})

    def _encoder(self, medium: str | None) -> Encoder:
        options = self.options
        if options.features is not None:
            return encoders.make(f"file:{self._path(options.features)}")
        if options.model is not None:
            path = Path(options.model)
            named = path.exists() or path.suffix
            return encoders.make(f"model:{self._path(path)}" if named else str(options.model))
        if options.encoder is not None:
            return with_files(encoders.make(options.encoder), self._path)
        if medium is None:
            raise InputError("the data is neither images nor sounds by its file names: name the encoder")
        return encoders.make(USUAL_ENCODERS[medium])

    def _method(self, encoder: Encoder) -> Method:
        """As it is asked for, files from the experiment's folder; of a model its own head, of anything else cosine."""
        given = self.options.method
        if given is not None:
            return MethodUse.make(method_from(self.folder, given), self.folder)
        return make_method(str(encoder) if encoder.name == "model" else BASELINES[0])

    def _source(self) -> tuple[CatalogSection, dict[str, Path]]:
        """The section of the catalog, and the files of attributes that a run has left, by name."""
        data, options = self.options.data, self.options
        if not data.exists():
            raise InputError(f"{data} does not exist: expected a data folder, a catalog or a run's folder")
        splits = self._path(options.splits) if options.splits else None
        current = read_manifest(data).current if data.is_dir() else ()
        catalogs = [name for name in current if name.startswith("catalog")]
        if catalogs:
            words = {Path(name).stem.removeprefix("attributes").strip("-"): name for name in current}
            of_run = {name: self._path(data / file) for name, file in words.items() if file.startswith("attributes")}
            return CatalogSection(file=self._path(data / catalogs[-1]), splits=splits), of_run
        if data.suffix == ".parquet":
            return CatalogSection(file=self._path(data), splits=splits), {}
        return CatalogSection(self._path(data), layout=layouts.make(options.layout or "folder"), splits=splits), {}

    def _catalog(self) -> Catalog:
        """Of the one split that is tested."""
        source = self.source
        experiment = Experiment(
            self.folder, root=source.root, catalog_file=source.file, layout=source.layout, splits=source.splits
        )
        catalog = read_catalog(experiment)
        split = self.options.split
        if split is None and len(catalog.splits) > 1:
            if TEST not in catalog.splits:
                raise InputError(
                    f"{self.options.data} has the splits {', '.join(catalog.splits)} and none called {TEST}: choose one"
                )
            split = TEST
        self.source = replace(source, split=split)
        return catalog.in_split(split)

    def _attributes(self, of_run: Mapping[str, Path]) -> AttributesSection:
        """The section of attributes: files, those of the run, those of the catalog's columns, or photometric ones."""
        options = self.options
        if options.detectors:
            return AttributesSection(tuple(with_files(detectors.make(one), self._path) for one in options.detectors))
        files = {path.stem: self._path(path) for path in options.attributes} or dict(of_run)
        if files:
            (first, *more) = files.values()
            return AttributesSection(files=files) if more else AttributesSection(file=first)
        schema = self.catalog.table.schema
        annotated = [name for name in schema.names if pa.types.is_boolean(schema.field(name).type)]
        if annotated:
            self.told.append(f"attributes: {len(annotated)} columns of the catalog, e.g. '{annotated[0]}'")
            return AttributesSection((detectors.make("table"),))
        if self.catalog.medium == "image" and self._has_files:
            self.told.append("attributes: photometric, since the data has none of its own")
            return AttributesSection((detectors.make("photometric"),))
        return AttributesSection()

    def _shot(self) -> int:
        """The shots of all axes: the usual ones, or as many as the smallest class has beside its queries."""
        pool = ItemPool.of(self.catalog)
        if not len(pool.sizes):
            return SHOT  # whoever draws tasks says that there is no data
        smallest = int(np.argmin(pool.sizes))
        left = int(pool.sizes[smallest]) - self.options.query
        if left >= SHOT:
            return SHOT
        label, size, query = pool.classes[smallest], pool.sizes[smallest], self.options.query
        if left < 1:
            hint = f": lower the queries, --query {size - 1}" if size > 1 else ": leave this class out"
            raise InsufficientData(
                f"class '{label}' has {size} items, and {query} queries leave it none to learn from{hint}"
            )
        self.told.append(
            f"shots: {left} in place of {SHOT}, since class '{label}' has {size} items and {query} are queries"
        )
        return left

    def _fits(self, shot: int, missing: list[MissingAxis]) -> bool:
        """Whether random tasks of so many shots can be drawn; else why not."""
        try:
            samplers.make("random").check_sizes(self.catalog, TaskShape(self.options.way, shot, self.options.query))
        except InsufficientData as error:
            missing.append(MissingAxis(f"random-{shot}-shot", str(error)))
            return False
        return True

    def _contexts(self) -> str | MissingAxis:
        """The spelling of the sampler of contexts on the first column that can give its tasks."""
        asked = self.options.context_column
        columns = [asked] if asked is not None else context_columns(self.catalog)
        if not columns:
            return MissingAxis("contexts", "no column of the catalog looks like contexts: name one, --context-column")
        reasons = []
        for column in columns:
            spelled, reason = self._context_sampler(column)
            if spelled is not None:
                others = [other for other in columns if other != column]
                also = f"; {', '.join(others)} look like contexts too (--context-column)" if others else ""
                self.told.append(f"contexts: column '{column}'{also}")
                return spelled
            reasons.append(f"column '{column}': {reason}")
        nor = f"; nor can {', '.join(columns[1:])}" if columns[1:] else ""
        return MissingAxis("contexts", reasons[0] + nor)

    def _context_sampler(self, column: str) -> tuple[str | None, str]:
        """The spelling of all matched sets, without hard-ood if the data cannot give it; or None, and the reason."""
        shape = TaskShape(self.options.way, self.shot, self.options.query)
        reason = ""
        for options in (f"context_column={column!r}", f"context_column={column!r}, hard_ood=False"):
            spelled = f"context({options})"
            try:
                for sampler in samplers.make(spelled).sets(self.catalog).values():
                    sampler.bind(self.catalog, shape, self.options.seed).draw(range(2))
            except InsufficientData as error:
                reason = reason or str(error)
            else:
                return spelled, ""
        return None, reason

    def _hierarchy(self) -> Path | None:
        """A file in the data's folder that tells how near classes are."""
        data = self.options.data
        root = data if data.is_dir() else data.parent
        return next((root / name for name in HIERARCHIES if (root / name).is_file()), None)

    def _path(self, path: Path) -> Path:
        """The path as the experiment's file has it, from its folder."""
        return self.folder / path_from(self.folder, path)


def context_columns(catalog: Catalog) -> list[str]:
    """The columns that look like contexts, `context` first.

    A context is a word per item that has few values, is of several values in most classes, and of several classes in
    most values: a column that follows from the class, or that tells items apart, is none.

    Args:
        catalog: items of one split

    Returns:
        The names of the columns, those with the most classes per value first.
    """
    found = {}
    for name in catalog.table.column_names:
        if (
            name not in _NEVER_CONTEXTS
            and name not in catalog.path_columns
            and _is_word(catalog.table.schema.field(name).type)
        ):
            shared = _classes_per_value(catalog, name)
            if shared is not None:
                found[name] = shared
    return sorted(found, key=lambda name: (name != CONTEXT, -found[name], name))


def _is_word(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind) or pa.types.is_integer(kind))


def _classes_per_value(catalog: Catalog, name: str) -> float | None:
    """The mean number of classes that a value is in; None where the column is no context."""
    values = pc.cast(catalog.table.column(name), pa.string())
    table = pa.table({"label": catalog.table.column("label"), "value": values}).filter(
        pc.and_(pc.is_valid(values), pc.not_equal(values, ""))
    )
    cells = table.group_by(["label", "value"], use_threads=False).aggregate([])
    if not len(cells):
        return None
    classes, distinct = (pc.count_distinct(cells.column(one)).as_py() for one in ("label", "value"))
    if not 2 <= distinct <= MOST_CONTEXTS or len(cells) < 1.5 * classes or len(cells) < 1.5 * distinct:
        return None
    return float(len(cells) / distinct)
