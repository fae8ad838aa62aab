"""Chosen supports: the classes and queries of another set, with supports that are chosen from all items at hand.

Whoever has more labeled items of each class than shots may choose which of them to use. The pool of a class has all its
items in the split, except the queries of the task and items that share a source with one of them. As many are chosen as
the other set has, so that both sets, and any two choices, are matched task by task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from shotproof.catalog.contexts import contexts_of
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, FloatArray, IntArray
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks import support_choices
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.search.query_sets import QuerySets, may_be_support, require_enough
from shotproof.tasks.taskset import TaskSet

CONTEXT = "context"  # the column of contexts where none is named
_CANDIDATES, _ITEMS, _CONTEXTS = range(3)  # purposes of random numbers
_NUMBERS_AT_A_TIME = 2**20  # numbers drawn at a time


@dataclass(frozen=True)
class Chosen(Sampler):
    """The tasks of `like` with other supports, chosen from all items of the class that are not its queries.

    `random` is the reference that other choices are compared with. `typical` and `easy` need features. `spread` covers
    the contexts of a column, if one is named or `like` was drawn by one; else the words of attributes, if there are
    any; else the column `context`.
    """

    about = "the tasks of another set with supports chosen anew: at random, of all contexts or words, typical, or easy"
    example = "chosen(choose='spread')"
    takes = ("like", "features", "attributes")
    needs = ("like",)
    axis = None
    keeps_changes = True

    choose: Literal["random", "spread", "typical", "easy"] = option(
        "random",
        "at random; evenly over contexts or words; nearest to the class mean, k-medoids for several; or the best of "
        "random candidates by how they classify the items that may be chosen",
    )
    cues: int = option(0, "number of contexts that spread covers; 0 for as many as it can", least=0)
    context_column: str | None = option(
        None,
        "column with the contexts that spread covers; by default that of `like`, or the words of attributes, or the "
        "column context",
    )
    candidates: int = option(32, "number of random supports that easy chooses from", least=1, most=10_000)
    normalize: bool = option(False, "normalize features to length 1 first")

    def __post_init__(self) -> None:
        super().__post_init__()
        # Data that the choice does not use must not be recorded.
        by_features = ("features",) if self.choose in ("typical", "easy") else ()
        by_words = ("attributes",) if self.choose == "spread" and self.context_column is None else ()
        object.__setattr__(self, "takes", ("like", *by_features, *by_words))
        object.__setattr__(self, "needs", ("like", *by_features))
        if self.choose != "spread" and self.cues:
            raise InputError(f"sampler '{self.name}': cues limits the contexts of spread, and choose is {self.choose}")

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Chosen]:
        """Bind the sampler to these inputs.

        Raises:
            InputError: the supports of `like` are changed, or there is nothing to spread them over.
        """
        assert inputs.like is not None
        if inputs.like.changes("support") is not None:
            raise InputError(
                f"sampler '{self.name}': the support items of '{inputs.like.record.name}' are changed: name the "
                "unchanged set in like, and change what was chosen"
            )
        kinds = {"random": BoundRandomly, "spread": BoundSpread, "typical": BoundTypical, "easy": BoundEasy}
        return kinds[self.choose](self, inputs)


@dataclass(frozen=True)
class Pools:
    """Pools of a block of tasks, one row per class of a task.

    task, slot: number of the task and place of the class in it, [rows]
    classes, shots: class, and number of supports to choose, [rows]
    allowed: which items of the class are in the pool, [rows, size of the largest class]
    """

    task: IntArray
    slot: IntArray
    classes: IntArray
    shots: IntArray
    allowed: BoolArray

    def select(self, rows: IntArray) -> Pools:
        """Select rows."""
        return Pools(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def by_shots(self) -> Iterator[tuple[IntArray, int]]:
        """Yield the rows with the same number of shots, and this number."""
        for shots in np.unique(self.shots):
            yield np.flatnonzero(self.shots == shots), int(shots)

    def by_class(self) -> Iterator[tuple[IntArray, int, int]]:
        """Yield the rows with the same class and number of shots, with class and shots."""
        for rows, shots in self.by_shots():
            for number in np.unique(self.classes[rows]):
                yield rows[self.classes[rows] == number], int(number), shots

    @property
    def sizes(self) -> IntArray:
        """Return the number of items of each pool."""
        sizes: IntArray = self.allowed.sum(axis=1)
        return sizes


class BoundChosen(BoundSampler[Chosen]):
    """Chosen supports with their data; a subclass has the rule."""

    def __init__(self, sampler: Chosen, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert self.like is not None
        self.pool = ItemPool.of(inputs.catalog)
        QuerySets.of(self.like.table, self.pool)  # raises an error before anything is drawn

    def choose(self, pools: Pools) -> IntArray:
        """Choose supports at random: items of the class, [rows, most shots], of which each row uses its shots."""
        return self.random_supports(pools, 1)[:, 0]

    def count_cues(self, pools: Pools, chosen: IntArray) -> IntArray | None:
        """Count the contexts or words that the chosen items of each row cover, if the rule goes by these."""
        return None

    def random_supports(self, pools: Pools, candidates: int) -> IntArray:
        """Draw supports at random, [rows, candidates, most shots]; the first is that of the choice `random`."""
        order = np.argsort(~pools.allowed, axis=1, kind="stable")  # the items of the pool first
        supports = np.zeros((len(pools.task), candidates, int(pools.shots.max())), dtype=np.int64)
        for rows, shots in pools.by_shots():
            counters = pools.task[rows, None, None], pools.slot[rows, None, None], np.arange(candidates)[:, None]
            random = draws.bits(self.seed, _CANDIDATES, *counters, np.arange(shots))
            place = draws.distinct(random, pools.sizes[rows, None])
            supports[rows, :, :shots] = np.take_along_axis(order[rows, None], place, axis=2)
        return supports

    def keys(self, pools: Pools, purpose: int, count: int) -> Any:
        """Draw random numbers for each row, [rows, count]."""
        return draws.bits(self.seed, purpose, pools.task[:, None], pools.slot[:, None], np.arange(count))

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks, with the sizes of their pools."""
        table = self.with_changes_of_like(self.rows_of_like(tasks), tasks)
        sets = QuerySets.of(table, self.pool)
        columns: dict[str, list[IntArray]] = {"support": [], "pool_size": [], "cues": []}
        for members in self._parts(sets):
            pools = self._pools(sets, members, tasks)
            chosen = self.choose(pools)
            positions = chosen + self.pool.offsets[pools.classes][:, None]
            columns["support"].append(positions[np.arange(chosen.shape[1]) < pools.shots[:, None]])
            columns["pool_size"].append(pools.sizes)
            cues = self.count_cues(pools, chosen)
            columns["cues"] += [] if cues is None else [cues]
        table = self.pool.with_side(table, "support", np.concatenate(columns.pop("support")), sets.shots)
        for name, parts in columns.items():
            if parts:
                table = table.append_column(name, pa.array(np.concatenate(parts), pa.int32()))
        return table

    def summary(self, tasks: TaskSet) -> Meta:
        """Count classes of tasks with too few items to choose from, and average the contexts or words covered."""
        assert self.like is not None
        shots = np.diff(tasks.table.column("support").combine_chunks().offsets.to_numpy())
        sizes = tasks.table.column("pool_size").to_numpy()
        summary: Meta = {
            "classes_left_out": list(self.like.record.classes_left_out),
            "supports_without_choice": int((sizes <= shots).sum()),
        }
        if "cues" in tasks.table.column_names:
            return {**summary, "cues_covered": float(tasks.table.column("cues").to_numpy().mean())}
        return summary

    def _parts(self, sets: QuerySets) -> Iterator[IntArray]:
        """Yield consecutive tasks, as many as memory allows; the parts do not affect the choice."""
        step = max(1, _NUMBERS_AT_A_TIME // int(self.pool.sizes.max() * sets.way.max()))
        numbers = np.arange(len(sets.way))
        yield from np.split(numbers, np.arange(step, len(numbers), step))

    def _pools(self, sets: QuerySets, members: IntArray, tasks: range) -> Pools:
        """Build the pools of consecutive tasks."""
        rows = np.arange(sets.start[members[0]], sets.start[members[-1]] + sets.way[members[-1]])
        way = sets.way[members]
        task = np.repeat(members + tasks.start, way)
        slot = np.arange(len(rows)) - np.repeat(np.cumsum(way) - way, way)
        query = sets.query[sets.first[rows[0]] : sets.first[rows[-1] + 1]]
        classes, shots = sets.classes[rows], sets.shots[rows]
        slot_of_query = np.repeat(np.arange(len(rows)), sets.count[rows])
        allowed = may_be_support(self.pool, classes, task, query, slot_of_query)
        require_enough(self.pool, classes, task, allowed, shots)
        return Pools(task, slot, classes, shots, allowed)


class BoundRandomly(BoundChosen):
    """Supports at random."""


class BoundSpread(BoundChosen):
    """Supports that cover contexts or words as evenly as they can."""

    def __init__(self, sampler: Chosen, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert self.like is not None
        column = sampler.context_column or self.like.record.context_column
        if column is None and inputs.attributes is None:
            if CONTEXT not in inputs.catalog.table.column_names:
                raise InputError(
                    f"sampler '{sampler.name}' with choose='spread' needs attributes, or a column of the catalog with "
                    "contexts (context_column)"
                )
            column = CONTEXT
        self.contexts, self.words = np.empty(0, np.int64), None
        if column is not None:
            # Recorded, so that it does not depend on what else is at hand when tasks are drawn again.
            self.sampler = replace(sampler, context_column=column)
            names = contexts_of(inputs.catalog, column)
            encoded = pa.array([names[row] for row in self.pool.rows], pa.string()).dictionary_encode()
            order = np.argsort(np.argsort(encoded.dictionary.to_pylist()))
            indices = encoded.indices.fill_null(-1).to_numpy()
            self.contexts = np.where(indices < 0, -1, np.append(order, -1)[indices])
        elif sampler.cues:
            raise InputError(
                f"sampler '{sampler.name}': cues limits the number of contexts, and the supports are spread over the "
                "words of attributes: name the column of contexts (context_column), or leave cues out"
            )
        elif inputs.attributes is not None:
            self.words = inputs.attributes.of_items(self.pool.items).matrix

    def choose(self, pools: Pools) -> IntArray:
        """Choose the supports of these pools."""
        chosen = np.zeros((len(pools.task), int(pools.shots.max())), dtype=np.int64)
        keys = self.keys(pools, _ITEMS, pools.allowed.shape[1])
        if self.words is None:
            context_keys = self.keys(pools, _CONTEXTS, int(self.contexts.max(initial=-1)) + 1)
            order = support_choices.by_turns(
                self._contexts_of(pools), pools.allowed, keys, context_keys, pools.shots, self.sampler.cues
            )
            return order[:, : chosen.shape[1]]
        for rows, number, shots in pools.by_class():
            holds = self._words_of(number)
            of_class = slice(0, holds.shape[0])
            chosen[rows, :shots] = support_choices.balanced(
                holds, pools.allowed[rows, of_class], keys[rows, of_class], shots
            )
        return chosen

    def count_cues(self, pools: Pools, chosen: IntArray) -> IntArray:
        """Count the contexts of the chosen items, or the words that some but not all of them hold, [rows]."""
        counts = np.zeros(len(chosen), dtype=np.int64)
        if self.words is None:
            contexts = np.take_along_axis(self._contexts_of(pools), chosen, axis=1)
            contexts = np.where(np.arange(chosen.shape[1]) < pools.shots[:, None], contexts, -1)
            in_order = np.sort(contexts, axis=1)
            counts += (np.diff(in_order, axis=1, prepend=-1) != 0).sum(axis=1)
            return counts
        for rows, number, shots in pools.by_class():
            counts[rows] = support_choices.count_mixed_words(self._words_of(number), chosen[rows, :shots])
        return counts

    def _contexts_of(self, pools: Pools) -> IntArray:
        """Return the context of each item of each row's class, [rows, items]; beyond the class, of any item."""
        positions = self.pool.offsets[pools.classes][:, None] + np.arange(pools.allowed.shape[1])
        contexts: IntArray = self.contexts[np.minimum(positions, len(self.contexts) - 1)]
        return contexts

    def _words_of(self, number: int) -> Any:
        """Return which words the items of a class hold, [items, words]."""
        assert self.words is not None
        return self.words[self.pool.offsets[number] : self.pool.offsets[number + 1]]


class BoundByFeatures(BoundChosen):
    """Choice by features."""

    def __init__(self, sampler: Chosen, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert inputs.features is not None
        self.features = inputs.features
        self.feature_rows = self.features.rows_of(self.pool.items)

    def features_of(self, number: int) -> FloatArray:
        """Return the features of the items of a class, [items, d]."""
        start, stop = self.pool.offsets[number : number + 2]
        values = np.asarray(self.features.array[self.feature_rows[start:stop]], dtype=np.float64)
        values = values.reshape(len(values), -1)
        is_finite = np.isfinite(values).all(axis=1)
        if not is_finite.all():
            item = self.pool.items[int(start) + int(np.argmin(is_finite))]
            raise InputError(f"features: item '{item}' has a value that is not finite")
        if self.sampler.normalize:
            values = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300)
        return values


class BoundTypical(BoundByFeatures):
    """Supports that are typical of their class."""

    def choose(self, pools: Pools) -> IntArray:
        """Choose the medoids of these pools."""
        chosen = np.zeros((len(pools.task), int(pools.shots.max())), dtype=np.int64)
        for rows, number, shots in pools.by_class():
            distances = _squared_distances(self.features_of(number))
            chosen[rows, :shots] = support_choices.medoids(distances, pools.allowed[rows, : len(distances)], shots)
        return chosen


class BoundEasy(BoundByFeatures):
    """Supports whose means classify the pools of their task best."""

    def choose(self, pools: Pools) -> IntArray:
        """Choose the best of random candidates of each task."""
        candidates = self.random_supports(pools, self.sampler.candidates)
        features = {int(number): self.features_of(int(number)) for number in np.unique(pools.classes)}
        best = np.empty(len(pools.task), dtype=np.int64)
        rank = np.cumsum(pools.allowed, axis=1) - 1  # the place of an item in its pool
        for rows in np.split(np.arange(len(pools.task)), np.flatnonzero(np.diff(pools.task)) + 1):
            values, places = [], []
            for row in rows:
                of_class = features[int(pools.classes[row])]
                values.append(of_class[pools.allowed[row, : len(of_class)]])
                places.append(rank[row][candidates[row, :, : pools.shots[row]]])
            best[rows] = support_choices.easiest(values, places)[0]
        chosen: IntArray = candidates[np.arange(len(best)), best]
        return chosen


def _squared_distances(values: FloatArray) -> FloatArray:
    """Compute the squared Euclidean distances between the rows of an array, [n, n]."""
    centered = values - values.mean(axis=0)
    squares = np.square(centered).sum(axis=1)
    distances: FloatArray = np.maximum(squares[:, None] + squares - 2 * centered @ centered.T, 0)
    np.fill_diagonal(distances, 0)
    return distances
