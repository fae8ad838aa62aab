"""How often is a statement wrong on real features? Meaningless words and contexts, and words with an effect.

    python -m benchmarks.real_statements catalog.parquet features.parquet --draws 400 --cells 20,0.3,5 0,0,5

The items and their features are real. Words (or contexts) are drawn by chance, independently of everything, so that no
classifier can rely on them; or planted, so that an item holds a word if its feature lies far enough along the word's
direction. Pages of 1, 2 and 5 classifiers on 150 and 600 tasks are then read: in a null draw any conclusive statement
is wrong (loses, does better, loses more than another). The table also has the statements of earlier versions, in which
the intervals of a loss ignored shuffled words, and conclusions were not corrected for the whole page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.attribute_costs import costs_of
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.placebo_sets import with_placebos
from shotproof.analysis.reevaluation.reevaluate import reevaluate
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.verdicts import verdicts
from shotproof.core.errors import InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.evaluated import Evaluated, evaluated_sets
from shotproof.stats.pairs import conclude, holm
from shotproof.tasks.sampler import sample

METHODS = ("cosine", "ncc", "ridge", "simpleshot", "matching")
CLASSIFIERS, TASKS = (1, 2, 5), (150, 600)
QUERY = 10
CONTEXTS = 6


@dataclass(frozen=True)
class Cell:
    """Design of a draw: `words` that each item holds with probability `share`, or contexts if there are no words.

    strength: how strongly words depend on the features, in standard deviations; 0 for not at all
    images: whether to compute the images interval, which takes long on words
    """

    words: int
    share: float
    shot: int
    strength: float = 0.0
    images: bool = False


@dataclass(frozen=True)
class PageStatements:
    """Statements on the pages of one draw about so many classifiers on so many tasks, before and now.

    `+` a classifier loses, `-` one does better, `>` one loses more than another, `w` a word costs
    """

    cell: Cell
    draw: int
    classifiers: int
    tasks: int
    before: str
    now: str
    lost: float


@dataclass(frozen=True)
class Data:
    """Data files of items and features.

    families: whether species of birds are grouped by the last word of their names: the 20 largest, 100 items of each
    dimensions: number of principal components of the scaled features to keep, for speed; None keeps all features
    """

    catalog: Path
    features: Path
    families: bool = False
    dimensions: int | None = None

    @cache  # noqa: B019
    def read(self) -> tuple[Catalog, Features]:
        """Read the catalog of the items that have features, and the features."""
        catalog, features = Catalog.read(self.catalog), Features.read(self.features)
        if self.families:
            catalog = _families(catalog)
        has_features = pc.is_in(catalog.table.column("item"), value_set=features.table.column("item").combine_chunks())
        catalog = Catalog(catalog.table.filter(has_features), catalog.root)
        if self.dimensions is not None:
            features = _components(features, catalog, self.dimensions)
        return catalog, features


def read_pages(data: Data, cell: Cell, draw: int) -> list[PageStatements]:
    """Read the pages of one draw; none if the data cannot give the tasks."""
    catalog, features = data.read()
    attributes = _attributes(catalog, features, cell, draw)
    samplers = ["random", "fewstab"] if cell.words else ["iid", "hard-ood"]
    if not cell.words:
        catalog = _with_contexts(catalog, draw)
    shape: dict[str, Any] = {
        "shot": cell.shot,
        "query": QUERY if cell.words else QUERY // 2,
        "tasks": max(TASKS),
        "seed": draw,
    }
    with Runtime(workers=1, cache=None, progress=False):
        try:
            sets = [
                sample(catalog, name, **shape, **({"attributes": attributes} if name == "fewstab" else {}))
                for name in samplers
            ]
        except InsufficientData:
            return []
        results = [evaluate(tasks, features, METHODS) for tasks in sets]
        inputs = with_placebos(
            Inputs(results, sets, [catalog], [features], [attributes] if cell.words else [], seed=draw)
        ).inputs
        evaluated = evaluated_sets(inputs.results)
        interval_names = ("images", "sampler") if cell.images else ("sampler",)
        again = reevaluate(evaluated, interval_names, inputs)
    statements = []
    for classifiers, tasks in itertools.product(CLASSIFIERS, TASKS):
        page = [_first_classifiers(task_set, classifiers, tasks) for task_set in evaluated]
        without = {design: replace(reevaluation, shuffled=None) for design, reevaluation in again.items()}
        earlier = compare_sets(page, interval_names, reevaluated=without)
        now = compare_sets(page, interval_names, reevaluated=again)
        lost = now.blocks[0].losses[-1].lost.rows[0].means["acc"]
        signs = _signs(now)
        if tasks == max(TASKS):  # costs are estimated on all tasks
            of_page = costs_of(now, inputs, again).values()
            signs += "w" * any(costs.conclusive for by_classifier in of_page for costs in by_classifier.values())
        statements.append(PageStatements(cell, draw, classifiers, tasks, _signs_before(earlier), signs, lost))
    return statements


def _signs(comparison: Comparison) -> str:
    signs = set()
    for verdict in verdicts(comparison):
        signs |= {"+"} if verdict.losing else set()
        signs |= {"-"} if verdict.gaining else set()
        signs |= {">"} if verdict.most or verdict.more else set()
    return "".join(sorted(signs))


def _signs_before(comparison: Comparison) -> str:
    """Conclude as before: each task set by itself."""
    signs = set()
    for verdict in verdicts(comparison):
        concluded = verdict.loss.concluded["acc", verdict.interval_name]
        signs |= set(conclude([loss.interval.estimate for loss in concluded.values()], comparison.level))
        differences = [pair.interval.estimate for pair in verdict.loss.skill.pairs["acc", verdict.interval_name]]
        p_values = holm(np.array([difference.p_value() for difference in differences]))
        if verdict.losing and len(p_values) and p_values.min() <= 1 - comparison.level:
            signs.add(">")
    return "".join(sorted(signs - {"0"}))


def _first_classifiers(task_set: Evaluated, classifiers: int, tasks: int) -> Evaluated:
    """Keep the first classifiers and tasks."""
    values = {
        classifier: {metric: of_metric[:tasks] for metric, of_metric in values.items()}
        for classifier, values in itertools.islice(task_set.values.items(), classifiers)
    }
    table_rows = task_set.rows[0]
    return replace(task_set, values=values, rows=[table_rows.filter(pc.less(table_rows.column("task"), tasks))])


def _families(catalog: Catalog) -> Catalog:
    labels = [re.split(r"[_.]", label)[-1] for label in catalog.table.column("label").to_pylist()]
    largest = [family for family, count in Counter(labels).most_common() if count >= 100][:20]
    generator = np.random.default_rng(0)
    members = [[place for place, label in enumerate(labels) if label == family] for family in largest]
    chosen = np.sort(np.concatenate([generator.permutation(of_family)[:100] for of_family in members]))
    columns = {"label": [labels[place] for place in chosen], "split": ["all"] * len(chosen)}
    table = catalog.table.take(pa.array(chosen))
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return Catalog(table, catalog.root)


def _components(features: Features, catalog: Catalog, dimensions: int) -> Features:
    """Keep the principal components of features of length 1, and the length of their mean as one more number."""
    values = features.array[features.rows_of(catalog.items)].astype(np.float64)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    mean = values.mean(axis=0)
    axes = np.linalg.svd(values - mean, full_matrices=False)[2][: dimensions - 1]
    length = np.full((len(values), 1), np.linalg.norm(mean))
    reduced = np.concatenate([(values - mean) @ axes.T, length], axis=1)
    return Features.from_array(list(catalog.items), reduced.astype(np.float32))


def _attributes(catalog: Catalog, features: Features, cell: Cell, draw: int) -> Attributes:
    """Let each item hold each word with the cell's share, by its feature as far as the cell's strength goes."""
    generator = np.random.default_rng([draw, cell.words, round(1000 * cell.share)])
    score = generator.normal(size=(len(catalog), max(cell.words, 1)))
    if cell.strength:
        values = features.array[features.rows_of(catalog.items)].astype(np.float64)
        labels = np.array(catalog.table.column("label").to_pylist())
        for label in np.unique(labels):  # what distinguishes the items of a class
            values[labels == label] -= values[labels == label].mean(axis=0)
        directions = values.T @ generator.normal(size=(len(values), score.shape[1]))
        along = values @ directions
        score += cell.strength * along / along.std(axis=0)
    is_held = score > np.quantile(score, 1 - cell.share, axis=0)
    words = [f"word-{number:02d}" for number in range(score.shape[1])]
    return Attributes.from_words(
        {item: [words[place] for place in np.flatnonzero(of)] for item, of in zip(catalog.items, is_held, strict=True)}
    )


def _with_contexts(catalog: Catalog, draw: int) -> Catalog:
    contexts = np.random.default_rng([draw, 1]).integers(CONTEXTS, size=len(catalog))
    table = catalog.table.append_column("context", pa.array([f"context-{context}" for context in contexts]))
    return Catalog(table, catalog.root, record=catalog.record)


def table_rows(statements: Sequence[PageStatements]) -> Iterator[str]:
    """Write the table: the share of pages with any statement, before and now."""
    yield "| words | share | shots | strength | images | classifiers | tasks | draws | lost | before | now | + − > w |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"

    def key(page: PageStatements) -> tuple[Any, ...]:
        cell = page.cell
        return cell.words, cell.share, cell.shot, cell.strength, cell.images, page.classifiers, page.tasks

    for values, group in itertools.groupby(sorted(statements, key=key), key):
        pages = list(group)
        before, now = (100 * np.mean([bool(getattr(page, name)) for page in pages]) for name in ("before", "now"))
        kinds = ", ".join(f"{100 * np.mean([sign in page.now for page in pages]):.1f}" for sign in "+->w")
        lost = np.mean([page.lost for page in pages])
        cells = " | ".join(map(str, values))
        yield f"| {cells} | {len(pages)} | {lost:.2f} | {before:.1f}% | {now:.1f}% | {kinds} |"


def main() -> None:
    """Print the table, and save the statements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument(
        "--families", action="store_true", help="group species of birds by the last word of their names"
    )
    parser.add_argument("--dimensions", type=int, help="number of principal components to keep")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--cells", nargs="+", default=["10,0.3,5"], help="WORDS,SHARE,SHOT[,STRENGTH[,images]]; 0 words are contexts"
    )
    parser.add_argument("--output", type=Path, help="file to append all statements to as they come, as JSON lines")
    options = parser.parse_args()
    cells = []
    for text in options.cells:
        words, share, shot, *more = text.split(",")
        cells.append(Cell(int(words), float(share), int(shot), float(more[0]) if more else 0.0, more[1:] == ["images"]))
    os.environ["OMP_NUM_THREADS"] = "1"  # more threads than cores would wait for each other
    draws = range(options.first, options.first + options.draws)
    data = Data(options.catalog, options.features, options.families, options.dimensions)
    cases = [(data, cell, draw) for draw in draws for cell in cells]
    statements: list[PageStatements] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for of_draw in pool.map(read_pages, *zip(*cases, strict=True), chunksize=1):
            statements += of_draw
            if options.output:
                with options.output.open("a") as log:
                    log.writelines(f"{json.dumps(asdict(page))}\n" for page in of_draw)
    for row in table_rows(statements):
        print(row)


if __name__ == "__main__":
    main()
