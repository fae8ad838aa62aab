"""Sampling: from a catalog to a task set. A sampler is a record of options; bound to data, it draws."""

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
from shotproof.tasks.taskset import SCHEMA, TaskSet, TaskShape

BLOCK = 256  # tasks that are drawn, and shown as progress, at a time
TASKS = 600  # where nothing else is said
SKIP_SMALL_CLASSES = "leave out classes with too few items for a task, which are an error otherwise"
# What a user may mistake for an option of a sampler.
_GIVEN_BESIDE = ("split", "way", "shot", "query", "tasks", "seed", "attributes", "features", "like")

# What tasks stress: attributes that mislead, contexts that change, hard items or classes, unequal queries.
Axis = Literal["attributes", "contexts", "conditions", "difficulty", "classes", "queries"]
SamplerType = TypeVar("SamplerType", bound="Sampler", covariant=True)


@dataclass(frozen=True)
class SamplerInputs:
    """What a sampler draws tasks from: a catalog of one split, the shape of a task, the seed, and what it takes."""

    catalog: Catalog
    shape: TaskShape
    seed: int
    attributes: Attributes | None = None
    features: Features | None = None
    like: TaskSet | None = None


class Sampler(Component, ABC):
    """Options that decide which tasks are drawn; a subclass is a frozen dataclass of them.

    takes: what it can be given beside the catalog, of `attributes`, `features` and `like`
    needs: what of this it cannot do without
    axis: what its tasks stress, which results are sectioned by; None where they are a reference and stress nothing
    reference: the sampler that its tasks are measured against, where no matched set is there
    has_placebo: whether attributes or contexts decide its tasks, so that shuffling these gives a placebo

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

    def bind(
        self,
        catalog: Catalog,
        shape: TaskShape,
        seed: int,
        *,
        attributes: Attributes | None = None,
        features: Features | None = None,
        like: TaskSet | None = None,
    ) -> BoundSampler[Sampler]:
        """This sampler with data, ready to draw.

        Args:
            catalog: items of one split
            shape: the shape of a task
            seed: which tasks
            attributes: which words hold of which item
            features: what an encoder makes of the items
            like: a task set whose queries are taken

        Returns:
            What draws the tasks.

        Raises:
            InputError: it needs data that was not given, or cannot use what was.
            InsufficientData: the data cannot give such tasks.
        """
        given = {"attributes": attributes, "features": features, "like": like}
        missing = [role for role in self.needs if given[role] is None]
        if missing:
            raise InputError(f"sampler '{self.name}' needs {' and '.join(missing)}")
        return self.bound(SamplerInputs(catalog, shape, seed, **{role: given[role] for role in self.takes}))  # type: ignore[arg-type]

    @abstractmethod
    def bound(self, inputs: SamplerInputs) -> BoundSampler[Sampler]:
        """What draws tasks with these options from these inputs, of which all that it needs is there."""

    def check_sizes(self, catalog: Catalog, shape: TaskShape) -> None:
        """Refuse a catalog of one split that is too small, whatever attributes and features will say of its items.

        It is asked before these are made. Samplers without the option `skip_small_classes` can use classes of any size.
        """
        if hasattr(self, "skip_small_classes"):
            ItemPool.of(catalog).fitting(shape, self.skip_small_classes)

    def __post_init__(self) -> None:
        for each in self.options():
            value = getattr(self, each.name)
            if each.path and isinstance(value, Path):  # recorded and spelled as text
                object.__setattr__(self, each.name, str(value))
        super().__post_init__()

    def with_digest_of(self, name: str) -> Self:
        """The sampler with the digest of the file that an option names, in the option `..._digest`.

        Raises:
            Mismatch: it has another digest already.
        """
        file, before = Path(getattr(self, name)), getattr(self, f"{name}_digest")
        now = file_sha256(file)[:32]
        if before not in (None, now):
            what = name.replace("_", " ")
            raise Mismatch(f"{what}: {file} has digest {now}, the tasks were drawn with {before}")
        return replace(self, **{f"{name}_digest": now})  # type: ignore[type-var]

    def files(self) -> list[Path]:
        """The files that its tasks are drawn by, beside the data: those that its options name."""
        named = (getattr(self, each.name) for each in self.options() if each.path)
        return [Path(value) for value in named if value is not None]

    def reaches(self) -> Iterator[Reach]:
        """Give the files that its tasks are drawn by."""
        for file in self.files():
            yield Reach(f"{self._title} reads {absolute(file)}", str(file), file, is_data=True)

    def sets(self, catalog: Catalog | None = None) -> dict[str, Sampler]:
        """The samplers that this one stands for, by name: itself, unless it draws several matched sets."""
        return {self.name: self}

    @classmethod
    def with_options(cls, name: str, given: Mapping[str, Any]) -> Self:
        """One with these options; InputError for one that there is not, or that is not given to the sampler."""
        known = [each.name for each in cls.options()]
        for key in given:
            near = difflib.get_close_matches(key, [*known, *_GIVEN_BESIDE], n=1)
            if key not in known and near and near[0] in _GIVEN_BESIDE:
                raise InputError(
                    f"sampler '{name}' has no option '{key}': '{near[0]}' is not set by the sampler's options but "
                    f"beside them, as in sample(catalog, '{name}', {near[0]}=...)"
                )
        return super().with_options(name, given)


class BoundSampler(ABC, Generic[SamplerType]):
    """A sampler with its data. Task t must depend on the seed and on t alone, never on what was asked for before.

    It must be picklable: worker processes get a copy. `sampler` has the options as they are used: what was left to the
    data is filled in.
    """

    on_device: ClassVar[bool] = False  # whether `draw` uses a GPU where there is one

    def __init__(self, sampler: SamplerType, inputs: SamplerInputs) -> None:
        self.sampler = sampler
        self.shape = inputs.shape
        self.seed = inputs.seed
        self.like = inputs.like

    @abstractmethod
    def draw(self, tasks: range) -> pa.Table:
        """The rows of these tasks, in the schema of a task set, with further columns if the sampler records more."""

    def available(self) -> int | None:
        """How many tasks there are: as many as `like` has, or as use the data up; None: any number."""
        return None if self.like is None else len(self.like)

    def common_sizes(self) -> tuple[int | None, int | None, int | None]:
        """The way, shot and query of every task, or of those of `like`; None where tasks differ."""
        if self.like is not None:
            return self.like.common_sizes()
        return self.shape.way, self.shape.shot, self.shape.query

    def match(self, tasks: TaskSet) -> str | None:
        """A digest of what the tasks share, one by one, with those that they are paired with, e.g. those of `like`."""
        if self.like is None:
            return None
        return self.like.match if len(tasks) == len(self.like) else self.like.first(len(tasks)).digest

    def rows_of_like(self, tasks: range) -> pa.Table:
        """The rows of these tasks of `like`, without the words that it planted: they do not hold of other items."""
        assert self.like is not None
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        column = SCHEMA.get_field_index("attribute")
        return table.set_column(column, SCHEMA.field(column), pa.nulls(len(table), pa.string()))

    def summary(self, tasks: TaskSet) -> Meta:
        """What happened while drawing (retries, fallbacks, classes left out), for the file's record."""
        return {}


