"""Sections of an experiment file, each declared as a record of options.

These records define how the file is read and checked, its JSON Schema, the tables in the docs, and how an experiment
built in memory is written as text.

python -m shotproof.pipeline.experiment_file    # writes the JSON Schema file of the package
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from shotproof.analysis.explanation.mismatch import Pooling
from shotproof.analysis.projection import PAGE_PROJECTIONS
from shotproof.attributes.detector import Detector
from shotproof.catalog.layout import Layout
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.limits import COUNT, SEED, TASKS
from shotproof.core.options import Option, option, require_distinct
from shotproof.core.plain_values import kinds_of
from shotproof.core.runtime.engine import engines
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.sections import Place, Section, read_options
from shotproof.core.storage.store import OnError
from shotproof.core.storage.whole_files import write_text
from shotproof.core.trust import require_trust
from shotproof.features.encoder import Encoder
from shotproof.features.transforms import Transform
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.draw_entries import Design, Draw
from shotproof.pipeline.masks_section import Masking
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.mix_section import Mixing
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import IntervalName
from shotproof.tasks.sampler import samplers

DEFAULT_SAMPLERS = ("random", "fewstab")
SHIPPED = Path(__file__).parent / "experiment.schema.json"


@dataclass(frozen=True)
class CatalogSection(Section):
    """Data of the experiment."""

    root: Path | None = option(
        None, "folder or table of the data; with file, the folder that the paths of the catalog start from"
    )
    file: Path | None = option(None, "catalog file; its paths start from its own folder unless root is given")
    layout: Layout | None = option(None, "layout of the data folder; by default folder")
    splits: Path | None = option(None, "CSV with the columns label and split")
    split: str | None = option(None, "use only this split: the others are neither detected nor encoded")
    names: Path | None = option(None, "CSV with the columns label and name: display names of the classes")
    name: str | None = option(None, "display name of the data; by default the folder's name")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.root is None and self.file is None:
            raise InputError("expected root (a data folder) or file (a catalog)")
        if self.file is not None and self.layout is not None:
            raise InputError("expected either layout or file, not both: a catalog file has no layout")


@dataclass(frozen=True)
class AttributesSection(Section):
    """Attributes of the items, for samplers such as fewstab; at most one of these keys."""

    detectors: tuple[Detector, ...] | None = option(
        None, "detectors whose attributes are combined into one set", distinct=True
    )
    sets: Mapping[str, tuple[Detector, ...]] | None = option(
        None, "detectors by the name of their set of attributes; each set has its own tasks"
    )
    file: Path | None = option(None, "existing attributes file")
    files: Mapping[str, Path] | None = option(None, "several existing attributes files, by name")

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(getattr(self, option.name) is not None for option in self.options()) > 1:
            raise InputError("expected one of detectors, sets, file and files, not several")


@dataclass(frozen=True)
class FeaturesSection(Section):
    """Features that methods learn from."""

    encoders: tuple[Encoder, ...] | None = option(
        None,
        "every method is evaluated on the features of each; by default lite0, if a method needs features",
        distinct=True,
    )
    stages: Literal["all"] | tuple[int, ...] = option(
        (), "blocks of networks whose pooled output is also encoded, counted from 1", within=COUNT, distinct=True
    )
    transforms: tuple[Transform, ...] = option((), "preprocessing, in order")
    on_error: OnError = option("raise", "what to do with unreadable files: list them all and stop, or skip them")


@dataclass(frozen=True)
class TasksSection(Design):
    """Task sets to draw or read."""

    placebo: bool = option(True, "draw a placebo for each task set that is based on attributes or contexts")
    samplers: tuple[Draw, ...] | None = option(
        None, "samplers that draw task sets; by default random and fewstab, or none if files are given", distinct=True
    )
    files: tuple[Path, ...] | None = option(None, "existing task sets", distinct=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_distinct("files", [file.name for file in self.files or ()])

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Return the entries of the samplers, or the defaults."""
        if self.samplers is not None or self.files is not None:
            return self.samplers or ()
        common = {option.name: getattr(self, option.name) for option in Design.options()}
        return tuple(Draw(sampler=samplers.make(name), **common) for name in DEFAULT_SAMPLERS)

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; keys in a sampler's entry override those of the section."""
        if isinstance(table, Mapping) and isinstance(table.get("samplers"), list):
            common = {option.name: table[option.name] for option in Design.options() if option.name in table}
            entries = [{"name": entry} if isinstance(entry, str) else entry for entry in table["samplers"]]
            entries = [{**common, **entry} if isinstance(entry, Mapping) else entry for entry in entries]
            table = {**table, "samplers": entries}
        return super().read(table, place)


