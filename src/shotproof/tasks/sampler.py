"""Samplers, which draw task sets from catalogs. A sampler is a record of options; bound to data, it draws tasks."""

from __future__ import annotations

import difflib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.changes.change import changes
from shotproof.core import limits
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.options import Component
from shotproof.core.records import Maker, Meta, Source, TasksRecord
from shotproof.core.registry import Registry
from shotproof.core.runtime.engine import Needs
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.files import file_sha256
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Reach
from shotproof.features.features import Features
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.taskset import SCHEMA, TaskSet, TaskShape, change_column

BLOCK = 256  # tasks that are drawn, and shown as progress, at a time
TASKS = 600  # where nothing else is said
SKIP_SMALL_CLASSES = "leave out classes with too few items for a task, which are an error otherwise"
# What a user may mistake for an option of a sampler.
_SAMPLE_ARGUMENTS = ("split", "way", "shot", "query", "tasks", "seed", "attributes", "features", "like")

# What tasks stress: attributes that mislead, contexts that change, hard items or classes, unequal queries, items in
# which one thing is changed.
Axis = Literal["attributes", "contexts", "conditions", "difficulty", "classes", "queries", "changes"]
SamplerType = TypeVar("SamplerType", bound="Sampler", covariant=True)


@dataclass(frozen=True)
class SamplerInputs:
    """Inputs that tasks are drawn from: a catalog of one split, the shape of a task, the seed, and further data."""

    catalog: Catalog
    shape: TaskShape
    seed: int
    attributes: Attributes | None = None
    features: Features | None = None
    like: TaskSet | None = None
    plates: Catalog | None = None


