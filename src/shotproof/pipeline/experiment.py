"""The file that describes a whole experiment: TOML, every key checked, every path relative to the file.

[catalog]
root = "birds/"                # or: file = "catalog.parquet", with root where its paths start elsewhere
layout = "folder"
splits = "splits.csv"
names = "names.csv"            # what pages call the classes: label,name

# [mix]                        # sounds: mixed with backgrounds first, and the mixtures are the data
# mapping = "esc50"
# clean = true

[attributes]
detectors = ["photometric"]    # together; or apart, each with its own tasks:
# [attributes.sets]
# photometric = ["photometric"]
# captions = ["captions(file='captions.csv')"]

[features]
encoders = ["lite0", "pixels(size=8)"]
# stages = "all"                # also every block of those that have them; or: stages = [1, 9, 17]

[tasks]
split = "test"
way = 5
shots = [1, 5]
query = 15
tasks = 600
seeds = [0]
samplers = ["random", "fewstab", { name = "hardest(effort='high')", like = "random", shots = [5] }]
# files = ["tasks.parquet"]     # task sets drawn before, beside those of samplers or in their place

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]
# methods = ["ncc", "finetune"]  # finetune adapts a network, of which there are one or more:
# model = "rfs.model"            # or: models = ["rfs.model", "protonet.model"]
# methods = [{ name = "anil", on = "anil-5.model", shots = [5] }]  # some on some models, encoders or tasks only
# tune_on = { split = "val", tasks = 20 }  # its learning rate is chosen on validation tasks

[runtime]
workers = 2

[output]
folder = "birds-results"
intervals = ["images", "sampler"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from shotproof.analysis.explanation.mismatch import MISMATCHES, Pooling
from shotproof.analysis.projection import PAGE_PROJECTIONS
from shotproof.attributes.detector import Detector, detectors
from shotproof.catalog.layout import Layout, layouts
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import COUNT, SEED
from shotproof.core.storage.files import read_toml
from shotproof.core.storage.store import OnError
from shotproof.core.trust import Trust, named_by_experiment, trusting
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.transforms import Transform, transforms
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.learners.model_head import ModelHead
from shotproof.pipeline.draw_entries import Draw, read_draws
from shotproof.pipeline.method_uses import MethodUse, encoders_of_models, read_methods, read_uses
from shotproof.pipeline.mix_section import MIX_KEYS, Mixing, read_mixing
from shotproof.pipeline.table_reader import TableReader
from shotproof.pipeline.tune_on import TuneOn, read_tune_on
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import Covers

SECTIONS: dict[str, tuple[str, ...]] = {
    "catalog": ("root", "file", "layout", "splits", "split", "names", "name"),
    "mix": MIX_KEYS,
    "attributes": ("detectors", "sets", "file", "files"),
    "features": ("encoders", "stages", "transforms", "on_error"),
    "tasks": ("split", "way", "shots", "query", "tasks", "seed", "seeds", "samplers", "files", "placebo"),
    "evaluate": ("methods", "model", "models", "tune_on", "allow_seen", "seed"),
    "runtime": ("engine", "workers", "device", "batch_size", "cache"),
    "output": ("folder", "title", "intervals", "metric", "projection", "mismatch"),
}
ON_ERROR = get_args(OnError)
ALL_STAGES = "all"
_MOVED = {
    ("mix", "margin_db"): "gain",
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
class Experiment:
    """A whole experiment, every part of it a record.

    folder: where its files go; file: the experiment's own, for messages
    root, layout, splits, catalog_file: where the data is; of a catalog's file, root is where its paths start
    names, name: what pages call its classes, and itself
    only_split: the one split that anything is made of; None: all
    mix: how recordings are mixed with backgrounds first; None: the data is as it is
    detectors: by the name of the set of attributes that they make together; attribute_files: attributes made before
    draws: the task sets that are drawn; task_files: task sets drawn before
    uses: the methods, each with the encoders or models and the shots that it is evaluated on
    models: files of models, or names of pretrained backbones, each of which methods that adapt a network adapt
    tune_on: on which validation tasks their learning rates are chosen; None: they are as given
    allow_seen: whether tasks may have classes that a model was trained on
    placebo: whether task sets that attributes or contexts decide get a placebo
    intervals: as `compare` takes them; None: images where the data allows, and sampler
    metric: what statements and ranks are by
    stages: blocks of networks whose pooled output is encoded too: `all`, or their numbers
    projection: how an iid task and its ood one are laid out on the page: `pca`, `tsne` or `none`
    mismatch: as `explain` takes it
    """

    folder: Path
    file: Path | None = None
    root: Path | None = None
    catalog_file: Path | None = None
    layout: Layout | None = None
    splits: Path | None = None
    only_split: str | None = None
    names: Path | None = None
    name: str | None = None
    mix: Mixing | None = None
    detectors: Mapping[str, tuple[Detector, ...]] = field(default_factory=dict)
    attribute_files: Mapping[str, Path] = field(default_factory=dict)
    encoders: tuple[Encoder, ...] = ()
    transforms: tuple[Transform, ...] = ()
    on_error: OnError = "raise"
    draws: tuple[Draw, ...] = ()
    task_files: tuple[Path, ...] = ()
    uses: tuple[MethodUse, ...] = ()
    models: tuple[str | Path, ...] = ()
    tune_on: TuneOn | None = None
    allow_seen: bool = False
    seed: int = 0
    runtime: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    placebo: bool = True
    intervals: tuple[Covers, ...] | None = None
    metric: str = "acc"
    stages: Literal["all"] | tuple[int, ...] = ()
    projection: str = "pca"
    mismatch: Pooling = "class"

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods, each once."""
        return tuple({use.method.spelling: use.method for use in self.uses}.values())

    @classmethod
    def read(cls, path: str | Path, trust: Trust = False) -> Experiment:
        """Read and check an experiment's file; nothing is run.

        Args:
            path: of the TOML file
            trust: whether code that it names may be imported, and servers be asked; or which, as `NotTrusted` tells it

        Returns:
            The experiment, every name looked up.

        Raises:
            NotTrusted: it names code, or a server, that is not trusted; nothing was imported.
            InputError: the file is not there, not TOML, or has a key, name or value that cannot be; the message says
                where.
        """
        path = Path(path)
        content = read_toml(path, f"experiment file {path}")
        with trusting(trust):
            return replace(cls.of(content, path.parent, f"{path.stem}-results", str(path)), file=path)

    @classmethod
    def of(
        cls, content: Mapping[str, Any], folder: Path, default_folder: str = "results", called: str = "the experiment"
    ) -> Experiment:
        """Read and check the tables of a file.

        Args:
            content: the tables
            folder: what their paths start from
            default_folder: the output folder, if they name none
            called: what errors call the experiment
        """
        try:
            return cls._of(content, folder, default_folder)
        except InputError as error:
            raise error.placed(called) from error

    @classmethod
    @named_by_experiment()
    def _of(cls, content: Mapping[str, Any], folder: Path, default_folder: str) -> Experiment:
        _check_keys(content)
        read = TableReader(content, folder)
        catalog = dict(content["catalog"])
        if not {"root", "file"} & set(catalog):
            raise InputError(", [catalog]: expected root (a data folder) or file (a catalog)")
        own = {key: value for key, value in catalog.items() if key not in SECTIONS["catalog"]}
        layout = None
        if "file" not in catalog:
            layout = read.make("catalog", "layout", catalog.get("layout", "folder"), layouts, own)
        elif own or "layout" in catalog:
            key = next(iter(own), "layout")
            if key == "layout":
                raise InputError(", [catalog], layout: expected none beside file, which is a catalog already")
            raise InputError(f", [catalog]: unknown key '{key}'{did_you_mean(key, SECTIONS['catalog'])}")
        entries = read_methods(read)
        methods = list({method.spelling: method for method, _ in entries}.values())
        needed = any(not isinstance(method, ModelHead) and method.needs != "items" for method in methods)
        named = read.components("features", "encoders", ["lite0"] if needed else [], encoders)
        chosen = tuple(dict.fromkeys([*named, *encoders_of_models(read, methods)]))
        models = _models(read, methods)
        sets, files = _attribute_sets(read)
        on_error = read.choice("features", "on_error", ON_ERROR)
        task_files = tuple(read.joined("tasks", "files", one) for one in read.items("tasks", "files", str, []))
        read.refuse_repeated("tasks", "files", [one.name for one in task_files])
        draws = read_draws(read, chosen, [*sets, *files])
        return cls(
            folder=read.path("output", "folder") or folder / default_folder,
            root=read.path("catalog", "root"),
            catalog_file=read.path("catalog", "file"),
            layout=layout,
            splits=read.path("catalog", "splits"),
            only_split=read.value("catalog", "split", str, None),
            names=read.path("catalog", "names"),
            name=read.value("catalog", "name", str, None),
            mix=read_mixing(content["mix"], folder) if "mix" in content else None,
            detectors=sets,
            attribute_files=files,
            encoders=chosen,
            transforms=read.components("features", "transforms", [], transforms),
            on_error=on_error,  # type: ignore[arg-type]
            draws=draws,
            task_files=task_files,
            uses=read_uses(read, entries, chosen, models, [shot for draw in draws for shot in draw.shots]),
            models=models,
            tune_on=read_tune_on(read, methods),
            allow_seen=read.value("evaluate", "allow_seen", bool, False),
            seed=read.number("evaluate", "seed", 0, SEED),
            runtime=read.runtime(),
            title=read.value("output", "title", str, None),
            placebo=read.value("tasks", "placebo", bool, True),
            intervals=read.intervals(),
            metric=read.choice("output", "metric", METRICS),
            stages=_stages(read, chosen),
            projection=read.choice("output", "projection", PAGE_PROJECTIONS),
            mismatch=read.choice("output", "mismatch", MISMATCHES),  # type: ignore[arg-type]
        )


