"""What samplers share that choose the supports for given query sets, by the features of the candidates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from shotproof import draws
from shotproof.catalog.catalog import Catalog
from shotproof.devices import choose_device
from shotproof.errors import InputError, Mismatch, Starved, UnknownName
from shotproof.features.features import Features
from shotproof.tables import Meta
from shotproof.tasks.candidates import Candidates, ClassPool
from shotproof.tasks.pool import Design, IntArray, Pool
from shotproof.tasks.random import RandomSampler
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import SCHEMA, TaskSet

BoolArray = npt.NDArray[np.bool_]

MODES = {"hard": 1.0, "easy": -1.0}
BUDGET = 2**29  # bytes that a batch of tasks holds of its classes' features, and as many of what is kept beside them


@dataclass(frozen=True)
class Questions:
    """Tasks that lack their supports; a row is a class of a task, and `query` has the positions of all rows in turn."""

    way: IntArray  # of each task
    start: IntArray  # the first row of each task
    classes: IntArray  # of each row
    shots: IntArray  # of each row
    count: IntArray  # query items of each row
    first: IntArray  # the first query item of each row, and their number at the end
    query: IntArray

    def rows(self, tasks: IntArray) -> IntArray:
        """The rows of tasks of one way, in turn."""
        return np.ravel(self.start[tasks][:, None] + np.arange(self.way[tasks[0]]))

    def shapes(self) -> IntArray:
        """Way and number of query items of each task: [tasks, 2]."""
        return np.stack([self.way, np.add.reduceat(self.count, self.start)], axis=1)


class SupportSampler(Sampler):
    """Takes classes, shots and queries from `like`, or else draws them as `random` does with the same seed.

    The candidates of a class are all its items but those of a source that the task's queries have.
    """

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        features: Features,
        like: TaskSet | None,
        mode: str,
        normalise: bool,
        skip_small_classes: bool,
        device: str | None,
    ) -> None:
        if mode not in MODES:
            raise UnknownName("mode", mode, MODES)
        self.mode, self.sign = mode, MODES[mode]
        self.seed, self.features, self.like, self.device = seed, features, like, device
        self.normalise = normalise
        self.random = None if like else RandomSampler(catalog, design, seed, skip_small_classes=skip_small_classes)
        self.pool = self.random.pool if self.random else Pool.of(catalog)
        self.feature_rows = features.rows_of(self.pool.items)
        if like is not None:
            self._questions(like.table)  # what does not fit is told before anything is drawn

    @abstractmethod
    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """Which candidates are the supports of these tasks, as a mask [S, P]; `numbers` [B] are for random draws."""

    def floats_a_candidate(self, queries: int) -> int:
        """How many numbers `choose` holds at most for each candidate of a slot: for the size of batches."""
        return 8

    def available(self) -> int | None:
        """As many tasks as `like` has."""
        return None if self.like is None else len(self.like)

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        table = self._without_supports(tasks)
        questions = self._questions(table)
        ends = np.concatenate([[0], np.cumsum(questions.shots)])
        supports = np.empty(ends[-1], dtype=np.int64)
        for members in self._batches(questions):
            chosen = self.choose(self._candidates(questions, members, tasks), members + tasks.start)
            slot, position = np.nonzero(chosen.cpu().numpy())  # row by row
            row = questions.rows(members)[slot]
            turn = np.arange(len(slot)) - np.searchsorted(slot, slot)
            supports[ends[row] + turn] = self.pool.offsets[questions.classes[row]] + position
        items = self.pool.items.take(pa.array(supports))
        lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items)
        column = SCHEMA.get_field_index("support")
        return table.set_column(column, SCHEMA.field(column), lists)

    def parameters(self) -> Meta:
        """The mode and what it is computed on; with `like` also the design, None for what varies."""
        given: Meta = {"mode": self.mode, "normalise": self.normalise}
        if self.like is not None:
            sizes = {name: pc.list_value_length(self.like.table.column(name)) for name in ("support", "query")}
            shot, query = (pc.unique(size).to_pylist() for size in sizes.values())
            way = np.unique(np.diff(self.like.starts)).tolist()
            design = {"way": way, "shot": shot, "query": query}
            given |= {name: found[0] if len(found) == 1 else None for name, found in design.items()}
        return given | (self.random.parameters() if self.random else {})

    def match(self, tasks: TaskSet) -> str:
        """The digest of the set whose queries these are: that of `like`, or the random one of the same seed."""
        if self.like is None:
            return TaskSet(self._without_supports(range(len(tasks)))).digest
        if len(tasks) < len(self.like):
            return self.like.first(len(tasks)).digest
        return str(self.like.meta.get("match", self.like.digest))

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes left out because they are too small."""
        return {"classes_left_out": []} if self.random is None else self.random.summary(tasks)

    def uniform(self, numbers: IntArray, purpose: int, way: int, count: int) -> Tensor:
        """Random numbers in [0, 1) for each candidate of each slot: [S, P]."""
        slot, position = np.arange(way)[:, None], np.arange(count)
        bits = draws.bits(self.seed, numbers[:, None, None], purpose, slot, position)
        return torch.from_numpy((bits >> np.uint64(11)) * 2.0**-53).flatten(0, 1)

    def _without_supports(self, tasks: range) -> pa.Table:
        """The rows that give classes, shots and queries; their own supports are to be replaced."""
        if self.like is None:
            assert self.random is not None
            return self.random.draw(tasks).select(SCHEMA.names)
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        # The words that `like` planted do not hold of other supports.
        column = SCHEMA.get_field_index("attribute")
        return table.set_column(column, SCHEMA.field(column), pa.nulls(len(table), pa.string()))

    def _questions(self, table: pa.Table) -> Questions:
        """The rows of a task set as positions in the pool; Mismatch where they are not of this catalog."""
        label = table.column("label").combine_chunks()
        classes = pc.fill_null(pc.index_in(label, value_set=pa.array(self.pool.classes)), -1).to_numpy().astype(int)
        query = table.column("query")
        count = pc.list_value_length(query).to_numpy().astype(np.int64)
        first = np.concatenate([[0], np.cumsum(count)])
        items = pc.list_flatten(query)
        position = pc.fill_null(pc.index_in(items, value_set=self.pool.items), -1).to_numpy().astype(np.int64)
        foreign = np.append(self.pool.class_of, -1)[position] != np.repeat(classes, count)
        if (classes < 0).any() or foreign.any():
            row = int(np.argmax(classes < 0)) if (classes < 0).any() else -1
            what = f"class '{label[row]}'" if row >= 0 else f"query item '{items[int(np.argmax(foreign))]}'"
            raise Mismatch(f"the task set to be like has the {what}, which is not so in this catalog and split")
        start = np.flatnonzero(table.column("slot").to_numpy() == 0)
        shots = pc.list_value_length(table.column("support")).to_numpy().astype(np.int64)
        way = np.diff(np.append(start, len(classes)))
        return Questions(way, start, classes, shots, count, first, position)

    def _batches(self, questions: Questions) -> Iterator[IntArray]:
        """Tasks of one shape, as many at a time as the budget allows; which tasks share a batch changes nothing."""
        shapes, shape_of = np.unique(questions.shapes(), axis=0, return_inverse=True)
        width = self.features.array.shape[1]
        for shape, (way, queries) in enumerate(shapes.tolist()):
            members = np.flatnonzero(shape_of == shape)
            classes = questions.classes[questions.rows(members)]
            sizes = self.pool.sizes[classes].reshape(-1, way)
            floats = sizes.max() * way * self.floats_a_candidate(queries)
            if self.pool.sizes[np.unique(classes)].sum() * width * 8 > BUDGET:
                floats += sizes.sum(1).max() * width  # the classes do not fit together: as if no two tasks shared one
            size = max(1, BUDGET // (8 * int(floats)))
            yield from (members[start : start + size] for start in range(0, len(members), size))

    def _candidates(self, questions: Questions, members: IntArray, tasks: range) -> Candidates:
        """A batch of tasks of one shape as tensors on the device."""
        device = choose_device(self.device, torch.float64)
        rows = questions.rows(members)
        classes, way = questions.classes[rows], len(rows) // len(members)
        query = np.concatenate([questions.query[questions.first[row] : questions.first[row + 1]] for row in rows])
        slot_of_query = np.repeat(np.arange(len(rows)), questions.count[rows])
        allowed = self._allowed(classes, query, slot_of_query, way)
        few = np.flatnonzero(allowed.sum(1) < questions.shots[rows])
        if len(few):
            raise Starved(
                f"task {members[few[0] // way] + tasks.start}: class '{self.pool.classes[classes[few[0]]]}' has "
                f"{allowed[few[0]].sum()} items that are neither queries nor of a query's source, the support needs "
                f"{questions.shots[rows][few[0]]}"
            )
        kinds, kind_of_slot = np.unique(classes, return_inverse=True)
        ends = np.concatenate([[0], np.cumsum(self.pool.sizes[kinds])])
        features = torch.empty(int(ends[-1]), self.features.array.shape[1], dtype=torch.float64, device=device)
        pools = []
        for kind, chosen in enumerate(kinds.tolist()):
            own = features[ends[kind] : ends[kind + 1]]
            self._read_features(chosen, own)
            pools.append(ClassPool(torch.from_numpy(np.flatnonzero(kind_of_slot == kind)).to(device), own))
        moved = query + (ends[kind_of_slot] - self.pool.offsets[classes])[slot_of_query]
        return Candidates(
            features=features,
            query_rows=torch.from_numpy(moved).view(len(members), -1).to(device),
            labels=torch.from_numpy(slot_of_query % way).view(len(members), -1).to(device),
            shots=torch.from_numpy(questions.shots[rows]).to(device),
            allowed=torch.from_numpy(allowed).to(device),
            pools=pools,
        )

    def _allowed(self, classes: IntArray, query: IntArray, slot_of_query: IntArray, way: int) -> BoolArray:
        """Which positions of its class each slot may take: [S, P]."""
        sizes, offsets = self.pool.sizes[classes], self.pool.offsets[classes]
        allowed = np.arange(sizes.max()) < sizes[:, None]
        allowed[slot_of_query, query - offsets[slot_of_query]] = False
        if self.pool.sources is not None:
            for slot, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
                asked = self.pool.sources[query[slot_of_query // way == slot // way]]
                allowed[slot, :size] &= ~np.isin(self.pool.sources[offset : offset + size], asked)
        return allowed

    def _read_features(self, chosen: int, into: Tensor) -> None:
        """The features [n, d] of a class's items, as float64: the rounding of sums then decides nothing."""
        start, stop = self.pool.offsets[chosen : chosen + 2]
        into.copy_(torch.from_numpy(self.features.array[self.feature_rows[start:stop]]))
        broken = ~into.sum(-1).isfinite()  # float64 sums of float32 numbers do not overflow
        if broken.any():
            item = self.pool.items[int(start) + int(broken.int().argmax())]
            raise InputError(f"features: item '{item}' has a value that is not finite")
        if self.normalise:
            into /= torch.linalg.vector_norm(into, dim=-1, keepdim=True).clamp(min=1e-300)
