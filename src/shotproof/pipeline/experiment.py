"""The file that describes a whole experiment: TOML, every key checked, every path relative to the file.

[catalog]
root = "birds/"                # or: file = "catalog.parquet"
layout = "folder"
splits = "splits.csv"
names = "names.csv"            # what pages call the classes: label,name

[attributes]
detectors = ["photometric"]    # together; or apart, each with its own tasks:
# [attributes.sets]
# photometric = ["photometric"]
# captions = ["captions(file='captions.csv')"]

[features]
encoders = ["lite0", "pixels(size=8)"]

[tasks]
split = "test"
way = 5
shots = [1, 5]
query = 15
tasks = 600
seeds = [0]
samplers = ["random", "fewstab", { name = "hardest(rounds=2)", like = "random", shots = [5] }]

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]
# methods = ["ncc", "finetune"]  # finetune adapts a network, of which there are one or more:
# model = "rfs.model"            # or: models = ["rfs.model", "protonet.model"]

[runtime]
workers = 2

[output]
folder = "birds-results"
intervals = ["images", "sampler"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

from shotproof.attributes.detector import Detector, detectors
from shotproof.catalog.layout import Layout, layouts
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.core.spelling import parse_spelling
from shotproof.core.store import OnError
from shotproof.evaluation.evaluated import METRICS
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.transforms import Transform, transforms
from shotproof.methods.adaptation.adaptation import Adaptation
from shotproof.methods.method import DEFAULT_METHODS, Method, make_method
from shotproof.stats.intervals import Covers, check_intervals
from shotproof.tasks.sampler import Sampler, samplers

SECTIONS: dict[str, tuple[str, ...]] = {
    "catalog": ("root", "file", "layout", "splits", "names", "name"),
    "attributes": ("detectors", "sets", "file", "files"),
    "features": ("encoders", "transforms", "on_error"),
    "tasks": ("split", "way", "shots", "query", "tasks", "seed", "seeds", "samplers", "placebo"),
    "evaluate": ("methods", "model", "models", "allow_seen", "seed"),
    "runtime": ("engine", "workers", "device", "batch_size", "cache"),
    "output": ("folder", "title", "intervals", "metric"),
}
# What a sampler's table may say beside the sampler's own options.
SAMPLER_KEYS = ("name", "encoder", "like", "attributes", "split", "way", "shots", "query", "tasks", "seeds")
ON_ERROR = get_args(OnError)
_MOVED = {
    ("features", "device"): "device in [runtime]",
    ("features", "batch_size"): "batch_size in [runtime]",
    ("features", "workers"): "workers in [runtime]",
    ("features", "cache"): "cache in [runtime]",
    ("tasks", "workers"): "workers in [runtime]",
    ("evaluate", "device"): "device in [runtime]",
    ("tasks", "shot"): "shots, a list of numbers",
    ("tasks", "ways"): "way, a number",
    ("tasks", "queries"): "query, a number",
    ("tasks", "sampler"): "samplers, a list",
    ("evaluate", "method"): "methods, a list",
    ("features", "encoder"): "encoders, a list",
    ("attributes", "detector"): "detectors, a list",
}


@dataclass(frozen=True)
class Draw:
    """One entry of the samplers: which tasks to draw, by what.

    encoder: whose features the sampler is given, by its spelling; None: of the first encoder
    like: the spelling of a sampler before it, whose queries are taken over
    attributes: the name of one set of attributes; None: all of them, one after the other
    """

    sampler: Sampler
    encoder: str | None
    like: str | None
    attributes: str | None
    split: str | None
    way: int
    shots: tuple[int, ...]
    query: int
    tasks: int | None
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Experiment:
    """A whole experiment, every part of it a record.

    folder: where its files go; file: the experiment's own, for messages
    root, layout, splits, catalog_file: where the data is; names, name: what pages call its classes, and itself
    detectors: by the name of the set of attributes that they make together; attribute_files: attributes made before
    models: files of models, each of which every method that adapts a network adapts
    allow_seen: whether tasks may have classes that a model was trained on
    placebo: whether task sets that attributes or contexts decide get a placebo
    intervals: as `compare` takes them; None: images where the data allows, and sampler
    metric: what statements and ranks are by
    """

    folder: Path
    file: Path | None = None
    root: Path | None = None
    catalog_file: Path | None = None
    layout: Layout | None = None
    splits: Path | None = None
    names: Path | None = None
    name: str | None = None
    detectors: Mapping[str, tuple[Detector, ...]] = field(default_factory=dict)
    attribute_files: Mapping[str, Path] = field(default_factory=dict)
    encoders: tuple[Encoder, ...] = ()
    transforms: tuple[Transform, ...] = ()
    on_error: OnError = "raise"
    draws: tuple[Draw, ...] = ()
    methods: tuple[Method, ...] = ()
    models: tuple[Path, ...] = ()
    allow_seen: bool = False
    seed: int = 0
    runtime: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    placebo: bool = True
    intervals: tuple[Covers, ...] | None = None
    metric: str = "acc"

    @classmethod
    def read(cls, path: str | Path) -> Experiment:
        """Read and check an experiment's file; nothing is run.

        Args:
            path: of the TOML file

        Returns:
            The experiment, every name looked up.

        Raises:
            InputError: the file is not there, not TOML, or has a key, name or value that cannot be; the message says
                where.
        """
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(f"experiment file {path} does not exist") from error
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"experiment file {path}: {error}") from error
        try:
            return replace(cls.of(content, path.parent, default_folder=f"{path.stem}-results"), file=path)
        except InputError as error:
            raise error.placed(str(path)) from error

    @classmethod
    def of(cls, content: Mapping[str, Any], folder: Path, default_folder: str = "results") -> Experiment:
        """From the tables of a file; paths are relative to the folder."""
        _check_keys(content)
        read = _Reader(content, folder)
        catalog = dict(content["catalog"])
        if ("root" in catalog) == ("file" in catalog):
            raise InputError(", [catalog]: expected either root (a data folder) or file (a catalog)")
        own = {key: value for key, value in catalog.items() if key not in SECTIONS["catalog"]}
        layout = None
        if "root" in catalog:
            layout = read.make("catalog", "layout", catalog.get("layout", "folder"), layouts, own)
        elif own or "layout" in catalog:
            key = next(iter(own), "layout")
            if key == "layout":
                raise InputError(", [catalog], layout: expected none beside file, which is a catalog already")
            raise InputError(f", [catalog]: unknown key '{key}'{did_you_mean(key, SECTIONS['catalog'])}")
        methods = read.methods()
        needed = any(method.needs != "items" for method in methods)
        chosen = read.components("features", "encoders", ["lite0"] if needed else [], encoders)
        sets, files = _attribute_sets(read)
        return cls(
            folder=folder / read.value("output", "folder", str, default_folder),
            root=read.path("catalog", "root"),
            catalog_file=read.path("catalog", "file"),
            layout=layout,
            splits=read.path("catalog", "splits"),
            names=read.path("catalog", "names"),
            name=read.value("catalog", "name", str, None),
            detectors=sets,
            attribute_files=files,
            encoders=chosen,
            transforms=read.components("features", "transforms", [], transforms),
            on_error=read.choice("features", "on_error", ON_ERROR),  # type: ignore[arg-type]
            draws=_draws(read, [one.spelling for one in chosen], [*sets, *files]),
            methods=methods,
            models=_models(read, methods),
            allow_seen=read.value("evaluate", "allow_seen", bool, False),
            seed=read.number("evaluate", "seed", 0, least=0),
            runtime=read.runtime(),
            title=read.value("output", "title", str, None),
            placebo=read.value("tasks", "placebo", bool, True),
            intervals=read.intervals(),
            metric=read.choice("output", "metric", METRICS),
        )


def _models(read: _Reader, methods: Sequence[Method]) -> tuple[Path, ...]:
    """The files of models, which are there if and only if a method adapts a network."""
    given = read.content.get("evaluate", {})
    if "model" in given and "models" in given:
        raise InputError(", [evaluate]: expected either model or models, not both")
    key = "model" if "model" in given else "models"
    names = [read.value("evaluate", "model", str, None)] if "model" in given else read.items("evaluate", key, str, [])
    read.refuse_repeated("evaluate", key, names)
    adapting = next((method for method in methods if isinstance(method, Adaptation)), None)
    if adapting is not None and not names:
        raise InputError(f", [evaluate], methods: '{adapting}' adapts a network: name a model, model = \"FILE.model\"")
    if adapting is None and names:
        raise InputError(
            f", [evaluate], {key}: no method adapts a network: take the model as an encoder, model:{names[0]}, or name "
            "a method such as finetune"
        )
    return tuple(read.folder / name for name in names)


def _attribute_sets(read: _Reader) -> tuple[dict[str, tuple[Detector, ...]], dict[str, Path]]:
    """Sets of attributes by name: made by detectors, or files that are there."""
    given = read.content.get("attributes", {})
    if len([key for key in given if key in ("detectors", "sets", "file", "files")]) > 1:
        raise InputError(", [attributes]: expected one of detectors, sets, file and files, not several")
    if "file" in given:
        return {}, {"": read.folder / read.value("attributes", "file", str, None)}
    if "files" in given:
        named = read.value("attributes", "files", dict, {})
        return {}, {name: read.folder / str(file) for name, file in named.items()}
    if "sets" in given:
        named = read.value("attributes", "sets", dict, {})
        return {name: read.component_list("attributes", name, listed, detectors) for name, listed in named.items()}, {}
    together = read.components("attributes", "detectors", [], detectors)
    return ({"": together} if together else {}), {}


def _draws(read: _Reader, encoder_names: Sequence[str], sets: Sequence[str]) -> tuple[Draw, ...]:
    draws: list[Draw] = []
    for entry in read.items("tasks", "samplers", (str, dict), ["random", "fewstab"]):
        table = dict(entry) if isinstance(entry, dict) else {"name": entry}
        own = {key: value for key, value in table.items() if key not in SAMPLER_KEYS}
        hint = {"shot": "shots", "seed": "seeds", "queries": "query", "ways": "way"}
        for key in own:
            if key in hint:
                raise InputError(f", [tasks], samplers: did you mean '{hint[key]}' instead of '{key}'?")
        if not isinstance(table.get("name"), str):
            raise InputError(f', [tasks], samplers: {entry!r}, expected "NAME(option=value)" or {{ name = "NAME" }}')
        sampler = read.make("tasks", "samplers", table["name"], samplers, own)
        shared = dict(read.content.get("tasks", {}))
        if "seeds" in table:
            shared.pop("seed", None)
        own_shape = _Reader({"tasks": {**shared, **table}}, read.folder, (str(sampler), tuple(table)))
        draw = Draw(
            sampler=sampler,
            encoder=_known("encoder", table.get("encoder"), encoder_names, sampler),
            like=_known("like", table.get("like"), [str(one.sampler) for one in draws], sampler),
            attributes=_known("attributes", table.get("attributes"), sets, sampler),
            split=own_shape.value("tasks", "split", str, None),
            way=own_shape.number("tasks", "way", 5, least=2),
            shots=own_shape.numbers("tasks", "shots", [1, 5], least=1),
            query=own_shape.number("tasks", "query", 15, least=1),
            tasks=own_shape.number("tasks", "tasks", None, least=1),
            seeds=own_shape.seeds(),
        )
        if draw in draws:
            raise InputError(f", [tasks], samplers: '{sampler}' is there twice")
        _check_data(draw, sets)
        _check_like(draw, draws)
        draws.append(draw)
    return tuple(draws)


def _check_data(draw: Draw, sets: Sequence[str]) -> None:
    """Refuse a sampler that needs attributes where there are none, or that is given what it has no use for."""
    sampler = draw.sampler
    if "attributes" in sampler.needs and not sets:
        raise InputError(
            f", [tasks], samplers: '{sampler}' needs attributes: add a section [attributes] with detectors, sets or a "
            "file"
        )
    for role, key in (("attributes", "attributes"), ("features", "encoder"), ("like", "like")):
        if getattr(draw, key) is not None and role not in sampler.takes:
            raise InputError(f", [tasks], sampler '{sampler}', {key}: this sampler takes no {role}: leave it out")


def _check_like(draw: Draw, before: Sequence[Draw]) -> None:
    """Refuse a set that is to be like another one which has no tasks of its shots and seeds."""
    if draw.like is None:
        return
    liked = [one for one in before if str(one.sampler) == draw.like]
    there = {place for one in liked for place in product(one.shots, one.seeds)}
    for shot, seed in product(draw.shots, draw.seeds):
        if (shot, seed) not in there:
            raise InputError(
                f", [tasks], sampler '{draw.sampler}', like: '{draw.like}' has no tasks of {shot} shots and seed "
                f"{seed}: give both the same shots and seeds"
            )


def _known(key: str, given: Any, known: Sequence[str], sampler: Sampler) -> str | None:
    """One of the known spellings, or of their bare names; None where nothing is given."""
    if given is None:
        return None
    for one in known:
        if given == one or (one and given == parse_spelling(one)[0]):
            return one
    before = " before it" if key == "like" else ""
    raise InputError(
        f", [tasks], sampler '{sampler}': there is no {key} '{given}'{before}{did_you_mean(str(given), known)}"
    )


@dataclass(frozen=True)
class _Reader:
    """Values of the tables, of the right type; messages begin with the place, for the file's name to be put before."""

    content: Mapping[str, Any]
    folder: Path
    own: tuple[str, tuple[str, ...]] = ("", ())  # a sampler, and the keys that its own table has

    def place(self, section: str, key: str) -> str:
        """Where a value is, for the beginning of a message."""
        sampler, keys = self.own
        return f", [{section}], sampler '{sampler}', {key}: " if key in keys else f", [{section}], {key}: "

    def number(self, section: str, key: str, default: Any, least: int) -> Any:
        value = self.value(section, key, int, default)
        if value is not None and value < least:
            raise InputError(f"{self.place(section, key)}expected a whole number of at least {least}, found {value}")
        return value

    def numbers(self, section: str, key: str, default: list[int], least: int) -> tuple[int, ...]:
        values = self.items(section, key, int, default)
        wrong = next((value for value in values if value < least), None)
        if wrong is not None:
            raise InputError(f"{self.place(section, key)}expected whole numbers of at least {least}, found {wrong}")
        self.refuse_repeated(section, key, values)
        return tuple(values)

    def intervals(self) -> tuple[Covers, ...] | None:
        names = self.items("output", "intervals", str, [])
        if not names:
            return None
        try:
            chosen = check_intervals(names)
        except InputError as error:
            raise error.placed(self.place("output", "intervals")) from error
        self.refuse_repeated("output", "intervals", names)
        return chosen

    def refuse_repeated(self, section: str, key: str, values: Sequence[Any]) -> None:
        for index, value in enumerate(values):
            if value in values[:index]:
                raise InputError(f"{self.place(section, key)}expected each once, found {value!r} twice")

    def value(self, section: str, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self.content.get(section, {}).get(key, default)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if value is not default and type(value) not in kinds:
            raise InputError(f", [{section}]: {key} must be {_in_words(kinds)}, not {value!r}")
        return value

    def path(self, section: str, key: str) -> Path | None:
        value = self.value(section, key, str, None)
        return None if value is None else self.folder / value

    def choice(self, section: str, key: str, choices: Sequence[str]) -> str:
        value: str = self.value(section, key, str, choices[0])
        if value not in choices:
            near = did_you_mean(value, choices)
            raise InputError(f", [{section}]: {key} must be {' or '.join(choices)}, not '{value}'{near}")
        return value

    def items(self, section: str, key: str, kind: type | tuple[type, ...], default: list[Any]) -> list[Any]:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        values: list[Any] = self.value(section, key, list, default)
        if values is not default and (not values or any(type(value) not in kinds for value in values)):
            raise InputError(f", [{section}]: {key} must be a list of {_in_words(kinds)}, at least one, not {values}")
        return values

    def seeds(self) -> tuple[int, ...]:
        tasks = self.content.get("tasks", {})
        if "seed" in tasks and "seeds" in tasks:
            raise InputError(", [tasks]: expected either seed or seeds, not both")
        if "seed" in tasks:
            return (self.number("tasks", "seed", 0, least=0),)
        return self.numbers("tasks", "seeds", [0], least=0)

    def make(self, section: str, key: str, given: Any, registry: Registry[Any], own: Mapping[str, Any]) -> Any:
        """A component; what is wrong with it is told with the place."""
        try:
            if isinstance(given, Mapping):
                given = {**given, **own}
                own = {}
            return self._with_file_paths(registry.make(given, **own))
        except InputError as error:
            raise error.placed(f", [{section}], {key}: ") from error

    def components(self, section: str, key: str, default: list[Any], registry: Registry[Any]) -> tuple[Any, ...]:
        given = self.items(section, key, (str, dict), default)
        made = self.component_list(section, key, given, registry)
        for place, one in enumerate(made):
            if one in made[:place] and registry.kind != "transform":
                raise InputError(f", [{section}]: {key} has '{one}' twice")
        return made

    def component_list(self, section: str, key: str, given: Any, registry: Registry[Any]) -> tuple[Any, ...]:
        listed = given if isinstance(given, list) else [given]
        return tuple(self.make(section, key, one, registry, {}) for one in listed)

    def methods(self) -> tuple[Method, ...]:
        made: list[Method] = []
        for given in self.items("evaluate", "methods", (str, dict), list(DEFAULT_METHODS)):
            try:
                method = make_method(given, folder=self.folder)
            except InputError as error:
                raise error.placed(", [evaluate], methods: ") from error
            if any(method.spelling == one.spelling for one in made):
                raise InputError(f", [evaluate]: methods has '{method}' twice")
            made.append(method)
        return tuple(made)

    def runtime(self) -> dict[str, Any]:
        given = dict(self.content.get("runtime", {}))
        if isinstance(given.get("cache"), str):
            given["cache"] = self.folder / given["cache"]
        return given

    def _with_file_paths(self, component: Component) -> Component:
        """The component, with options that name files beside the experiment's file made paths from it."""
        moved = {}
        for option in component.options():
            value = getattr(component, option.name)
            if option.path and value is not None and isinstance(value, str | Path):
                beside = self.folder / value
                if beside.exists():
                    moved[option.name] = str(beside) if isinstance(value, str) else beside
        return replace(component, **moved) if moved else component  # type: ignore[type-var]


def _in_words(kinds: Sequence[type]) -> str:
    return " or ".join({str: "text", int: "a whole number", dict: "a table"}.get(one, one.__name__) for one in kinds)


def _check_keys(content: Mapping[str, Any]) -> None:
    for section, values in content.items():
        if section not in SECTIONS:
            raise InputError(f": unknown section [{section}]{did_you_mean(section, SECTIONS)}")
        if not isinstance(values, dict):
            raise InputError(f": {section} must be a section, [{section}]")
        # A catalog's further keys are the layout's own options; the layout refuses what it does not know.
        for key in values if section != "catalog" else ():
            if (section, key) in _MOVED:
                raise InputError(f", [{section}]: unknown key '{key}': it is {_MOVED[section, key]}")
            if key not in SECTIONS[section]:
                raise InputError(f", [{section}]: unknown key '{key}'{did_you_mean(key, SECTIONS[section])}")
    if "catalog" not in content:
        raise InputError(": expected a section [catalog] with root or file")
