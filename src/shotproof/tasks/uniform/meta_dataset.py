"""Tasks of variable way and shot, drawn as in Meta-Dataset (Triantafillou et al., 2020).

1. Way: uniform on 5 to min(50, number of classes); the classes uniformly. Classes with one item take no part.
2. Queries per class: q = min(10, half of the task's smallest class).
3. Support size: min(500, sum over classes of floor(beta * min(100, n_c - q) + 1)), beta uniform on [0, 1).
4. Shots: with p_c proportional to n_c * exp(u_c), u_c uniform on [log 0.5, log 2),
   k_c = min(floor(p_c * (size - way)) + 1, n_c - q).

If items share sources, n_c - q counts only the items of the class that share no source with its queries.

For data sets with a hierarchy, step 1 differs. ILSVRC: a node uniformly among those that span 5 to 392 classes (nodes
that span the same classes count once), and all of its classes, or 50 of them at random. Omniglot: an alphabet, which is
the folder of a class, uniformly among those of 5 classes or more; then the way, uniform on 5 to min(50, its classes).
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

_WAY, _CLASSES, _ITEMS, _SIZE, _SHARES, _NODE = range(6)  # purposes of random numbers
_TRIES = 100
# Shares are rounded to multiples of 1 / _GRAIN, so that the last bit of a platform's powers of two has no effect.
_GRAIN = 2**20


@dataclass(frozen=True)
class MetaDataset(Sampler):
    """Ways, shots and queries by the rules of Meta-Dataset; the requested way, shot and query do not apply.

    The limits are options, because halves of the data, on which some intervals redraw tasks, have fewer classes and
    items.
    """

    about = "ways, shots and queries that vary, by the rules of Meta-Dataset"
    paper = "Triantafillou et al., Meta-Dataset, ICLR 2020"
    example = "meta-dataset(max_way=20)"
    axis = None

    max_way: int = option(50, "largest number of classes of a task", least=LEAST_WAY)
    max_query: int = option(10, "largest number of query items per class", least=1)
    max_shot: int = option(100, "largest number of support items that a class adds to the size of the support", least=1)
    max_support: int = option(500, "largest number of support items of a task, at least max_way", least=1)
    hierarchy: str | None = option(
        None,
        "file of parents and children (such as WordNet's is-a) one of whose nodes gives the classes of a task",
        path=True,
    )
    hierarchy_digest: str | None = option(None, "expected digest of that file")
    max_leaves: int = option(392, "largest number of classes of a node of the hierarchy", least=LEAST_WAY)
    folders: bool = option(False, "whether the classes of a task are from one folder, such as an alphabet")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_support < self.max_way:
            raise InputError(
                f"sampler '{self.name}': max_support: expected a whole number of at least max_way ({self.max_way}), "
                f"found {self.max_support}"
            )

    def bound(self, inputs: SamplerInputs) -> BoundSampler[MetaDataset]:
        """Bind the sampler to these inputs."""
        return BoundMetaDataset(self, inputs)


class BoundMetaDataset(BoundSampler[MetaDataset]):
    """Meta-Dataset sampler bound to its inputs."""

    def __init__(self, sampler: MetaDataset, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        all_items = ItemPool.of(inputs.catalog)
        self.pool = all_items.without_small_classes(LEAST_ITEMS)
        self.left_out = sorted(set(all_items.classes) - set(self.pool.classes))
        if len(self.pool.classes) < LEAST_WAY:
            raise InsufficientData(
                f"meta-dataset tasks need at least {LEAST_WAY} classes with {LEAST_ITEMS} items or more, the data has "
                f"{len(self.pool.classes)}: add classes, or use the sampler random"
            )
        self.nodes = self._nodes(inputs.catalog)

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        ways, classes = self._draw_classes(task)
        first = np.cumsum(ways) - ways
        slot = np.arange(len(classes)) - np.repeat(first, ways)
        sizes = self.pool.sizes[classes]
        queries = np.repeat(np.minimum(self.sampler.max_query, np.minimum.reduceat(sizes, first) // 2), ways)
        query, support, left = self._draw_items(np.repeat(task, ways), slot, classes, queries)
        shots = self._draw_shots(task, ways, slot, sizes, left)
        chosen = np.concatenate([items[:shot] for items, shot in zip(support, shots, strict=True)])
        extra = {}
        if self.nodes:
            names = pa.array(list(self.nodes), pa.string())
            extra["node"] = names.take(pa.array(np.repeat(self._draw_nodes(task), ways)))
        rows = (chosen, shots), (np.concatenate(query), queries)
        return self.pool.ragged_rows(tasks, ways, classes, *rows, extra=extra)

    def common_sizes(self) -> tuple[None, None, None]:
        """Return None for way, shot and query, which differ between tasks."""
        return None, None, None

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes are left out, and the mean way."""
        ways = np.diff(tasks.starts)
        left_out = self.left_out
        if self.nodes:
            spanned = {self.pool.classes[index] for classes in self.nodes.values() for index in classes.tolist()}
            left_out = sorted({*left_out, *self.pool.classes} - spanned)
        return {"classes_left_out": left_out, "way_mean": float(ways.mean())}

    def _draw_classes(self, task: IntArray) -> tuple[IntArray, IntArray]:
        """Draw the ways [t], and the classes task by task."""
        if self.nodes:
            return self._draw_classes_of_nodes(task)
        most = min(self.sampler.max_way, len(self.pool.classes))
        ways = LEAST_WAY + draws.below(draws.bits(self.seed, task, _WAY), most - LEAST_WAY + 1)
        random = draws.bits(self.seed, task[:, None], _CLASSES, np.arange(most))
        classes = draws.distinct(random, len(self.pool.classes))
        return ways, classes[np.arange(most) < ways[:, None]]

    def _nodes(self, catalog: Catalog) -> dict[str, IntArray]:
        """Return the classes of each node that tasks may use, by its name; an empty dictionary without a hierarchy."""
        sampler, names = self.sampler, self.pool.classes
        if sampler.folders and sampler.hierarchy is not None:
            raise InputError(f"sampler '{sampler.name}': expected hierarchy or folders, not both")
        if sampler.folders:
            paths = catalog.table.column("path").take(pa.array(self.pool.rows[self.pool.offsets[:-1]])).to_pylist()
            nodes, most, subject = classes_of_folders(names, paths), len(names), "a folder with"
        elif sampler.hierarchy is not None:
            file = Path(sampler.hierarchy)
            nodes, most = read_hierarchy(file, names), sampler.max_leaves
            subject = f"a node of {file} that spans at most {most} and"
            self.sampler = sampler.with_digest_of("hierarchy")
        else:
            return {}
        # Nodes that span the same classes count once, under their first name.
        name_of = {
            tuple(nodes[name]): name for name in sorted(nodes, reverse=True) if LEAST_WAY <= len(nodes[name]) <= most
        }
        if not name_of:
            largest = max(map(len, nodes.values()))
            raise InsufficientData(
                f"meta-dataset tasks need {subject} at least {LEAST_WAY} classes with {LEAST_ITEMS} items or more; the "
                f"largest of {len(nodes)} has {largest}"
            )
        return {name: np.array(classes) for name, classes in sorted((name, node) for node, name in name_of.items())}

    def _draw_nodes(self, task: IntArray) -> IntArray:
        return draws.below(draws.bits(self.seed, task, _NODE), len(self.nodes))

    def _draw_classes_of_nodes(self, task: IntArray) -> tuple[IntArray, IntArray]:
        """Draw classes as `_draw_classes`, from a folder or a node; from a node, as many as the largest way allows."""
        nodes = list(self.nodes.values())
        ways, chosen = np.empty(len(task), np.int64), []
        for row, (task_number, node) in enumerate(zip(task.tolist(), self._draw_nodes(task).tolist(), strict=True)):
            classes = nodes[node]
            ways[row] = min(self.sampler.max_way, len(classes))
            if self.sampler.folders:
                choices = int(ways[row]) - LEAST_WAY + 1
                ways[row] = LEAST_WAY + draws.below(draws.bits(self.seed, task_number, _WAY), choices)
            random = draws.bits(self.seed, task_number, _CLASSES, np.arange(ways[row]))
            chosen.append(classes[draws.distinct(random[None], len(classes))[0]])
        return ways, np.concatenate(chosen)

    def _draw_items(
        self, task: IntArray, slot: IntArray, classes: IntArray, queries: IntArray
    ) -> tuple[list[IntArray], list[IntArray], IntArray]:
        """Draw the queries of each row, the first items for its support, and the number of items that queries leave."""
        query, support = ([np.empty(0, np.int64)] * len(classes) for _ in range(2))
        left = np.zeros(len(classes), dtype=np.int64)
        for attempt in range(_TRIES):
            unfinished = np.flatnonzero(left == 0)
            for chosen in np.unique(classes[unfinished]):
                rows = unfinished[classes[unfinished] == chosen]
                start, stop = self.pool.offsets[chosen : chosen + 2]
                counters = task[rows, None], _ITEMS, slot[rows, None], attempt, np.arange(stop - start)
                order = np.argsort(draws.bits(self.seed, *counters), axis=1, kind="stable") + start
                allowed = self._allowed_support(order, queries[rows])
                left[rows] = allowed.sum(axis=1)
                for row, items, keep in zip(rows, order, allowed, strict=True):
                    query[row] = items[: queries[row]].copy()  # a view would keep the whole order
                    support[row] = items[keep][: self.sampler.max_support].copy()
            if left.all():
                return query, support, left
        worst = int(np.argmin(left))
        raise InsufficientData(
            f"class '{self.pool.classes[classes[worst]]}': in {_TRIES} draws, {queries[worst]} queries of its "
            f"{self.pool.sizes[classes[worst]]} items never left an item of another source: lower max_query"
        )

    def _allowed_support(self, order: IntArray, queries: IntArray) -> BoolArray:
        """Return which items of an order [m, n] may be support, given that the first ones are queries."""
        is_query = np.arange(order.shape[1]) < queries[:, None]
        allowed: BoolArray = ~is_query
        if self.pool.sources is not None:
            sources = self.pool.sources[order]
            for place in range(int(queries.max())):
                allowed &= (sources != sources[:, place, None]) | ~is_query[:, place, None]
        return allowed

    def _draw_shots(self, task: IntArray, ways: IntArray, slot: IntArray, sizes: IntArray, left: IntArray) -> IntArray:
        """Draw the number of support items of each row, of the `left` items that the queries leave of its class."""
        first = np.cumsum(ways) - ways
        beta = draws.uniform(draws.bits(self.seed, task, _SIZE))
        contributions = np.floor(np.repeat(beta, ways) * np.minimum(self.sampler.max_shot, left) + 1).astype(np.int64)
        size = np.minimum(self.sampler.max_support, np.add.reduceat(contributions, first))
        logs = 2 * draws.uniform(draws.bits(self.seed, np.repeat(task, ways), _SHARES, slot)) - 1
        shares = sizes * np.rint(np.exp2(logs) * _GRAIN).astype(np.int64)
        total = np.repeat(np.add.reduceat(shares, first), ways)
        shots: IntArray = np.minimum(shares * np.repeat(size - ways, ways) // total + 1, left)
        return shots
