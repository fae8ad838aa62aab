"""How often is a statement wrong? Verdicts on worlds whose truth is known: words that mean nothing, and words that do.

    python -m benchmarks.verdicts --worlds 400 --workers 2

Each world is Gaussian classes whose items hold words that move their features. In a null world the words (or contexts)
are shuffled within classes, so nothing can be leaned on; in a planted one they are as drawn. A classifier is then
compared as a user would do it, by `compare` on all files, and the verdict is read: that it leans (or gains) in a null
world is wrong, that it leans in a planted one is right. Beside it stands what the gap with its `sampler` interval would
have said, which was the statement of earlier versions.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.halvings import FEWEST_HALVINGS
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.verdicts import verdicts
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.results.evaluated import METRICS
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import GaussianWorld

CLASSES, TASKS, METHOD = 20, 600, "ncc"
PULL = {"attributes": 0.6, "contexts": 0.4}  # of a word, in standard deviations of an item
SAMPLERS = {"attributes": ("random", "fewstab"), "contexts": ("iid", "hard-ood")}
ITEMS, WORDS, QUERIES = (
    {"attributes": 100, "contexts": 300},
    {"attributes": 4, "contexts": 6},
    {"attributes": 15, "contexts": 10},
)


@dataclass(frozen=True)
class Statement:
    """What was said of one world: `+` that the classifier leans, `-` that it gains, `0` that it cannot be told.

    lost: in points, beyond the placebo; before: what the gap with its sampler interval says
    """

    axis: str
    null: bool
    shot: int
    metric: str
    world: int
    lost: float
    now: str
    before: str


def state(axis: str, null: bool, shot: int, number: int) -> list[Statement]:
    """The statements on one world, one per metric."""
    runtime = Runtime(workers=1, cache=None, progress=False)
    world = GaussianWorld(families=2, words=WORDS[axis], pull=PULL[axis])
    catalog, features, attributes = world.draw(CLASSES, ITEMS[axis], seed=number)
    words = words_of(attributes)
    if null:
        words = shuffled(words, number)
    attributes = Attributes.from_words(words)
    first = pa.array([min(words[item]) for item in catalog.items])
    catalog = Catalog(catalog.table.append_column("context", first), record=catalog.record)
    shape: dict[str, Any] = {"split": "test", "shot": shot, "query": QUERIES[axis], "tasks": TASKS, "seed": number}
    with runtime:
        sets = [
            sample(catalog, one, **shape, **({"attributes": attributes} if one == "fewstab" else {}))
            for one in SAMPLERS[axis]
        ]
        results = [evaluate(tasks, features, METHOD) for tasks in sets]
        inputs = Inputs(results, sets, [catalog], [features], [attributes], halvings=FEWEST_HALVINGS, seed=number)
        comparison = compare(inputs)
    found = []
    for metric in METRICS:
        (verdict,) = verdicts(comparison, metric)
        gap, lost = (group.rows[0].intervals[metric] for group in (verdict.loss.gap, verdict.loss.lost))
        now = "+" if verdict.losing else "-" if verdict.gaining else "0"
        old = gap["sampler"]
        before = "+" if old.low > 0 else "-" if old.high < 0 else "0"
        found.append(Statement(axis, null, shot, metric, number, lost["sampler"].mean, now, before))
    return found


def words_of(attributes: Attributes) -> dict[str, list[str]]:
    """The words of each item."""
    return dict(zip(*(attributes.table.column(name).to_pylist() for name in ("item", "attributes")), strict=True))


def shuffled(words: dict[str, list[str]], seed: int) -> dict[str, list[str]]:
    """The words of each class's items, dealt out anew between them."""
    generator = np.random.default_rng(seed)
    by_class: dict[str, list[str]] = {}
    for item in words:
        by_class.setdefault(item.split("/")[0], []).append(item)
    dealt = {}
    for items in by_class.values():
        for item, other in zip(items, generator.permutation(items).tolist(), strict=True):
            dealt[item] = words[other]
    return dealt


def rows(statements: list[Statement]) -> Iterator[str]:
    """The table: the share of worlds with each statement, and what was lost on average."""
    yield "| axis | worlds | shots | metric | lost, points | says it leans | says it gains | earlier: not zero |"
    yield "|---|---|---|---|---|---|---|---|"
    key = lambda one: (one.axis, not one.null, one.shot, one.metric)  # noqa: E731
    for (axis, planted, shot, metric), group in itertools.groupby(sorted(statements, key=key), key):
        of = list(group)
        share = {sign: 100 * np.mean([one.now == sign for one in of]) for sign in "+-"}
        before = 100 * np.mean([one.before != "0" for one in of])
        kind = "planted" if planted else "null"
        lost = np.mean([one.lost for one in of])
        yield (
            f"| {axis} | {len(of)} {kind} | {shot} | {metric} | {lost:.2f} | {share['+']:.1f}% | {share['-']:.1f}% "
            f"| {before:.1f}% |"
        )


def main() -> None:
    """Print the table, and keep the statements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first world")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--axes", nargs="+", default=list(SAMPLERS))
    parser.add_argument("--output", type=Path, help="a file for all statements, JSON lines, as they come")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.worlds)
    cases = [(*case, number) for number in numbers for case in itertools.product(given.axes, (True, False), (1, 5))]
    statements = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.workers, mp_context=context) as pool, ExitStack() as stack:
        log = stack.enter_context(given.output.open("a")) if given.output else None
        for found in pool.map(state, *zip(*cases, strict=True), chunksize=1):
            statements += found
            if log:
                log.writelines(f"{json.dumps(asdict(one))}\n" for one in found)
                log.flush()
    for row in rows(statements):
        print(row)


if __name__ == "__main__":
    main()
