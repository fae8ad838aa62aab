"""What an experiment file may say: each section is a record of options.

Reading and checking the file, its JSON Schema, the tables of the docs and the text of an experiment that was put
together all come from these records.

python -m shotproof.pipeline.experiment_file    # writes the JSON Schema that is shipped
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
from shotproof.core.errors import InputError, placed
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
from shotproof.pipeline.draw_entries import Design, Draw
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.mix_section import Mixing
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import Covers
from shotproof.tasks.sampler import samplers

USUAL_SAMPLERS = ("random", "fewstab")
SHIPPED = Path(__file__).parent / "experiment.schema.json"


@dataclass(frozen=True)
class CatalogSection(Section):
    """The data."""

    root: Path | None = option(None, "the data's folder or table; with file, where the paths of the catalog start")
    file: Path | None = option(None, "a catalog; its paths start from its own folder unless root is given")
    layout: Layout | None = option(None, "how the folder is read; folder unless given")
    splits: Path | None = option(None, "a CSV with the columns label and split")
    split: str | None = option(None, "use this split alone: the others are neither detected nor encoded")
    names: Path | None = option(None, "a CSV with the columns label and name: what pages and tables call the classes")
    name: str | None = option(None, "what pages and tables call the data; the folder's name unless given")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.root is None and self.file is None:
            raise InputError("expected root (a data folder) or file (a catalog)")
        if self.file is not None and self.layout is not None:
            raise InputError("expected no layout beside file, which is a catalog already")


@dataclass(frozen=True)
class AttributesSection(Section):
    """Words of the items, for fewstab and others: one of these keys."""

    detectors: tuple[Detector, ...] | None = option(None, "detectors whose words are taken together", distinct=True)
    sets: Mapping[str, tuple[Detector, ...]] | None = option(
        None, "detectors by the name of a set of attributes; each set has its own tasks"
    )
    file: Path | None = option(None, "attributes that exist")
    files: Mapping[str, Path] | None = option(None, "several of them, by name")

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(getattr(self, each.name) is not None for each in self.options()) > 1:
            raise InputError("expected one of detectors, sets, file and files, not several")


@dataclass(frozen=True)
class FeaturesSection(Section):
    """What methods see of the items."""

    encoders: tuple[Encoder, ...] | None = option(
        None, "each gives every method its features; lite0 unless given, if a method needs any", distinct=True
    )
    stages: Literal["all"] | tuple[int, ...] = option(
        (), "blocks of networks whose pooled output is encoded too, counted from 1", within=COUNT, distinct=True
    )
    transforms: tuple[Transform, ...] = option((), "preprocessing, in order")
    on_error: OnError = option("raise", "what to do about files that cannot be read: name them all and stop, or skip")


@dataclass(frozen=True)
class TasksSection(Design):
    """Which tasks are drawn."""

    placebo: bool = option(True, "draw the placebo of each task set that attributes or contexts decide")
    samplers: tuple[Draw, ...] | None = option(
        None, "what draws task sets; random and fewstab unless given, or none beside files", distinct=True
    )
    files: tuple[Path, ...] | None = option(None, "task sets drawn before", distinct=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_distinct("files", [file.name for file in self.files or ()])

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Return the samplers' entries, or the usual ones."""
        if self.samplers is not None or self.files is not None:
            return self.samplers or ()
        common = {each.name: getattr(self, each.name) for each in Design.options()}
        return tuple(Draw(sampler=samplers.make(name), **common) for name in USUAL_SAMPLERS)

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; a sampler's entry overrides what it says."""
        if isinstance(table, Mapping) and isinstance(table.get("samplers"), list):
            common = {each.name: table[each.name] for each in Design.options() if each.name in table}
            entries = [{"name": entry} if isinstance(entry, str) else entry for entry in table["samplers"]]
            entries = [{**common, **entry} if isinstance(entry, Mapping) else entry for entry in entries]
            table = {**table, "samplers": entries}
        return super().read(table, place)