def _stages(read: TableReader, chosen: Sequence[Encoder]) -> Literal["all"] | tuple[int, ...]:
    """Which stages of the encoders' networks are wanted beside their own output."""
    given = read.value("features", "stages", (str, list), [])
    if given == []:
        return ()
    if not any(hasattr(one, "stage") and one.stage is None and not getattr(one, "maps", False) for one in chosen):
        raise InputError(
            f", [features], stages: none of the encoders ({', '.join(map(str, chosen))}) has stages: expected lite0, "
            "hf:NAME, hf-audio:NAME or model:FILE, without stage and maps"
        )
    if isinstance(given, str):
        if given != ALL_STAGES:
            raise InputError(f', [features], stages: expected "all" or a list of numbers, found "{given}"')
        return "all"
    return read.numbers("features", "stages", [], COUNT)


def _models(read: TableReader, methods: Sequence[Method]) -> tuple[str | Path, ...]:
    """Files of models, or names of pretrained backbones, which are there if and only if a method adapts a network."""
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
    files = [read.joined("evaluate", key, name) for name in names]
    is_file = [
        file.exists() or (bool(file.suffix) and ":" not in name) for name, file in zip(names, files, strict=True)
    ]
    return tuple(file if known else name for name, file, known in zip(names, files, is_file, strict=True))


def _attribute_sets(read: TableReader) -> tuple[dict[str, tuple[Detector, ...]], dict[str, Path]]:
    """Sets of attributes by name: made by detectors, or files that are there."""
    given = read.content.get("attributes", {})
    if len([key for key in given if key in ("detectors", "sets", "file", "files")]) > 1:
        raise InputError(", [attributes]: expected one of detectors, sets, file and files, not several")
    if "file" in given:
        return {}, {"": read.joined("attributes", "file", given["file"])}
    if "files" in given:
        named = read.value("attributes", "files", dict, {})
        return {}, {name: read.joined("attributes.files", name, file) for name, file in named.items()}
    if "sets" in given:
        named = read.value("attributes", "sets", dict, {})
        return {name: read.component_list("attributes", name, listed, detectors) for name, listed in named.items()}, {}
    together = read.components("attributes", "detectors", [], detectors)
    return ({"": together} if together else {}), {}


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
