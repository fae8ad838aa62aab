"""How often is a statement on backgrounds wrong, and how often does its interval cover the truth, if layers are known?

    python -m benchmarks.interventions --worlds 400 --workers 2

An item is a foreground, which tells its class, and a background, whose place is more frequent in some classes. The
encoder adds the background times a dial; cutting and pasting adds noise of its own to each changed item. At a dial of 0
the encoder sees no background: any loss from mixed-same to mixed-random or mixed-rival that a comparison claims is
wrong, and with the background alone it must be at chance. The truth is the loss on thousands of tasks of ever new
items of the same classes, simulated without the library. Comparisons are made as a user makes them, with the `images`
interval.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.changed import Variants
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CLASSES, ITEMS, PLACES, DIMENSIONS = 12, 30, 6, 8
SHARE_AT_HOME = 0.7  # of the items of a class that are in its place
SIGNAL, ARTIFACT = 1.0, 0.5  # distance of classes, and noise of pasting, in standard deviations of an item
WAY, SHOT, QUERY = 5, 5, 5
TASKS, TRUTH_TASKS = 200, 10_000
DIALS = (0.0, 0.5, 1.0)
SETS = ("only-background", "mixed-same", "mixed-random", "mixed-rival")
_HALVINGS, _TASKS_PER_HALF = 20, 100


@dataclass(frozen=True)
class Outcome:
    """What a comparison says of one world: the loss in points with its interval, its conclusion, and the truth."""

    dial: float
    change: str
    mean: float
    low: float
    high: float
    interval_name: str
    conclusion: str
    truth: float


@dataclass(frozen=True)
class World:
    """Vectors of classes and places, from which any number of items is drawn."""

    dial: float
    seed: int

    def outcomes(self) -> list[Outcome]:
        """Compare the world's sets as a user does, and look up the truth."""
        catalog, foregrounds, backgrounds = self.draw()
        random = sample(catalog, "random", shot=SHOT, query=QUERY, tasks=TASKS, seed=self.seed)
        sets = {"random": random}
        for name in SETS:
            like = sets["mixed-same"] if name in ("mixed-random", "mixed-rival") else random
            sets[name] = sample(catalog, f"changed(change='{name}')", like=like, seed=self.seed)
        features = self._features(catalog, foregrounds, backgrounds, [sets[name] for name in SETS])
        results = [evaluate(task_set, features, ["ncc"]) for task_set in sets.values()]
        inputs = Inputs(
            results,
            list(sets.values()),
            [catalog],
            [features],
            halvings=_HALVINGS,
            tasks_per_half=_TASKS_PER_HALF,
            seed=self.seed,
        )
        comparison = compare(inputs, intervals=("images", "sampler"), runtime=Runtime(cache=None, workers=1))
        truth = self.accuracies()
        return [self._outcome(name, comparison, truth) for name in SETS]

    def draw(self) -> tuple[Catalog, Floats, Floats]:
        """Draw the items: their catalog, foregrounds and backgrounds, [items, DIMENSIONS]."""
        labels = np.repeat(np.arange(CLASSES), ITEMS)
        random = np.random.default_rng([self.seed, 1])
        names = [f"class{label:02d}/{number:05d}" for number, label in enumerate(labels)]
        columns = {"item": names, "path": names, "mask": names, "label": [name[:7] for name in names]}
        catalog = Catalog(pa.table({**columns, "split": ["test"] * len(names)}))
        return catalog, self._foregrounds(labels, random), self._backgrounds(labels, random)

    def accuracies(self) -> dict[str, float]:
        """Simulate tasks of ever new items, without the library: the accuracy on each set, in percent."""
        random = np.random.default_rng([self.seed, 2])
        classes = np.argsort(random.random((TRUTH_TASKS, CLASSES)), axis=1)[:, :WAY]
        support = classes[:, :, None].repeat(SHOT, axis=2)
        support_vectors = self._foregrounds(support, random) + self.dial * self._backgrounds(support, random)
        centroids = support_vectors.mean(axis=2)
        query = classes[:, :, None].repeat(QUERY, axis=2)
        foregrounds = self._foregrounds(query, random)
        step = random.integers(1, WAY, size=query.shape)
        rivals = np.take_along_axis(
            classes[:, :, None].repeat(QUERY, axis=2), (np.arange(WAY)[None, :, None] + step) % WAY, 1
        )
        of_any = random.integers(CLASSES, size=query.shape)
        noise = ARTIFACT * random.normal(size=foregrounds.shape)
        plates = {"mixed-same": query, "mixed-random": of_any, "mixed-rival": rivals}
        queries = {name: foregrounds + self.dial * self._backgrounds(of, random) + noise for name, of in plates.items()}
        backgrounds = self._backgrounds(query, random)
        queries |= {"random": foregrounds + self.dial * backgrounds, "only-background": self.dial * backgrounds + noise}
        return {name: 100 * _share_of_nearest(values, centroids) for name, values in queries.items()}

    def _foregrounds(self, labels: Ints, random: np.random.Generator) -> Floats:
        """Draw the foregrounds of items of these classes, [..., DIMENSIONS]."""
        classes = SIGNAL * np.random.default_rng([self.seed, 0]).normal(size=(CLASSES, DIMENSIONS))
        drawn: Floats = classes[labels] + random.normal(size=(*labels.shape, DIMENSIONS))
        return drawn

    def _backgrounds(self, labels: Ints, random: np.random.Generator) -> Floats:
        """Draw the backgrounds of items of these classes, [..., DIMENSIONS]."""
        places = np.random.default_rng([self.seed, 3]).normal(size=(PLACES, DIMENSIONS))
        at_home = random.random(labels.shape) < SHARE_AT_HOME
        place = np.where(at_home, labels % PLACES, random.integers(PLACES, size=labels.shape))
        drawn: Floats = places[place] + 0.3 * random.normal(size=(*labels.shape, DIMENSIONS))
        return drawn

    def _features(
        self, catalog: Catalog, foregrounds: Floats, backgrounds: Floats, changed: Sequence[TaskSet]
    ) -> Features:
        """Encode all items and all that are changed."""
        row_of = {item: row for row, item in enumerate(catalog.items)}
        noise = np.random.default_rng([self.seed, 4])
        names, vectors = [catalog.items], [foregrounds + self.dial * backgrounds]
        for task_set in changed:
            variants = Variants.of(task_set, catalog)
            rows = np.array([row_of[item] for item in variants.items.to_pylist()])
            spellings = variants.changes.to_pylist()
            plates = [re.search(r"plate='([^']*)'", spelling) for spelling in spellings]
            background_rows = np.array(
                [row if plate is None else row_of[plate[1]] for row, plate in zip(rows, plates, strict=True)]
            )
            foreground = 0 if spellings[0].startswith("only-background") else foregrounds[rows]
            pasted = ARTIFACT * noise.normal(size=(len(rows), DIMENSIONS))
            names.append(variants.names.to_pylist())
            vectors.append(foreground + self.dial * backgrounds[background_rows] + pasted)
        return Features.from_array(list(itertools.chain(*names)), np.concatenate(vectors), name="layers")

    def _outcome(self, name: str, comparison: Comparison, truth: Mapping[str, float]) -> Outcome:
        """Read what the comparison says of a change."""
        loss = next(loss for loss in comparison.blocks[0].losses if loss.label == name)
        (row,) = loss.gap.rows
        interval_name = row.first_interval_name("acc")
        interval = row.first("acc")
        conclusion = loss.concluded["acc", interval_name][row.classifier].conclusion
        return Outcome(
            self.dial,
            name,
            interval.mean,
            interval.low,
            interval.high,
            interval_name,
            conclusion,
            truth[loss.reference] - truth[name],
        )


