"""The experiment of a profile, put together from the data: every axis that it allows, and why others are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.attributes.detector import detectors
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import MissingAxis
from shotproof.core.errors import InputError, InsufficientData
from shotproof.features.encoder import encoders
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import make_method
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_text import experiment_text, method_from, path_from, spelling_from
from shotproof.pipeline.profile.context_columns import context_columns
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
    """A profile's experiment, as the tables of its file.

    missing: the axes that the data cannot give, with the reasons
    told: what a user should know of what was chosen
    """

    content: Mapping[str, Any]
    missing: list[MissingAxis] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def to_toml(self) -> str:
        """The experiment's file."""
        about = "Made by shotproof profile. shotproof run experiment.toml makes report.html of it."
        return experiment_text(self.content, about)

    def without(self, left_out: Mapping[str, str]) -> Plan:
        """Without samplers that the data could not give after all, by their spelling, with the reasons."""
        tasks = dict(self.content["tasks"])
        tasks["samplers"] = [one for one in tasks["samplers"] if one["name"] not in left_out]
        missing = [MissingAxis(AXIS_NAMES.get(name.partition("(")[0], name), why) for name, why in left_out.items()]
        return Plan({**self.content, "tasks": tasks}, [*self.missing, *missing], self.told)


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
    samplers_, missing = planning.samplers()
    features, evaluate = planning.classifiers()
    content = {
        "catalog": planning.source,
        **({"attributes": planning.attributes} if planning.attributes else {}),
        "features": features,
        "tasks": {
            **{"way": options.way, "shots": [planning.shot], "query": options.query, "tasks": planning.tasks},
            **{"seeds": [options.seed], "samplers": samplers_},
        },
        "evaluate": evaluate,
        "output": {
            **{"folder": ".", "title": f"{planning.catalog.record.name}: all axes"},
            **{"intervals": ["images", "sampler"], "projection": "none"},
        },
    }
    return Plan(content, missing, planning.told)


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

    def samplers(self) -> tuple[list[dict[str, Any]], list[MissingAxis]]:
        """The samplers of all axes that the data may give, and the axes that it cannot."""
        missing: list[MissingAxis] = []
        others = [shot for shot in SHOTS if shot != SHOT]
        shots = [shot for shot in sorted({self.shot, *others}) if shot == self.shot or self._fits(shot, missing)]
        found: list[dict[str, Any]] = [{"name": "random", "shots": shots}]
        if self.attributes:
            found.append({"name": "fewstab"})
        else:
            reason = "the data has no attributes, and no pictures to see light and color in: give attributes.parquet"
            missing.append(MissingAxis("fewstab", reason))
        contexts = self._contexts()
        found += [] if isinstance(contexts, MissingAxis) else [contexts]
        missing += [contexts] if isinstance(contexts, MissingAxis) else []
        found.append({"name": "hardest", "like": "random"})
        found.append({"name": UNBALANCED})
        distances = self.options.class_distances or self._hierarchy()
        if distances is None:
            missing.append(MissingAxis("semantic", "the data has no hierarchy: give --class-distances FILE"))
        else:
            found.append({"name": f"semantic(class_distances={self._path(distances)!r})"})
        return found, missing

    def classifiers(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The sections of features and methods: the classifier, then baselines on its features and on plain ones."""
        options, medium = self.options, self.catalog.medium
        plain = PLAIN_ENCODERS.get(medium or "") if self._has_files else None
        own, model = self._encoder(medium), None
        spelled = self._method(own)
        method = make_method(spelled, folder=self.folder)
        on = [own]
        if isinstance(method, Adaptation):
            if options.model is None:
                raise InputError(f"method '{method}' adapts a network: name it, --model FILE.model or --model lite0")
            model = str(options.model) if not Path(options.model).exists() else self._path(Path(options.model))
            on = [model]
        heads: dict[str, list[str]] = {spelled: on}
        for head in BASELINES:
            heads.setdefault(head, [])
            heads[head] += [own] if own not in heads[head] else []
        # One head on plain features tells what the encoder is worth.
        if plain is not None and plain != own:
            heads[BASELINES[0]] = [*heads[BASELINES[0]], plain]
        chosen = list(dict.fromkeys([own, *([plain] if plain else [])]))
        features = {"encoders": chosen, **({"on_error": "skip"} if options.skip_bad else {})}
        methods: list[dict[str, Any]] = [{"name": name, "on": places} for name, places in heads.items()]
        if isinstance(method, Adaptation):
            return features, {"model": model, "methods": methods}
        if methods[0]["name"].startswith("model:"):  # takes the features of its own model
            methods[0] = {"name": methods[0]["name"]}
        return features, {"methods": methods}

    def _encoder(self, medium: str | None) -> str:
        options = self.options
        if options.features is not None:
            return f"file:{self._path(options.features)}"
        if options.model is not None:
            path = Path(options.model)
            return f"model:{self._path(path)}" if path.exists() or path.suffix else str(options.model)
        if options.encoder is not None:
            return spelling_from(self.folder, encoders.make(options.encoder))
        if medium is None:
            raise InputError("the data is neither images nor sounds by its file names: name the encoder")
        return USUAL_ENCODERS[medium]

    def _method(self, encoder: str) -> str:
        """As it is asked for, files from the experiment's folder; of a model its own head, of anything else cosine."""
        given = self.options.method
        if given is None:
            return encoder if encoder.startswith("model:") else BASELINES[0]
        return method_from(self.folder, given)

    def _source(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The section of the catalog, and the files of attributes that a run has left, by name."""
        data, options = self.options.data, self.options
        if not data.exists():
            raise InputError(f"{data} does not exist: expected a data folder, a catalog or a run's folder")
        split = {"splits": self._path(options.splits)} if options.splits else {}
        current = read_manifest(data).current if data.is_dir() else ()
        catalogs = [name for name in current if name.startswith("catalog")]
        if catalogs:
            words = {Path(name).stem.removeprefix("attributes").strip("-"): name for name in current}
            of_run = {name: self._path(data / file) for name, file in words.items() if file.startswith("attributes")}
            return {"file": self._path(data / catalogs[-1]), **split}, of_run
        if data.suffix == ".parquet":
            return {"file": self._path(data), **split}, {}
        return {"root": self._path(data), "layout": options.layout or "folder", **split}, {}

    def _catalog(self) -> Catalog:
        """Of the one split that is tested."""
        catalog = read_catalog(Experiment.of({"catalog": self.source, "tasks": {"samplers": ["random"]}}, self.folder))
        split = self.options.split
        if split is None and len(catalog.splits) > 1:
            if TEST not in catalog.splits:
                raise InputError(
                    f"{self.options.data} has the splits {', '.join(catalog.splits)} and none called {TEST}: choose one"
                )
            split = TEST
        if split is not None:
            self.source["split"] = split
        return catalog.in_split(split)

    def _attributes(self, of_run: Mapping[str, str]) -> dict[str, Any]:
        """The section of attributes: files, those of the run, those of the catalog's columns, or photometric ones."""
        options = self.options
        if options.attributes:
            files = {path.stem: self._path(path) for path in options.attributes}
            return {"file": next(iter(files.values()))} if len(files) == 1 else {"files": files}
        if options.detectors:
            return {"detectors": [spelling_from(self.folder, detectors.make(one)) for one in options.detectors]}
        if of_run:
            return {"file": next(iter(of_run.values()))} if len(of_run) == 1 else {"files": dict(of_run)}
        schema = self.catalog.table.schema
        annotated = [name for name in schema.names if pa.types.is_boolean(schema.field(name).type)]
        if annotated:
            self.told.append(f"attributes: {len(annotated)} columns of the catalog, e.g. '{annotated[0]}'")
            return {"detectors": ["table"]}
        if self.catalog.medium == "image" and self._has_files:
            self.told.append("attributes: photometric, since the data has none of its own")
            return {"detectors": ["photometric"]}
        return {}

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

    def _contexts(self) -> dict[str, Any] | MissingAxis:
        """The sampler of contexts on the first column that can give its tasks."""
        asked = self.options.context_column
        columns = [asked] if asked is not None else context_columns(self.catalog)
        if not columns:
            return MissingAxis("contexts", "no column of the catalog looks like contexts: name one, --context-column")
        reasons = []
        for column in columns:
            found = self._context_sampler(column)
            if not isinstance(found, str):
                others = [other for other in columns if other != column]
                also = f"; {', '.join(others)} look like contexts too (--context-column)" if others else ""
                self.told.append(f"contexts: column '{column}'{also}")
                return found
            reasons.append(f"column '{column}': {found}")
        nor = f"; nor can {', '.join(columns[1:])}" if columns[1:] else ""
        return MissingAxis("contexts", reasons[0] + nor)

    def _context_sampler(self, column: str) -> dict[str, Any] | str:
        """All matched sets; without hard-ood where the data cannot give it; else the reason."""
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
                return {"name": spelled}
        return reason

    def _hierarchy(self) -> Path | None:
        """A file in the data's folder that tells how near classes are."""
        data = self.options.data
        root = data if data.is_dir() else data.parent
        return next((root / name for name in HIERARCHIES if (root / name).is_file()), None)

    def _path(self, path: Path) -> str:
        return path_from(self.folder, path)
