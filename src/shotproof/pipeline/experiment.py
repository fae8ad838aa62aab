"""Experiment, described in a TOML file; every key is checked, and paths are relative to the file.

[catalog]
root = "birds/"                # or: file = "catalog.parquet"; set root if its paths start elsewhere
layout = "folder"
splits = "splits.csv"
names = "names.csv"            # display names of the classes: label,name

# [masks]                      # images: cut the foregrounds out first, and leave out images without a good mask
# cutter = "grabcut"           # or: masks = "folder of masks"
# keep_all = true              # keep those without a good mask, for tasks that need none

# [mix]                        # sounds, and images with masks: mix with backgrounds first, and use the mixtures as data
# mapping = "esc50"
# clean = true

[attributes]
detectors = ["photometric"]    # combined; or separate sets, each with its own tasks:
# [attributes.sets]
# photometric = ["photometric"]
# captions = ["captions(file='captions.csv')"]

[features]
encoders = ["lite0", "pixels(size=8)"]
# stages = "all"                # also encode the blocks of networks; or: stages = [1, 9, 17]

[tasks]
split = "test"
way = 5
shots = [1, 5]
query = 15
tasks = 600
seeds = [0]
samplers = ["random", "fewstab", { name = "hardest(effort='high')", like = "random", shots = [5] }]
# files = ["tasks.parquet"]     # existing task sets, in addition to samplers or instead

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]
# methods = ["ncc", "finetune"]  # finetune adapts one or more networks:
# model = "rfs.model"            # or: models = ["rfs.model", "protonet.model"]
# methods = [{ name = "anil", on = "anil-5.model", shots = [5] }]  # restrict methods to models, encoders or shots
# tune_on = { split = "val", tasks = 20 }  # its learning rate is chosen on validation tasks

# [cure]                       # try remedies on a classifier after the evaluation
# remedies = ["features", "supports"]

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
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.sections import Place
from shotproof.core.storage.files import read_toml
from shotproof.core.storage.places import resolve_path
from shotproof.core.storage.store import OnError
from shotproof.core.trust import Trust, named_by_experiment, trusting
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.transforms import Transform
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import DEFAULT_METHODS, Method, make_method
from shotproof.learners.model_head import ModelHead
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.draw_entries import Draw, resolve_draws
from shotproof.pipeline.experiment_file import AttributesSection, EvaluateSection, ExperimentFile, TuneOn
from shotproof.pipeline.masks_section import Masking
from shotproof.pipeline.method_uses import MethodUse, encoders_of_models, resolve_uses
from shotproof.pipeline.mix_section import Mixing
from shotproof.stats.intervals import IntervalName

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where it is needed: requires PyTorch


@dataclass(frozen=True)
class Experiment:
    """Experiment to run, with every name in its file resolved.

    folder: output folder; file: experiment file, for messages
    root, layout, splits, catalog_file: location of the data; with a catalog file, root is where its paths start
    at_hand: catalog, features and attributes in memory, which replace those named in the file
    names, name: CSV file with display names of the classes, and display name of the data
    only_split: split to use; None means all
    masks: how the foregrounds of images are cut out first; None means not at all
    mix: how recordings or images are mixed with backgrounds first; None means the data is used unchanged
    detectors: detectors by the name of the set of attributes that they produce together
    attribute_files: existing attribute files, by name
    draws: task sets to draw; task_files: existing task sets
    uses: methods, each with the encoders or models and the shots that it is evaluated on
    models: model files, or names of pretrained backbones, to adapt
    tune_on: validation tasks for choosing learning rates; None means the rates are used as given
    allow_seen: whether tasks may contain classes that a model was trained on
    cure: classifier and remedies of a search for a cure; None means there is none
    placebo: whether to draw placebos of task sets that are based on attributes or contexts
    intervals: as in `compare`; None means images if the data allows, and sampler
    metric: metric of statements and ranks
    stages: blocks of networks whose pooled output is also encoded: `all`, or their numbers
    projection: projection that places an iid task and its ood counterpart on the page: `pca`, `tsne` or `none`
    mismatch: as in `explain`
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
    masks: Masking | None = None
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
    cure: CureSection | None = None
    runtime: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    placebo: bool = True
    intervals: tuple[IntervalName, ...] | None = None
    metric: str = "acc"
    stages: Literal["all"] | tuple[int, ...] = ()
    projection: str = "pca"
    mismatch: Pooling = "class"

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return the distinct methods."""
        return tuple({use.method.spelling: use.method for use in self.uses}.values())

    @named_by_experiment()
    def read_models(self) -> dict[str, Model]:
        """Read the models, by name; models that share a name are distinguished by their file names.

        Raises:
            InputError: an entry is neither a model file nor a pretrained backbone, or two models have the same name.
        """
        if not self.models:
            return {}
        from shotproof.models.model import Model

        models_by_source = {source: Model.load(source) for source in self.models}
        name_counts = Counter(model.name for model in models_by_source.values())
        models: dict[str, Model] = {}
        for source, model in models_by_source.items():
            name = model.name if name_counts[model.name] == 1 else f"{model.name} [{Path(source).stem}]"
            if name in models:
                raise InputError(
                    f"two models are named '{name}': rename one of the files, because results are identified by it"
                )
            models[name] = replace(model, record=replace(model.record, name=name))
        return models

    @classmethod
    def read(cls, path: str | Path, trust: Trust = False) -> Experiment:
        """Read and check an experiment file; nothing is run.

        Args:
            path: TOML file
            trust: whether code named in the file may be imported and servers contacted, or which ones, as listed by
                `NotTrusted`

        Returns:
            The experiment, with every name resolved.

        Raises:
            NotTrusted: the file names code or a server that is not trusted; nothing was imported.
            InputError: the file does not exist, is not TOML, or has an invalid key, name or value; the message names
                the location.
        """
        path = Path(path)
        content = read_toml(path, f"experiment file {path}")
        with trusting(trust):
            return replace(cls.of(content, path.parent, f"{path.stem}-results", str(path)), file=path)

    @classmethod
    def of(
        cls, content: Mapping[str, Any], folder: Path, default_folder: str = "results", label: str = "the experiment"
    ) -> Experiment:
        """Read and check the tables of an experiment file.

        Args:
            content: tables
            folder: folder that relative paths start from
            default_folder: output folder if the tables name none
            label: name of the experiment in error messages
        """
        with error_prefix(label), named_by_experiment():
            return cls.described_by(ExperimentFile.read(content, Place(folder)), folder, default_folder)

    @classmethod
    def described_by(cls, file: ExperimentFile, folder: Path, default_folder: str = "results") -> Experiment:
        """Resolve the names in the sections of a file, and check the sections together.

        Args:
            file: sections, read from a file or built in memory
            folder: folder that relative paths start from
            default_folder: output folder if the sections name none

        Raises:
            InputError: the sections contradict each other; the message begins with the location.
        """
        catalog, tasks, evaluate, output = file.catalog, file.tasks, file.evaluate, file.output
        uses = evaluate.methods or tuple(MethodUse(make_method(name)) for name in DEFAULT_METHODS)
        methods = list({use.method.spelling: use.method for use in uses}.values())
        needs_features = any(not isinstance(method, ModelHead) and method.needs != "items" for method in methods)
        listed_encoders = file.features.encoders or ((encoders.make("lite0"),) if needs_features else ())
        used_encoders = tuple(dict.fromkeys([*listed_encoders, *encoders_of_models(methods)]))
        models = _resolve_models(evaluate, methods, folder)
        sets, files = _split_attribute_sets(file.attributes)
        draws = resolve_draws(tasks.draws, used_encoders, [*sets, *files], folder)
        _check_stages(file.features.stages, used_encoders)
        if file.masks is not None and file.masks.keep_all and file.mix is not None:
            raise InputError(", [masks], keep_all: images are mixed by their masks, see [mix]: remove the key")
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
            masks=file.masks,
            mix=file.mix,
            detectors=sets,
            attribute_files=files,
            encoders=used_encoders,
            transforms=file.features.transforms,
            on_error=file.features.on_error,
            draws=draws,
            task_files=tasks.files or (),
            uses=resolve_uses(uses, used_encoders, models, [shot for draw in draws for shot in draw.shots], folder),
            models=models,
            tune_on=evaluate.tune_on,
            allow_seen=evaluate.allow_seen,
            seed=evaluate.seed,
            cure=file.cure,
            runtime=file.runtime.values,
            title=output.title,
            placebo=tasks.placebo,
            intervals=output.intervals,
            metric=output.metric,
            stages=file.features.stages,
            projection=output.projection,
            mismatch=output.mismatch,
        )


def _check_stages(stages: Literal["all"] | tuple[int, ...], used_encoders: Sequence[Encoder]) -> None:
    """Reject stages if no encoder has any."""
    staged = [
        encoder
        for encoder in used_encoders
        if hasattr(encoder, "stage") and encoder.stage is None and not getattr(encoder, "maps", False)
    ]
    if stages and not staged:
        raise InputError(
            f", [features], stages: none of the encoders ({', '.join(map(str, used_encoders))}) has stages: expected "
            "lite0, hf:NAME, hf-audio:NAME or model:FILE, without the options stage and maps"
        )


def _resolve_models(evaluate: EvaluateSection, methods: Sequence[Method], folder: Path) -> tuple[str | Path, ...]:
    """Return model files or names of pretrained backbones; require them if, and only if, a method adapts a network."""
    key = "models" if evaluate.model is None else "model"
    names = evaluate.models or () if evaluate.model is None else (evaluate.model,)
    adapting = next((method for method in methods if isinstance(method, Adaptation)), None)
    if adapting is not None and not names:
        raise InputError(f", [evaluate], methods: '{adapting}' adapts a network: name a model, model = \"FILE.model\"")
    if adapting is None and names:
        raise InputError(
            f", [evaluate], {key}: no method adapts a network: use the model as an encoder, model:{names[0]}, or add "
            "a method such as finetune"
        )
    files = {name: resolve_path(folder, name) for name in names}
    return tuple(file if file.exists() or (file.suffix and ":" not in name) else name for name, file in files.items())


def _split_attribute_sets(section: AttributesSection) -> tuple[dict[str, tuple[Detector, ...]], dict[str, Path]]:
    """Return the sets of attributes by name: those that detectors produce, and those in existing files."""
    sets = {"": section.detectors} if section.detectors else dict(section.sets or {})
    return sets, {"": section.file} if section.file else dict(section.files or {})


def _check_rates(tune_on: TuneOn | None, methods: Sequence[Method]) -> None:
    """Reject rates that a method does not allow, and methods that differ only in the tuned rate."""
    adaptations = [method for method in methods if isinstance(method, Adaptation)]
    if tune_on is None:
        return
    if not adaptations:
        raise InputError(", [evaluate], tune_on: no method adapts a network: there is no learning rate to choose")
    first_by_spelling: dict[str, Adaptation] = {}
    for method in adaptations:
        with error_prefix(", [evaluate.tune_on], rates: "):
            candidates = [method.with_rate(rate) for rate in tune_on.rates or method.rates]
        first = first_by_spelling.setdefault(candidates[0].with_rate(1.0).spelling, method)
        if first is not method:
            raise InputError(
                f", [evaluate], methods: '{first}' and '{method}' differ only in the learning rate, which tune_on "
                "chooses: keep one of them"
            )
