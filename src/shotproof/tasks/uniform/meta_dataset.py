"""Tasks of variable way and shot, as Meta-Dataset draws them (Triantafillou et al., 2020).

1. Way: uniform on 5 to min(50, number of classes); the classes uniformly. Classes with one item take no part.
2. Queries per class: q = min(10, half of the task's smallest class).
3. Support size: min(500, sum over classes of floor(beta * min(100, n_c - q) + 1)), beta uniform on [0, 1).
4. Shots: with p_c proportional to n_c * exp(u_c), u_c uniform on [log 0.5, log 2),
   k_c = min(floor(p_c * (size - way)) + 1, n_c - q).

Where items share sources, n_c - q is what the queries' sources leave of the class.

Of data sets with a hierarchy, step 1 is another. ILSVRC: a node uniformly among those that span 5 to 392 classes, nodes
that span the same ones counting once; all of its classes, or 50 of them at random. Omniglot: an alphabet, the folder of
a class, uniformly among those of 5 classes or more; then the way, uniform on 5 to min(50, its classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.class_structure import classes_of_folders, read_hierarchy
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

LEAST_WAY = 5
LEAST_ITEMS = 2

_WAY, _CLASSES, _ITEMS, _SIZE, _SHARES, _NODE = range(6)  # what a random number is drawn for
_TRIES = 100
# Shares are whole numbers: where a platform's powers of two differ in the last bit, the shots do not.
_GRAIN = 2**20


@dataclass(frozen=True)
class MetaDataset(Sampler):
    """Ways, shots and queries by the rules of Meta-Dataset: the way, shot and query that are asked for do not apply.

    The limits are options: halves of the data, on which some intervals re-draw the tasks, have fewer classes and items.
    """

    about = "ways, shots and queries that vary, by the rules of Meta-Dataset"
    paper = "Triantafillou et al., Meta-Dataset, ICLR 2020"
    example = "meta-dataset(max_way=20)"
    axis = None

    max_way: int = option(50, "the most classes of a task", least=LEAST_WAY)
    max_query: int = option(10, "the most query items per class", least=1)
    max_shot: int = option(100, "the most support items that a class adds to the size of the support", least=1)
    max_support: int = option(500, "the most support items of a task, at least max_way", least=1)
    hierarchy: str | None = option(
        None, "a file of parents and children (WordNet's is-a): the classes of a task are those of one node", path=True
    )
    hierarchy_digest: str | None = option(None, "of that file, which must then be the same")
    max_leaves: int = option(392, "the most classes of a node of the hierarchy", least=LEAST_WAY)
    folders: bool = option(False, "the classes of a task are of one folder, such as an alphabet")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_support < self.max_way:
            raise InputError(
                f"sampler '{self.name}': max_support: expected a whole number of at least max_way ({self.max_way}), "
                f"found {self.max_support}"
            )

    def bound(self, inputs: SamplerInputs) -> BoundSampler[MetaDataset]:
        """Tasks of all sizes that these inputs give."""
        return BoundMetaDataset(self, inputs)


class BoundMetaDataset(BoundSampler[MetaDataset]):
    """Draws tasks that vary in size."""

    def __init__(self, sampler: MetaDataset, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.without_small_classes(LEAST_ITEMS)
        self.left_out = sorted(set(whole.classes) - set(self.pool.classes))
        if len(self.pool.classes) < LEAST_WAY:
            raise InsufficientData(
                f"meta-dataset tasks have {LEAST_WAY} ways or more, the data has {len(self.pool.classes)} classes with "
                f"at least {LEAST_ITEMS} items: give more classes, or draw random tasks"
            )
        self.nodes = self._nodes(inputs.catalog)

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        ways, classes = self._classes(task)
        first = np.cumsum(ways) - ways
        slot = np.arange(len(classes)) - np.repeat(first, ways)
        sizes = self.pool.sizes[classes]
        queries = np.repeat(np.minimum(self.sampler.max_query, np.minimum.reduceat(sizes, first) // 2), ways)
        query, support, left = self._items(np.repeat(task, ways), slot, classes, queries)
        shots = self._shots(task, ways, slot, sizes, left)
        chosen = np.concatenate([items[:shot] for items, shot in zip(support, shots, strict=True)])
        extra = {}
        if self.nodes:
            names = pa.array(list(self.nodes), pa.string())
            extra["node"] = names.take(pa.array(np.repeat(self._drawn_nodes(task), ways)))
        rows = (chosen, shots), (np.concatenate(query), queries)
        return self.pool.ragged_rows(tasks, ways, classes, *rows, extra=extra)

    def common_sizes(self) -> tuple[None, None, None]:
        """No way, shot or query holds of all tasks."""
        return None, None, None

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes with too few items, and how large the tasks are."""
        ways = np.diff(tasks.starts)
        left_out = self.left_out
        if self.nodes:
            spanned = {self.pool.classes[number] for classes in self.nodes.values() for number in classes.tolist()}
            left_out = sorted({*left_out, *self.pool.classes} - spanned)
        return {"classes_left_out": left_out, "way_mean": float(ways.mean())}

    def _classes(self, task: IntArray) -> tuple[IntArray, IntArray]:
        """The ways [t], and the classes task by task."""
        if self.nodes:
            return self._classes_of_nodes(task)
        most = min(self.sampler.max_way, len(self.pool.classes))
        ways = LEAST_WAY + draws.below(draws.bits(self.seed, task, _WAY), most - LEAST_WAY + 1)
        random = draws.bits(self.seed, task[:, None], _CLASSES, np.arange(most))
        classes = draws.distinct(random, len(self.pool.classes))
        return ways, classes[np.arange(most) < ways[:, None]]

    def _nodes(self, catalog: Catalog) -> dict[str, IntArray]:
        """The classes of each node that tasks may be of, by its name; none where there is no hierarchy."""
        sampler, names = self.sampler, self.pool.classes
        if sampler.folders and sampler.hierarchy is not None:
            raise InputError(f"sampler '{sampler.name}': hierarchy and folders exclude each other: give one of them")
        if sampler.folders:
            paths = catalog.table.column("path").take(pa.array(self.pool.rows[self.pool.offsets[:-1]])).to_pylist()
            found, most, what = classes_of_folders(names, paths), len(names), "a folder with"
        elif sampler.hierarchy is not None:
            file = Path(sampler.hierarchy)
            found, most = read_hierarchy(file, names), sampler.max_leaves
            what = f"a node of {file} that spans at most {most} and"
            self.sampler = sampler.with_digest_of("hierarchy")
        else:
            return {}
        # Nodes that span the same classes count once, under the first name.
        fitting = {
            tuple(found[name]): name for name in sorted(found, reverse=True) if LEAST_WAY <= len(found[name]) <= most
        }
        if not fitting:
            largest = max(map(len, found.values()))
            raise InsufficientData(
                f"meta-dataset tasks need {what} at least {LEAST_WAY} classes of {LEAST_ITEMS} items or more; the "
                f"largest of {len(found)} has {largest}"
            )
        return {name: np.array(classes) for name, classes in sorted((name, one) for one, name in fitting.items())}

    def _drawn_nodes(self, task: IntArray) -> IntArray:
        return draws.below(draws.bits(self.seed, task, _NODE), len(self.nodes))

    def _classes_of_nodes(self, task: IntArray) -> tuple[IntArray, IntArray]:
        """As `_classes`: of a folder some, of a node all that the ways allow."""
        spanned = list(self.nodes.values())
        ways, chosen = np.empty(len(task), np.int64), []
        for row, (number, node) in enumerate(zip(task.tolist(), self._drawn_nodes(task).tolist(), strict=True)):
            classes = spanned[node]
            ways[row] = min(self.sampler.max_way, len(classes))
            if self.sampler.folders:
                ways[row] = LEAST_WAY + draws.below(draws.bits(self.seed, number, _WAY), int(ways[row]) - LEAST_WAY + 1)
            random = draws.bits(self.seed, number, _CLASSES, np.arange(ways[row]))
            chosen.append(classes[draws.distinct(random[None], len(classes))[0]])
        return ways, np.concatenate(chosen)

    def _items(
        self, task: IntArray, slot: IntArray, classes: IntArray, queries: IntArray
    ) -> tuple[list[IntArray], list[IntArray], IntArray]:
        """For each row its queries, the first items for its support, and how many there are in all."""
        query, support = ([np.empty(0, np.int64)] * len(classes) for _ in range(2))
        left = np.zeros(len(classes), dtype=np.int64)
        for attempt in range(_TRIES):
            waiting = np.flatnonzero(left == 0)
            for chosen in np.unique(classes[waiting]):
                rows = waiting[classes[waiting] == chosen]
                start, stop = self.pool.offsets[chosen : chosen + 2]
                counters = task[rows, None], _ITEMS, slot[rows, None], attempt, np.arange(stop - start)
                order = np.argsort(draws.bits(self.seed, *counters), axis=1, kind="stable") + start
                allowed = self._allowed(order, queries[rows])
                left[rows] = allowed.sum(axis=1)
                for row, items, keep in zip(rows, order, allowed, strict=True):
                    query[row] = items[: queries[row]].copy()  # a view would keep the whole order
                    support[row] = items[keep][: self.sampler.max_support].copy()
            if left.all():
                return query, support, left
        worst = int(np.argmin(left))
        raise InsufficientData(
            f"class '{self.pool.classes[classes[worst]]}': in {_TRIES} draws {queries[worst]} of its "
            f"{self.pool.sizes[classes[worst]]} items as queries left none of another source; lower max_query"
        )

    def _allowed(self, order: IntArray, queries: IntArray) -> BoolArray:
        """Which items of an order [m, n] may be support, when the first ones are queries."""
        is_query = np.arange(order.shape[1]) < queries[:, None]
        allowed: BoolArray = ~is_query
        if self.pool.sources is not None:
            sources = self.pool.sources[order]
            for place in range(int(queries.max())):
                allowed &= (sources != sources[:, place, None]) | ~is_query[:, place, None]
        return allowed

    def _shots(self, task: IntArray, ways: IntArray, slot: IntArray, sizes: IntArray, left: IntArray) -> IntArray:
        """The support items of each row; `left` are those that the queries leave of its class."""
        first = np.cumsum(ways) - ways
        beta = draws.uniform(draws.bits(self.seed, task, _SIZE))
        wanted = np.floor(np.repeat(beta, ways) * np.minimum(self.sampler.max_shot, left) + 1).astype(np.int64)
        size = np.minimum(self.sampler.max_support, np.add.reduceat(wanted, first))
        logs = 2 * draws.uniform(draws.bits(self.seed, np.repeat(task, ways), _SHARES, slot)) - 1
        shares = sizes * np.rint(np.exp2(logs) * _GRAIN).astype(np.int64)
        whole = np.repeat(np.add.reduceat(shares, first), ways)
        shots: IntArray = np.minimum(shares * np.repeat(size - ways, ways) // whole + 1, left)
        return shots
