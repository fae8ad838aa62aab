"""Is the right cure recommended, and none where there is nothing to cure? Worlds with known truth.

    python -m benchmarks.cures --planted 200 --null 400 --workers 2

Each world is Gaussian classes whose items hold words that move their features along directions of their own. In a
planted world the words are as drawn, so removing these directions is the cure by construction: `nap` or `leace` by
words. In a null world the words are shuffled within classes, so there is nothing to rely on, and any recommendation is
wrong. Fast remedies are tried as `shotproof cure` tries them, with the fewer re-evaluations of a quick study.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.verdicts import shuffle_words, words_of
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.pipeline.cure import cure_inputs
from shotproof.pipeline.cure_section import CureSection
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import GaussianWorld

CLASSES, ITEMS, TASKS, SHOT, QUERY = 32, 60, 200, 5, 8
# Eight words of 96 dimensions: to erase them costs hardly any accuracy, so this is the right cure.
DIMENSIONS, WORDS, PULL, SEPARATION = 96, 4, 2.0, 0.3
REMEDIES = ("features", "head(methods=('ncc', 'cosine', 'ridge'))", "supports(choose='spread')")  # the fast ones
RIGHT = ("nap(by='words')", "leace(by='words')")


@dataclass(frozen=True)
class Recommendation:
    """Remedy that was recommended in one world; None if none was."""

    null: bool
    world: int
    recommended: str | None
    lost_before: float
    lost_after: float | None


def cure_world(null: bool, number: int) -> Recommendation:
    """Search for a cure in one world."""
    with Runtime(workers=1, cache=None, progress=False):
        world = GaussianWorld(dimensions=DIMENSIONS, separation=SEPARATION, families=2, words=WORDS, pull=PULL)
        catalog, features, attributes = world.draw(CLASSES, ITEMS, seed=number)
        if null:
            attributes = Attributes.from_words(shuffle_words(words_of(attributes), number))
        shape = {"shot": SHOT, "query": QUERY, "tasks": TASKS, "seed": number}
        random = sample(catalog, "random", **shape)  # type: ignore[arg-type]
        stressed = sample(catalog, "fewstab", attributes=attributes, **shape)  # type: ignore[arg-type]
        results = [evaluate(tasks, features, "cosine") for tasks in (random, stressed)]
        inputs = Inputs(results, [random, stressed], [catalog], [features], [attributes]).quickly()
        cure = cure_inputs(inputs, None, CureSection(remedies=REMEDIES, seed=number))
    effect = cure.tried[0].effects[0]
    row = cure.row(cure.recommended)
    return Recommendation(
        null, number, cure.recommended, effect.before.mean, None if row is None else row.effects[0].after.mean
    )


def _cure(work: tuple[bool, int]) -> Recommendation:
    return cure_world(*work)


def recommendations(planted: int, null: int, workers: int) -> Iterator[Recommendation]:
    """Yield the recommendation in each world, planted and null ones in turns."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    works = [(False, number) for number in range(planted)] + [(True, number) for number in range(null)]
    works.sort(key=lambda work: work[1] / (null if work[0] else planted))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_cure, works)


def print_summary(rows: list[Recommendation]) -> None:
    """Print how often each remedy was recommended, by kind of world."""
    for null, name in ((False, "planted"), (True, "null")):
        worlds = [row for row in rows if row.null == null]
        if not worlds:
            continue
        counts = Counter(str(row.recommended) for row in worlds)
        right = sum(row.recommended in RIGHT for row in worlds) if not null else counts["None"]
        print(f"{name}: {right} of {len(worlds)} right ({100 * right / len(worlds):.1f}%)")
        for remedy, count in counts.most_common():
            print(f"    {remedy}: {count}")


def main() -> None:
    """Search for cures in many worlds, and print how often the right one is recommended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--null", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="JSON lines, one per world")
    options = parser.parse_args()
    rows = []
    for row in recommendations(options.planted, options.null, options.workers):
        rows.append(row)
        if options.output is not None:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    print_summary(rows)


if __name__ == "__main__":
    main()