@dataclass(frozen=True)
class TuneOn(Section):
    """Random tasks of a split, of the same shape as the tasks that are evaluated."""

    split: str = option(help="the split of the validation tasks, not that of the evaluated ones")
    tasks: int = option(20, "how many for each shape of tasks", within=TASKS)
    rates: tuple[float, ...] = option(
        (), "the learning rates to choose from; each method's own unless given", distinct=True
    )


@dataclass(frozen=True)
class EvaluateSection(Section):
    """Which methods are evaluated, and how."""

    methods: tuple[MethodUse, ...] | None = option(
        None,
        "each on the features of every encoder, or adapting every model; the usual heads unless given",
        distinct=True,
    )
    model: str | None = option(None, "what methods such as finetune adapt: FILE.model, or a pretrained backbone's name")
    models: tuple[str, ...] | None = option(None, "instead of model, several", distinct=True)
    tune_on: TuneOn | None = option(None, "choose the learning rates of methods such as finetune on validation tasks")
    allow_seen: bool = option(False, "accept tasks of classes that a model was trained on")
    seed: int = option(0, "for methods that draw random numbers", within=SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is not None and self.models is not None:
            raise InputError("expected either model or models, not both")


@dataclass(frozen=True)
class RuntimeSection(Section):
    """How to compute, which changes no result; flags of the command line take precedence."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check nothing: what was read is checked."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return those of the runtime that a file may set."""
        return tuple(each for each in Runtime.options() if each.name != "progress")

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; an engine that sends work elsewhere needs consent."""
        values = read_options(cls.options(), table, place)
        with placed(f"{place}, engine: "):
            engine = engines.make(values.get("engine", "local"))
            if engine.sends_to is not None:
                require_trust(
                    f"engine '{engine}' sends items and your environment to that cluster, and unpickles its answers"
                )
        return cls(values)


@dataclass(frozen=True)
class OutputSection(Section):
    """What is written."""

    folder: Path | None = option(None, "where all files go; the file's name with -results unless given")
    title: str | None = option(None, "of the page")
    intervals: tuple[Covers, ...] | None = option(
        None,
        "what they cover; the first counts. Unless given, images if the data allows, and sampler",
        distinct=True,
    )
    metric: str = option(METRICS[0], "what statements and ranks are by", choices=METRICS)
    projection: str = option(
        PAGE_PROJECTIONS[0], "how an iid task and its ood one are laid out on a plane", choices=PAGE_PROJECTIONS
    )
    mismatch: Pooling = option("class", "how explain compares support and query: class by class, or pooled over a task")


@dataclass(frozen=True)
class ExperimentFile(Section):
    """A whole file."""

    catalog: CatalogSection = option(help="the data, by root or file")
    mix: Mixing | None = option(None, "mix the recordings with backgrounds first: the mixtures are the data")
    attributes: AttributesSection = option(AttributesSection(), "words of the items")
    features: FeaturesSection = option(FeaturesSection(), "what methods see of the items")
    tasks: TasksSection = option(TasksSection(), "which tasks are drawn")
    evaluate: EvaluateSection = option(EvaluateSection(), "which methods are evaluated, and how")
    runtime: RuntimeSection = option(RuntimeSection(), "how to compute, which changes no result")
    output: OutputSection = option(OutputSection(), "what is written")

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the file's tables; a key of [runtime] is looked for in every section."""
        computing = {each.name for each in RuntimeSection.options()}
        for each in cls.options():
            known = {key.name for key in kinds_of(each.kind)[0].options()}
            given = table.get(each.name)
            for key in given if isinstance(given, Mapping) else ():
                if key in computing - known:
                    raise InputError(f", [{each.name}]: unknown key '{key}': it is {key} in [runtime]")
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
    """The schema as it is shipped."""
    return json.dumps(ExperimentFile.json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SHIPPED, schema_text())
