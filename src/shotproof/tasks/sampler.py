"""Sampling: from a catalog to a task set. A sampler draws; this file asks it for all tasks and keeps the record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.features.features import Features
from shotproof.processes import in_processes
from shotproof.progress import progress
from shotproof.registry import Registry
from shotproof.tables import Meta
from shotproof.tasks.pool import Design
from shotproof.tasks.taskset import TaskSet

BLOCK = 256  # tasks that are drawn, and shown as progress, at a time
TASKS = 600  # where nothing else is said


class Sampler(ABC):
    """Draws tasks from a catalog. Task t must depend on the seed and on t alone, never on what was asked for before.

    The constructor takes the catalog (already of one split), the design and the seed, and as keywords what this
    sampler needs beside them. A sampler must be picklable: worker processes get a copy.
    """

    about: ClassVar[str]
    needs_attributes: ClassVar[bool] = False

    @abstractmethod
    def draw(self, tasks: range) -> pa.Table:
        """The rows of these tasks, in the schema of a task set, with further columns if the sampler records more."""

    def available(self) -> int | None:
        """How many tasks there are, of a sampler that uses the data up; None: any number."""
        return None

    def parameters(self) -> Meta:
        """What else than design and seed decided the tasks, for the file's metadata."""
        return {}

    def match(self, tasks: TaskSet) -> str | None:
        """A digest of what the tasks share, one by one, with those of the sets that they are paired with."""
        return None

    def summary(self, tasks: TaskSet) -> Meta:
        """What happened while drawing (retries, fallbacks, classes left out), for the file's metadata."""
        return {}


samplers: Registry[Sampler] = Registry(
    "sampler",
    {
        "clean": "shotproof.tasks.context_sets:CleanSampler",
        "depletion": "shotproof.tasks.depletion:DepletionSampler",
        "fastdiffsel": "shotproof.tasks.fastdiffsel:FastDiffSelSampler",
        "fewstab": "shotproof.tasks.fewstab:FewStabSampler",
        "filter": "shotproof.tasks.filter:FilterSampler",
        "greedy": "shotproof.tasks.greedy:GreedySampler",
        "hard_ood": "shotproof.tasks.context_sets:HardOodSampler",
        "hardest": "shotproof.tasks.hardest:HardestSampler",
        "iid": "shotproof.tasks.context_sets:IidSampler",
        "meta_dataset": "shotproof.tasks.meta_dataset:MetaDatasetSampler",
        "ood": "shotproof.tasks.context_sets:OodSampler",
        "random": "shotproof.tasks.random:RandomSampler",
        "semantic": "shotproof.tasks.semantic:SemanticSampler",
        "shift": "shotproof.tasks.shift:ShiftSampler",
    },
)


def sample(
    catalog: Catalog,
    sampler: str = "fewstab",
    *,
    split: str | None = None,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    tasks: int | None = None,
    seed: int = 0,
    workers: int = 1,
    **options: Any,
) -> TaskSet:
    """Draw a task set.

    `options` go to the sampler, e.g. `attributes=` for `fewstab`. The result is the same for any number of workers,
    and its first tasks are the same for any number of tasks: 600 if none is given, or of a sampler that uses the data
    up all that there are, and never more than these.
    """
    if tasks is not None and tasks < 1:
        raise InputError(f"tasks must be at least 1, not {tasks}")
    design = Design(way, shot, query)
    drawer = samplers.make(sampler, catalog.in_split(split), design, seed, **options)
    available = drawer.available()
    tasks = (tasks or TASKS) if available is None else min(tasks or available, available)
    blocks = [range(start, min(start + BLOCK, tasks)) for start in range(0, tasks, BLOCK)]
    drawn = []
    with progress(f"sampling {sampler} tasks", tasks) as advance:
        for block in in_processes(drawer.draw, blocks, workers):
            drawn.append(block)
            advance(min(BLOCK, tasks))
    inputs = {
        name: value.digest for name, value in options.items() if isinstance(value, (Attributes, Features, TaskSet))
    }
    meta: Meta = {
        "made_by": {
            "sampler": sampler,
            "split": split,
            "way": way,
            "shot": shot,
            "query": query,
            "tasks": tasks,
            **drawer.parameters(),
        },
        "seed": seed,
        "from": {"catalog": catalog.digest, **inputs},
    }
    if "mix" in catalog.meta.get("made_by", {}):
        meta["mix"] = catalog.meta["made_by"]["mix"]  # how loud the backgrounds are decides what the tasks ask
    taskset = TaskSet(pa.concat_tables(drawn).combine_chunks(), meta)
    match = drawer.match(taskset)
    matched = {} if match is None else {"match": match}
    return TaskSet(taskset.table, {**meta, **matched, "summary": drawer.summary(taskset)})
