"""A small run with changed items: discs on backgrounds, whose classifier goes by color, so that backgrounds fool it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.results.evaluated import evaluated_sets
from shotproof.results.results import Results
from shotproof.tasks.changed import Changed, Variants
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.drawn_layers import draw_masked

CHANGES = ("only-background", "mixed-same", "mixed-rival", "blur", "blur(severity=5)", "noise")


@dataclass(frozen=True)
class ChangedRun:
    """What a run has: random tasks first, then one set per change."""

    catalog: Catalog
    features: Features
    tasks: list[TaskSet]
    results: list[Results]

    @property
    def comparison(self) -> Comparison:
        """All sets compared, with sampler intervals."""
        return compare_sets(evaluated_sets(self.results), ("sampler",))

    @property
    def inputs(self) -> Inputs:
        """The run as inputs of an analysis."""
        return Inputs(self.results, self.tasks, [self.catalog], [self.features])

    def of(self, change: str) -> TaskSet:
        """The set of a change."""
        return self.tasks[1 + CHANGES.index(change)]

    def write(self, folder: Path) -> Path:
        """Write everything as files of a folder."""
        self.catalog.write(folder / "catalog.parquet")
        self.features.write(folder / "features.parquet")
        for number, (tasks, results) in enumerate(zip(self.tasks, self.results, strict=True)):
            tasks.write(folder / f"tasks-{number}.parquet")
            results.write(folder / f"results-{number}.parquet")
        return folder


def make_changed_run(folder: Path, tasks: int = 30) -> ChangedRun:
    """Draw the pictures, change them, encode both, and evaluate two methods on every set."""
    draw_masked(folder / "others", classes=4, items=3, correlated=False)
    catalog = draw_masked(folder, classes=4, items=8)
    for file in (folder / "others").glob("*.png"):  # some items on the backgrounds of other classes
        file.replace(folder / file.name)
    random = sample(catalog, "random", way=3, shot=2, query=2, tasks=tasks)
    sets = {"random": random}
    for change in CHANGES:
        like = sets["mixed-same"] if change == "mixed-rival" else random
        sets[change] = sample(catalog, Changed(change=change), like=like)
    variants = [Variants.of(task_set, catalog) for task_set in list(sets.values())[1:]]
    all_items = with_changes(catalog, [(each.items, each.changes) for each in variants])
    features = encode(all_items, "pixels")
    results = [evaluate(task_set, features, ["ncc", "knn"]) for task_set in sets.values()]
    return ChangedRun(catalog, features, list(sets.values()), results)