@dataclass(frozen=True)
class TuneOn(Section):
    """Random validation tasks of a split, with the same shape as the evaluated tasks."""

    split: str = option(help="split of the validation tasks; must differ from the evaluated split")
    tasks: int = option(20, "number of validation tasks for each task shape", within=TASKS)
    rates: tuple[float, ...] = option(
        (), "learning rates to choose from; by default those of each method", distinct=True
    )


@dataclass(frozen=True)
class EvaluateSection(Section):
    """Methods to evaluate, and how."""

    methods: tuple[MethodUse, ...] | None = option(
        None,
        "each is evaluated on the features of every encoder, or adapts every model; by default the standard heads",
        distinct=True,
    )
    model: str | None = option(
        None, "model that methods such as finetune adapt: FILE.model, or the name of a pretrained backbone"
    )
    models: tuple[str, ...] | None = option(None, "several models, instead of model", distinct=True)
    tune_on: TuneOn | None = option(None, "choose the learning rates of methods such as finetune on validation tasks")
    allow_seen: bool = option(False, "allow tasks with classes that a model was trained on")
    seed: int = option(0, "random seed of the methods", within=SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is not None and self.models is not None:
            raise InputError("expected either model or models, not both")


@dataclass(frozen=True)
class RuntimeSection(Section):
    """Runtime settings, which change no result; command-line flags take precedence."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Skip validation: the values are checked when they are read."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the runtime options that a file may set."""
        return tuple(option for option in Runtime.options() if option.name != "progress")

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; an engine that sends work to other machines needs consent."""
        values = read_options(cls.options(), table, place)
        with error_prefix(f"{place}, engine: "):
            engine = engines.make(values.get("engine", "local"))
            if engine.sends_to is not None:
                require_trust(
                    f"engine '{engine}' sends items and your environment to that cluster, and unpickles its answers"
                )
        return cls(values)


@dataclass(frozen=True)
class OutputSection(Section):
    """Output of the run."""

    folder: Path | None = option(None, "output folder; by default the name of the experiment file with -results")
    title: str | None = option(None, "title of the report")
    intervals: tuple[IntervalName, ...] | None = option(
        None,
        "what the intervals cover; the first is used for statements. By default images if the data allows, and sampler",
        distinct=True,
    )
    metric: str = option(METRICS[0], "metric of statements and ranks", choices=METRICS)
    projection: str = option(
        PAGE_PROJECTIONS[0],
        "projection that shows an iid task and its ood counterpart in two dimensions",
        choices=PAGE_PROJECTIONS,
    )
    mismatch: Pooling = option("class", "how explain compares support and query: class by class, or pooled over a task")


@dataclass(frozen=True)
class ExperimentFile(Section):
    """Experiment file."""

    catalog: CatalogSection = option(help="data, given by root or file")
    masks: Masking | None = option(None, "cut the foregrounds of images out first, and leave out images without one")
    mix: Mixing | None = option(None, "mix recordings or images with backgrounds first, and use the mixtures as data")
    attributes: AttributesSection = option(AttributesSection(), "attributes of the items")
    features: FeaturesSection = option(FeaturesSection(), "features that methods learn from")
    tasks: TasksSection = option(TasksSection(), "task sets to draw or read")
    evaluate: EvaluateSection = option(EvaluateSection(), "methods to evaluate, and how")
    cure: CureSection | None = option(None, "try remedies on a classifier after the evaluation")
    runtime: RuntimeSection = option(RuntimeSection(), "runtime settings, which change no result")
    output: OutputSection = option(OutputSection(), "output of the run")

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the tables of the file; reject runtime keys that are in another section."""
        runtime_keys = {section.name for section in RuntimeSection.options()}
        for section in cls.options():
            section_keys = {key.name for key in kinds_of(section.kind)[0].options()}
            section_table = table.get(section.name)
            for key in section_table if isinstance(section_table, Mapping) else ():
                if key in runtime_keys - section_keys:
                    raise InputError(f", [{section.name}]: unknown key '{key}': it belongs in [runtime]")
        return super().read(table, place)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of experiment files, with every registered component and its options."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "A Shotproof experiment",
            **super().json_schema(),
        }


def schema_text() -> str:
    """Return the JSON Schema as text, as in the package."""
    return json.dumps(ExperimentFile.json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SHIPPED, schema_text())