def _share_of_nearest(queries: Floats, centroids: Floats) -> float:
    """Return the share of queries [tasks, way, n, d] whose nearest centroid [tasks, way, d] is that of their class."""
    distances = ((queries[:, :, :, None] - centroids[:, None, None]) ** 2).sum(axis=-1)
    return float((distances.argmin(axis=-1) == np.arange(centroids.shape[1])[None, :, None]).mean())


def _run(task: tuple[float, int]) -> list[Outcome]:
    dial, seed = task
    return World(dial, seed).outcomes()


def main() -> None:
    """Print a table: one row per dial and change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dials", type=float, nargs="*", default=list(DIALS))
    parser.add_argument("--json", type=Path, help="also write every outcome to this file")
    options = parser.parse_args()
    tasks = [(dial, seed) for dial in options.dials for seed in range(options.worlds)]
    with ProcessPoolExecutor(options.workers) as pool:
        outcomes = [outcome for of_world in pool.map(_run, tasks, chunksize=4) for outcome in of_world]
    print(
        "| dial | change | true loss | mean loss | images interval covers the truth | claims a loss | claims a gain |"
    )
    print("|---|---|---|---|---|---|---|")
    for dial in options.dials:
        for name in SETS:
            rows = [outcome for outcome in outcomes if (outcome.dial, outcome.change) == (dial, name)]
            means = [np.mean([getattr(row, value) for row in rows]) for value in ("truth", "mean")]
            covered = [row.low <= row.truth <= row.high for row in rows if not math.isnan(row.low)]
            signs = [sum(row.conclusion == sign for row in rows) / len(rows) for sign in "+-"]
            covered_share = f"{100 * np.mean(covered):.1f}%" if covered else "-"
            cells = [f"{mean:.1f}" for mean in means] + [covered_share] + [f"{100 * share:.1f}%" for share in signs]
            print(f"| {dial:g} | {name} | {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes]))


if __name__ == "__main__":
    main()