samplers: Registry[Sampler] = Registry(
    "sampler",
    {
        "clean": "shotproof.tasks.context.context_sets:Clean",
        "context": "shotproof.tasks.context.context_sets:Context",
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

    The tasks are the same for any number of workers, and the first ones are the same for any number of tasks.

    Args:
        catalog: the items
        sampler: a spelling such as `hardest(effort='high')`, a table of a name and options, or a sampler
        split: which items; None where the catalog has one split only
        way, shot, query: classes per task, support items per class, query items per class
        tasks: how many; None is 600, or all that there are of a sampler that uses the data up
        seed: which tasks
        attributes, features, like: what the sampler takes beside the catalog
        name: what pages and tables call the set; None is the sampler's spelling
        runtime: how it is computed; None is the current one

    Returns:
        The tasks, with a record of how they were drawn.

    Raises:
        InputError: an option or a size cannot be used, or something that the sampler needs is missing.
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
    unused = [role for role, given in data.items() if given is not None and role not in sampler.takes]
    if unused:
        warnings.warn(f"sampler '{sampler.name}' does not use {' and '.join(unused)}", UserWarning, stacklevel=2)
    used: dict[str, Any] = {role: data[role] for role in sampler.takes if data[role] is not None}
    bound = sampler.bind(catalog.in_split(split), TaskShape(way, shot, query), seed, **used)
    available = bound.available()
    tasks = (tasks or TASKS) if available is None else min(tasks or available, available)
    blocks = [range(start, min(start + BLOCK, tasks)) for start in range(0, tasks, BLOCK)]
    what = f"sampling {sampler.name} tasks"
    needs: Needs = "share" if bound.on_device else "core"
    drawn = resolve(runtime).map(bound.draw, blocks, what=what, steps=len, needs=needs)
    table = pa.concat_tables(drawn).combine_chunks()
    sizes = bound.common_sizes()
    record = TasksRecord(
        name=sampler.spelling if name is None else name,
        sources={role: _source(given) for role, given in {"catalog": catalog, **used}.items()},
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


def _source(given: Catalog | Attributes | Features | TaskSet) -> Source:
    if isinstance(given, Features):
        return given.record.as_source(given.digest)
    name = given.record.name
    if isinstance(given, Attributes) and given.record.detectors:
        name = name or given.record.detector
    return Source(given.digest, name)
