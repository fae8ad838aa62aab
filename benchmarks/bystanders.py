"""Does the list of costly attributes separate the cause from bystanders? Gaussian worlds with one word of effect.

    python -m benchmarks.bystanders --worlds 100

20 classes of 100 items in 16 dimensions. One word, the cause, moves the features of its holders; others copy it
up to random flips, so that their correlation with it is known; ten more are independent. The table counts how often the
cause comes first, how often it is conclusive (alone, or in a group that is named with it), and how often a bystander is
wrongly conclusive by itself.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample

CLASSES, ITEMS, DIMENSIONS, OTHERS, TASKS = 20, 100, 16, 10, 600
CAUSE = "cause"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one world's list, and by how many points the word moves features."""

    correlation: float
    pull: float
    cost: float
    first: bool
    alone: bool
    grouped: bool
    wrong: bool


def list_costs(correlation: float, pull: float, bystanders: int, world: int) -> Outcome:
    """Estimate the costs of one world."""
    generator = np.random.default_rng([world, round(100 * correlation)])
    labels = np.repeat(np.arange(CLASSES), ITEMS)
    holds_cause = generator.random(len(labels)) < 0.4
    copies = generator.random((bystanders, len(labels))) < correlation
    words = {CAUSE: holds_cause}
    for number, copied in enumerate(copies):
        words[f"bystander-{number}"] = np.where(copied, holds_cause, generator.random(len(labels)) < 0.4)
    for number in range(OTHERS):
        words[f"other-{number}"] = generator.random(len(labels)) < 0.4
    centers = generator.normal(size=(CLASSES, DIMENSIONS)) * 0.9
    values = centers[labels] + generator.normal(size=(len(labels), DIMENSIONS))
    values[holds_cause] += pull * generator.normal(size=DIMENSIONS) / np.sqrt(DIMENSIONS)
    items = [f"{label:02d}/{number:04d}" for number, label in enumerate(labels)]
    columns = {"item": items, "path": items, "label": [f"class-{label:02d}" for label in labels]}
    catalog = Catalog(pa.table({**columns, "split": ["test"] * len(items)}))
    features = Features.from_array(items, values)
    attributes = Attributes.from_words(
        {item: [word for word, holders in words.items() if holders[place]] for place, item in enumerate(items)}
    )
    with Runtime(workers=1, cache=None, progress=False):
        sets = [
            sample(catalog, "random", shot=5, query=10, tasks=TASKS, seed=world),
            sample(catalog, "fewstab", attributes=attributes, shot=5, query=10, tasks=TASKS, seed=world),
        ]
        results = [evaluate(tasks, features, "ncc") for tasks in sets]
        inputs = Inputs(results, sets, [catalog], [features], [attributes], seed=world)
        comparison = compare(inputs, intervals="sampler")
    ((costs,),) = (by_classifier.values() for by_classifier in comparison.costs.values())
    conclusive = [cost.attributes for cost in costs.conclusive]
    return Outcome(
        correlation,
        pull,
        costs.costs[0].cost.mean,
        CAUSE in costs.costs[0].attributes,
        (CAUSE,) in conclusive,
        any(CAUSE in names and len(names) > 1 for names in conclusive),
        any(CAUSE not in names for names in conclusive),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--bystanders", type=int, default=3)
    parser.add_argument("--pulls", type=float, nargs="+", default=[1.5, 3.0])
    parser.add_argument("--correlations", type=float, nargs="+", default=[0.5, 0.7, 0.9])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # more threads than cores would wait for each other
    print("| correlation | pull | cost of the first | cause first | conclusive | in a group | others wrongly |")
    print("|---|---|---|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for correlation, pull in itertools.product(options.correlations, options.pulls):
            worlds = range(options.worlds)
            cases = [(correlation, pull, options.bystanders, world) for world in worlds]
            outcomes = list(pool.map(list_costs, *zip(*cases, strict=True)))
            shares = (
                f"{100 * np.mean([getattr(outcome, name) for outcome in outcomes]):.0f}%"
                for name in ("first", "alone", "grouped", "wrong")
            )
            cost = np.mean([outcome.cost for outcome in outcomes])
            print(f"| {correlation} | {pull} | {cost:.1f} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