class Sampler(Component, ABC):
    """Base class of samplers: options that decide which tasks are drawn. A subclass is a frozen dataclass of them.

    takes: data that it can use besides the catalog: any of `attributes`, `features`, `like` and `plates`
    needs: data among `takes` that it requires
    axis: what its tasks stress, which results are grouped by; None if they are a reference and stress nothing
    reference: the sampler whose tasks its own are compared with if there is no matched set
    has_placebo: whether attributes or contexts decide its tasks, so that shuffling these gives a placebo
    keeps_changes: whether changed queries of `like` stay changed

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=30).catalog()
        >>> sp.samplers.make("random").bind(catalog, TaskShape(way=3), seed=0).draw(range(2)).num_rows
        6
    """

    kind: ClassVar[str] = "sampler"
    takes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    axis: ClassVar[Axis | None] = "difficulty"
    reference: ClassVar[str] = "random"
    has_placebo: ClassVar[bool] = False
    keeps_changes: ClassVar[bool] = False

    def bind(
        self,
        catalog: Catalog,
        shape: TaskShape,
        seed: int,
        *,
        attributes: Attributes | None = None,
        features: Features | None = None,
        like: TaskSet | None = None,
        plates: Catalog | None = None,
    ) -> BoundSampler[Sampler]:
        """Bind the sampler to data, ready to draw.

        Args:
            catalog: items of one split
            shape: the shape of a task
            seed: seed of all random draws
            attributes: attributes of the items
            features: features of the items
            like: a task set whose queries are reused
            plates: items whose backgrounds are shown; None: those of the catalog

        Returns:
            The bound sampler, which draws the tasks.

        Raises:
            InputError: data that the sampler needs is missing or cannot be used.
            InsufficientData: the data cannot give such tasks.
        """
        inputs = {"attributes": attributes, "features": features, "like": like, "plates": plates}
        missing = [role for role in self.needs if inputs[role] is None]
        if missing:
            raise InputError(f"sampler '{self.name}' needs {' and '.join(missing)}")
        return self.bound(SamplerInputs(catalog, shape, seed, **{role: inputs[role] for role in self.takes}))  # type: ignore[arg-type]

    @abstractmethod
    def bound(self, inputs: SamplerInputs) -> BoundSampler[Sampler]:
        """Build the bound sampler that draws tasks from these inputs, which include everything in `needs`."""

    def check_sizes(self, catalog: Catalog, shape: TaskShape) -> None:
        """Reject a catalog of one split that is too small, whatever its attributes and features are.

        This is called before these are computed. Samplers without the option `skip_small_classes` can use classes of
        any size.
        """
        if hasattr(self, "skip_small_classes"):
            ItemPool.of(catalog).fitting(shape, self.skip_small_classes)

    def __post_init__(self) -> None:
        for option in self.options():
            value = getattr(self, option.name)
            if option.path and isinstance(value, Path):  # recorded and spelled as text
                object.__setattr__(self, option.name, str(value))
        super().__post_init__()

    def with_digest_of(self, name: str) -> Self:
        """Return the sampler with the digest of the file that an option names, in the option `..._digest`.

        Raises:
            Mismatch: the sampler already records another digest.
        """
        file, recorded = Path(getattr(self, name)), getattr(self, f"{name}_digest")
        current = file_sha256(file)[:32]
        if recorded not in (None, current):
            label = name.replace("_", " ")
            raise Mismatch(f"{label}: {file} has digest {current}, the tasks were drawn with {recorded}")
        return replace(self, **{f"{name}_digest": current})  # type: ignore[type-var]

    def files(self) -> list[Path]:
        """Return the files that the options name: the tasks depend on them as well as on the data."""
        values = (getattr(self, option.name) for option in self.options() if option.path)
        return [Path(value) for value in values if value is not None]

    def reaches(self) -> Iterator[Reach]:
        """Yield the files that the sampler reads."""
        for file in self.files():
            yield Reach(f"{self._title} reads {absolute(file)}", str(file), file, is_data=True)

    def sets(self, catalog: Catalog | None = None) -> dict[str, Sampler]:
        """Return the samplers that this one stands for, by name: itself, unless it draws several matched sets."""
        return {self.name: self}

    @classmethod
    def with_options(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Build the sampler from these options. Raise InputError with the closest name if an option is unknown."""
        names = [option.name for option in cls.options()]
        for key in values:
            matches = difflib.get_close_matches(key, [*names, *_SAMPLE_ARGUMENTS], n=1)
            if key not in names and matches and matches[0] in _SAMPLE_ARGUMENTS:
                raise InputError(
                    f"sampler '{name}' has no option '{key}': '{matches[0]}' is an argument of sample, not of the "
                    f"sampler: sample(catalog, '{name}', {matches[0]}=...)"
                )
        return super().with_options(name, values)


class BoundSampler(ABC, Generic[SamplerType]):
    """Sampler with its data, ready to draw. Task t must depend only on the seed and on t, never on earlier calls.

    It must be picklable: worker processes get a copy. `sampler` has the options in effect: those left to the data are
    filled in.
    """

    on_device: ClassVar[bool] = False  # whether `draw` uses a GPU where there is one

    def __init__(self, sampler: SamplerType, inputs: SamplerInputs) -> None:
        self.sampler = sampler
        self.shape = inputs.shape
        self.seed = inputs.seed
        self.like = inputs.like

    @abstractmethod
    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks, in the schema of a task set; the sampler may add columns."""

    def available(self) -> int | None:
        """Return how many tasks there are: as many as `like` has, or as the data allows; None if unlimited."""
        return None if self.like is None else len(self.like)

    def common_sizes(self) -> tuple[int | None, int | None, int | None]:
        """Return the way, shot and query that all tasks, or those of `like`, share; None for each that differs."""
        if self.like is not None:
            return self.like.common_sizes()
        return self.shape.way, self.shape.shot, self.shape.query

    def match(self, tasks: TaskSet) -> str | None:
        """Return a digest of what the tasks share with the tasks they are paired with, e.g. those of `like`."""
        if self.like is None:
            return None
        return self.like.match if len(tasks) == len(self.like) else self.like.first(len(tasks)).digest

    def rows_of_like(self, tasks: range) -> pa.Table:
        """Return the rows of these tasks of `like`, without its planted attributes, which other items may lack."""
        assert self.like is not None
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        column = SCHEMA.get_field_index("attribute")
        return table.set_column(column, SCHEMA.field(column), pa.nulls(len(table), pa.string()))

    def with_changes_of_like(self, table: pa.Table, tasks: range) -> pa.Table:
        """Add the changes of the queries of `like`, if it has any, to rows of these tasks with the same queries."""
        assert self.like is not None
        name = change_column("query")
        if name not in self.like.table.column_names:
            return table
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        return table.append_column(name, self.like.table.column(name).slice(start, stop - start))

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize the draws (retries, fallbacks, classes left out) for the file's record."""
        return {}


def _hint_at_change(name: str, spelling: str) -> str:
    """Say which sampler applies a change, if a change is named in place of a sampler."""
    if name not in changes:
        return ""
    change = name if spelling.startswith("{") else spelling.strip()
    return f': it is a change, "changed(change={change!r})"'


samplers: Registry[Sampler] = Registry(
    "sampler",
    {
        "changed": "shotproof.tasks.changed:Changed",
        "chosen": "shotproof.tasks.chosen:Chosen",
        "clean": "shotproof.tasks.context.context_sets:Clean",
        "context": "shotproof.tasks.context.context_sets:Context",
        "copied": "shotproof.tasks.copied:Copied",
        "depletion": "shotproof.tasks.uniform.depletion:Depletion",
        "fastdiffsel": "shotproof.tasks.search.fastdiffsel:FastDiffSel",
        "fewstab": "shotproof.tasks.fewstab.fewstab_sampler:FewStab",
        "greedy": "shotproof.tasks.search.greedy:Greedy",
        "hard-ood": "shotproof.tasks.context.context_sets:HardOod",
        "hardest": "shotproof.tasks.search.hardest:Hardest",
        "iid": "shotproof.tasks.context.context_sets:Iid",
        "meta-dataset": "shotproof.tasks.uniform.meta_dataset:MetaDataset",
        "ood": "shotproof.tasks.context.context_sets:Ood",
        "placebo": "shotproof.tasks.uniform.placebo:Placebo",
        "random": "shotproof.tasks.uniform.random:Random",
        "semantic": "shotproof.tasks.semantic:Semantic",
        "shift": "shotproof.tasks.shift:Shift",
    },
    hint=_hint_at_change,
)


def sample(
    catalog: Catalog,
    sampler: str | Mapping[str, Any] | Sampler | type[Sampler] = "fewstab",
    *,
    split: str | None = None,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    tasks: int | None = None,
    seed: int = 0,
    attributes: Attributes | None = None,
    features: Features | None = None,
    like: TaskSet | None = None,
    name: str | None = None,
    runtime: Runtime | None = None,
) -> TaskSet:
    """Draw a task set.

    The tasks do not depend on the number of workers, and the first tasks do not depend on the number of tasks.

    Args:
        catalog: the items
        sampler: a spelling such as `hardest(effort='high')`, a table with a name and options, or a sampler
        split: the split to draw from; None if the catalog has only one split
        way, shot, query: classes per task, support items per class, query items per class
        tasks: number of tasks; None is 600, or all tasks available from a sampler that uses up the data
        seed: seed of all random draws
        attributes, features, like: further data that the sampler uses
        name: name of the set in pages and tables; None is the sampler's spelling
        runtime: where and how to compute; None is the current runtime

    Returns:
        The tasks, with a record of how they were drawn.

    Raises:
        InputError: an option or a size cannot be used, or data that the sampler needs is missing.
        InsufficientData: the data cannot give such tasks.

    Example:
        >>> import shotproof as sp
        >>> tasks = sp.sample(sp.worlds.ShapesWorld(classes=6, items=30).catalog(), "random", shot=1, tasks=20)
        >>> len(tasks), tasks.record.way, tasks.record.shot
        (20, 5, 1)
    """
    if tasks is not None:
        limits.TASKS.check("tasks", tasks)
    limits.SEED.check("seed", seed)
    sampler = samplers.make(sampler)
    data = {"attributes": attributes, "features": features, "like": like}
    unused = [role for role, value in data.items() if value is not None and role not in sampler.takes]
    if unused:
        warnings.warn(f"sampler '{sampler.name}' does not use {' and '.join(unused)}", UserWarning, stacklevel=2)
    inputs: dict[str, Any] = {
        role: value for role, value in data.items() if role in sampler.takes and value is not None
    }
    bound = sampler.bind(catalog.in_split(split), TaskShape(way, shot, query), seed, **inputs)
    available = bound.available()
    tasks = (tasks or TASKS) if available is None else min(tasks or available, available)
    blocks = [range(start, min(start + BLOCK, tasks)) for start in range(0, tasks, BLOCK)]
    description = f"sampling {sampler.name} tasks"
    needs: Needs = "share" if bound.on_device else "core"
    tables = resolve(runtime).map(bound.draw, blocks, title=description, steps=len, needs=needs)
    table = pa.concat_tables(tables).combine_chunks()
    sizes = bound.common_sizes()
    record = TasksRecord(
        name=sampler.spelling if name is None else name,
        sources={role: _make_source(value) for role, value in {"catalog": catalog, **inputs}.items()},
        sampler=replace(Maker.of(bound.sampler), spelling=sampler.spelling),
        split=split,
        way=sizes[0],
        shot=sizes[1],
        query=sizes[2],
        tasks=tasks,
        seed=seed,
        medium=catalog.medium,
        mix=catalog.record.mix,  # how loud the backgrounds are decides what the tasks ask
    )
    taskset = TaskSet(table, record)
    return replace(taskset, record=replace(record, match=bound.match(taskset), summary=bound.summary(taskset)))


def _make_source(data: Catalog | Attributes | Features | TaskSet) -> Source:
    if isinstance(data, Features):
        return data.record.as_source(data.digest)
    name = data.record.name
    if isinstance(data, Attributes) and data.record.detectors:
        name = name or data.record.detector
    return Source(data.digest, name)
