"""How often is a statement wrong? Verdicts on worlds with known truth: words without meaning, and words with an effect.

    python -m benchmarks.verdicts --worlds 400 --workers 2

Each world is Gaussian classes whose items hold words that move their features. In a null world the words (or contexts)
are shuffled within classes, so there is nothing to rely on; in a planted one they are as drawn. A classifier is then
compared as a user would do it, by `compare` on all files. A verdict that it relies on them (or gains) is wrong in a
null world; that it relies on them is right in a planted one. The table also has the statement of earlier versions,
which was read from the gap with its `sampler` interval.
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
    """Statement about one world: `+` the classifier relies on the axis, `-` it gains, `0` neither is shown.

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


def judge_world(axis: str, null: bool, shot: int, number: int) -> list[Statement]:
    """Read the statements on one world, one per metric."""
    runtime = Runtime(workers=1, cache=None, progress=False)
    world = GaussianWorld(families=2, words=WORDS[axis], pull=PULL[axis])
    catalog, features, attributes = world.draw(CLASSES, ITEMS[axis], seed=number)
    words = words_of(attributes)
    if null:
        words = shuffle_words(words, number)
    attributes = Attributes.from_words(words)
    first = pa.array([min(words[item]) for item in catalog.items])
    catalog = Catalog(catalog.table.append_column("context", first), record=catalog.record)
    shape: dict[str, Any] = {"split": "test", "shot": shot, "query": QUERIES[axis], "tasks": TASKS, "seed": number}
    with runtime:
        sets = [
            sample(catalog, sampler, **shape, **({"attributes": attributes} if sampler == "fewstab" else {}))
            for sampler in SAMPLERS[axis]
        ]
        results = [evaluate(tasks, features, METHOD) for tasks in sets]
        inputs = Inputs(results, sets, [catalog], [features], [attributes], halvings=FEWEST_HALVINGS, seed=number)
        comparison = compare(inputs)
    statements = []
    for metric in METRICS:
        (verdict,) = verdicts(comparison, metric)
        gap, lost = (group.rows[0].intervals[metric] for group in (verdict.loss.gap, verdict.loss.lost))
        now = "+" if verdict.losing else "-" if verdict.gaining else "0"
        gap_interval = gap["sampler"]
        before = "+" if gap_interval.low > 0 else "-" if gap_interval.high < 0 else "0"
        statements.append(Statement(axis, null, shot, metric, number, lost["sampler"].mean, now, before))
    return statements


def words_of(attributes: Attributes) -> dict[str, list[str]]:
    """Return the words of each item."""
    return dict(zip(*(attributes.table.column(name).to_pylist() for name in ("item", "attributes")), strict=True))


def shuffle_words(words: dict[str, list[str]], seed: int) -> dict[str, list[str]]:
    """Return words shuffled among the items of each class."""
    generator = np.random.default_rng(seed)
    by_class: dict[str, list[str]] = {}
    for item in words:
        by_class.setdefault(item.split("/")[0], []).append(item)
    dealt = {}
    for items in by_class.values():
        for item, other in zip(items, generator.permutation(items).tolist(), strict=True):
            dealt[item] = words[other]
    return dealt


def table_rows(statements: list[Statement]) -> Iterator[str]:
    """Write the table: the share of worlds with each statement, and the average loss."""
    yield "| axis | worlds | shots | metric | lost, points | says it leans | says it gains | earlier: not zero |"
    yield "|---|---|---|---|---|---|---|---|"
    key = lambda statement: (statement.axis, not statement.null, statement.shot, statement.metric)  # noqa: E731
    for (axis, planted, shot, metric), group in itertools.groupby(sorted(statements, key=key), key):
        group_rows = list(group)
        share = {sign: 100 * np.mean([row.now == sign for row in group_rows]) for sign in "+-"}
        before = 100 * np.mean([row.before != "0" for row in group_rows])
        kind = f"{len(group_rows)} {'planted' if planted else 'null'}"
        lost = np.mean([row.lost for row in group_rows])
        yield (
            f"| {axis} | {kind} | {shot} | {metric} | {lost:.2f} | {share['+']:.1f}% | {share['-']:.1f}% "
            f"| {before:.1f}% |"
        )


def main() -> None:
    """Print the table, and save the statements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first world")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--axes", nargs="+", default=list(SAMPLERS))
    parser.add_argument("--output", type=Path, help="file to append all statements to as they come, as JSON lines")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.worlds)
    cases = [(*case, number) for number in numbers for case in itertools.product(options.axes, (True, False), (1, 5))]
    statements = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool, ExitStack() as stack:
        log = stack.enter_context(options.output.open("a")) if options.output else None
        for new_statements in pool.map(judge_world, *zip(*cases, strict=True), chunksize=1):
            statements += new_statements
            if log:
                log.writelines(f"{json.dumps(asdict(statement))}\n" for statement in new_statements)
                log.flush()
    for row in table_rows(statements):
        print(row)


if __name__ == "__main__":
    main()
