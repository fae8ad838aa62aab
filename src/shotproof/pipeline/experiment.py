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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shotproof.analysis.explanation.mismatch import Pooling
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.detector import Detector
from shotproof.catalog.layout import Layout, layouts
from shotproof.core.errors import InputError, placed
from shotproof.core.sections import Place
from shotproof.core.storage.files import read_toml
from shotproof.core.storage.places import joined
from shotproof.core.storage.store import OnError
from shotproof.core.trust import Trust, named_by_experiment, trusting
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.transforms import Transform
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import DEFAULT_METHODS, Method, make_method
from shotproof.learners.model_head import ModelHead
from shotproof.pipeline.draw_entries import Draw, resolve_draws
from shotproof.pipeline.experiment_file import AttributesSection, EvaluateSection, ExperimentFile, TuneOn
from shotproof.pipeline.method_uses import MethodUse, encoders_of_models, resolve_uses
from shotproof.pipeline.mix_section import Mixing
from shotproof.stats.intervals import Covers

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where one is read: it needs PyTorch


@dataclass(frozen=True)
class Experiment:
    """A whole experiment, every part of it a record.

    folder: where its files go; file: the experiment's own, for messages
    root, layout, splits, catalog_file: where the data is; of a catalog's file, root is where its paths start
    at_hand: a catalog, features and attributes that a user has already, in place of what the file names
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
    at_hand: Inputs = field(default_factory=Inputs, compare=False, repr=False)
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

    @named_by_experiment()
    def read_models(self) -> dict[str, Model]:
        """Read the models by name; those of one name are told apart by the names of their files.

        Raises:
            InputError: one is no file of a model and no pretrained backbone, or two are called the same.
        """
        if not self.models:
            return {}
        from shotproof.models.model import Model

        read = {given: Model.given(given) for given in self.models}
        shared = Counter(model.name for model in read.values())
        models: dict[str, Model] = {}
        for given, model in read.items():
            name = model.name if shared[model.name] == 1 else f"{model.name} [{Path(given).stem}]"
            if name in models:
                raise InputError(
                    f"two models are called '{name}': rename one of the files, results are told apart by it"
                )
            models[name] = replace(model, record=replace(model.record, name=name))
        return models

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
        with placed(called), named_by_experiment():
            return cls.described_by(ExperimentFile.read(content, Place(folder)), folder, default_folder)

    @classmethod
    def described_by(cls, file: ExperimentFile, folder: Path, default_folder: str = "results") -> Experiment:
        """Look up what the sections of a file name, and check them together.

        Args:
            file: the sections, as they were read or put together
            folder: what their paths start from
            default_folder: the output folder, if they name none

        Raises:
            InputError: they do not fit together; the message begins with the place.
        """
        catalog, tasks, evaluate, output = file.catalog, file.tasks, file.evaluate, file.output
        uses = evaluate.methods or tuple(MethodUse(make_method(name)) for name in DEFAULT_METHODS)
        methods = list({use.method.spelling: use.method for use in uses}.values())
        encoded = any(not isinstance(method, ModelHead) and method.needs != "items" for method in methods)
        named = file.features.encoders or ((encoders.make("lite0"),) if encoded else ())
        chosen = tuple(dict.fromkeys([*named, *encoders_of_models(methods)]))
        models = _models(evaluate, methods, folder)
        sets, files = _attribute_sets(file.attributes)
        draws = resolve_draws(tasks.draws, chosen, [*sets, *files], folder)
        _check_stages(file.features.stages, chosen)
        _check_rates(evaluate.tune_on, methods)
        return cls(
            folder=output.folder or folder / default_folder,
            root=catalog.root,
            catalog_file=catalog.file,
            layout=layouts.make("folder") if catalog.file is None and catalog.layout is None else catalog.layout,
            splits=catalog.splits,
            only_split=catalog.split,
            names=catalog.names,
            name=catalog.name,
            mix=file.mix,
            detectors=sets,
            attribute_files=files,
            encoders=chosen,
            transforms=file.features.transforms,
            on_error=file.features.on_error,
            draws=draws,
            task_files=tasks.files or (),
            uses=resolve_uses(uses, chosen, models, [shot for draw in draws for shot in draw.shots], folder),
            models=models,
            tune_on=evaluate.tune_on,
            allow_seen=evaluate.allow_seen,
            seed=evaluate.seed,
            runtime=file.runtime.values,
            title=output.title,
            placebo=tasks.placebo,
            intervals=output.intervals,
            metric=output.metric,
            stages=file.features.stages,
            projection=output.projection,
            mismatch=output.mismatch,
        )


def _check_stages(stages: Literal["all"] | tuple[int, ...], chosen: Sequence[Encoder]) -> None:
    """Refuse stages if no encoder's network has any."""
    staged = [one for one in chosen if hasattr(one, "stage") and one.stage is None and not getattr(one, "maps", False)]
    if stages and not staged:
        raise InputError(
            f", [features], stages: none of the encoders ({', '.join(map(str, chosen))}) has stages: expected lite0, "
            "hf:NAME, hf-audio:NAME or model:FILE, without stage and maps"
        )


def _models(evaluate: EvaluateSection, methods: Sequence[Method], folder: Path) -> tuple[str | Path, ...]:
    """Files of models, or names of pretrained backbones, which are there if and only if a method adapts a network."""
    key = "models" if evaluate.model is None else "model"
    names = evaluate.models or () if evaluate.model is None else (evaluate.model,)
    adapting = next((method for method in methods if isinstance(method, Adaptation)), None)
    if adapting is not None and not names:
        raise InputError(f", [evaluate], methods: '{adapting}' adapts a network: name a model, model = \"FILE.model\"")
    if adapting is None and names:
        raise InputError(
            f", [evaluate], {key}: no method adapts a network: take the model as an encoder, model:{names[0]}, or name "
            "a method such as finetune"
        )
    files = {name: joined(folder, name) for name in names}
    return tuple(file if file.exists() or (file.suffix and ":" not in name) else name for name, file in files.items())


def _attribute_sets(section: AttributesSection) -> tuple[dict[str, tuple[Detector, ...]], dict[str, Path]]:
    """Sets of attributes by name: made by detectors, or files that are there."""
    sets = {"": section.detectors} if section.detectors else dict(section.sets or {})
    return sets, {"": section.file} if section.file else dict(section.files or {})


def _check_rates(tune_on: TuneOn | None, methods: Sequence[Method]) -> None:
    """Refuse rates that a method cannot have, and methods that would be the same with the rate that is chosen."""
    adaptations = [method for method in methods if isinstance(method, Adaptation)]
    if tune_on is None:
        return
    if not adaptations:
        raise InputError(", [evaluate], tune_on: no method adapts a network: there is no learning rate to choose")
    first_of: dict[str, Adaptation] = {}
    for method in adaptations:
        with placed(", [evaluate.tune_on], rates: "):
            tried = [method.with_rate(rate) for rate in tune_on.rates or method.rates]
        first = first_of.setdefault(tried[0].with_rate(1.0).spelling, method)
        if first is not method:
            raise InputError(
                f", [evaluate], methods: '{first}' and '{method}' differ in the learning rate alone, which tune_on "
                "chooses: name one of them"
            )
