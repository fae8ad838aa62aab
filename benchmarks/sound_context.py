"""Context shift in sound: from the folder of ESC-50 to tables and figures (SpurAudio, Figures 2, 3, 7 and 15).

`python -m benchmarks.sound_context [--data ../shared/data/ESC-50] [--work sound-context]`: tables in Markdown on the
terminal, figures and a report in the working folder. Existing files are read again, so a second run is quick.
`--heads` compares all heads on iid and hard-ood tasks instead, `--support-contexts` supports in one and in several
contexts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.fixture import sounds
from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.comparison.comparison import Comparison
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, make_method, methods
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import Study as ComparedStudy
from shotproof.report.figures.loss_curves import SETS, context_panels
from shotproof.report.figures.svg import write_svg
from shotproof.results.evaluated import values_of
from shotproof.results.results import Results
from shotproof.sounds.mix import MixSettings, mix
from shotproof.stats.intervals import Interval, gap_interval
from shotproof.tasks.context.context_sets import Context
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

DIALS = (0.0, 0.5, 1.0, 2.0)
SHOTS = (1, 5)
MORE_SHOTS = (1, 5, 10)  # at a = 1
QUERY, TASKS = 10, 600
CHANCE = 20.0  # percent, of 5 ways
GAPS = SETS[1:]  # iid minus each of these
HEADS_SETS = ("iid", "hard-ood")
RESCALED_TASKS = 60
SEVERAL: tuple[int | str, ...] = (1, 2, 4, "all")  # contexts of a class's support


@dataclass(frozen=True)
class Study:
    """Files of the study: created if they do not exist yet."""

    data: Path
    work: Path

    def catalog(self, dial: float) -> Catalog:
        """Mix ESC-50 with this dial, on the fly, with the foregrounds alone beside the mixtures."""
        folder = self.work / f"mixed-{dial:g}"
        if not (folder / "catalog.parquet").is_file():
            settings = MixSettings(dial=dial, clean=True, on_the_fly=True)
            mix(read_layout(self.data, "esc50"), "esc50", folder, settings)
        return Catalog.read(folder / "catalog.parquet")

    @cache  # noqa: B019 - a study lives as long as the program
    def features(self, dial: float, split: str = "test") -> Features:
        """Encode the sounds of a split by log-mel statistics."""
        path = self.work / f"logmel-{split}-{dial:g}.parquet"
        if not path.is_file():
            encode(self.catalog(dial).in_split(split), "logmel").write(path)
        return Features.read(path)

    @cache  # noqa: B019
    def tasks(self, dial: float, shot: int, split: str = "test", several: int | str = 1) -> dict[str, TaskSet]:
        """Draw the four matched sets, with supports in so many contexts."""
        folder = self.work / f"tasks-{split}-{dial:g}-{shot}{'' if several == 1 else f'-{several}'}"
        if not (folder / "clean.parquet").is_file():
            shape = {"split": split, "shot": shot, "query": QUERY, "tasks": TASKS}
            catalog = self.catalog(dial)
            kinds = Context(support_contexts=several).sets(catalog)
            sets = {name: sample(catalog, kind, **shape) for name, kind in kinds.items()}
            for name, drawn in sets.items():
                drawn.write(folder / f"{name}.parquet")
        return {name: TaskSet.read(folder / f"{name}.parquet") for name in SETS}

    def results(
        self, dial: float, shot: int, names: Iterable[str], sets: Sequence[str] = SETS, split: str = "test"
    ) -> list[Results]:
        """Evaluate the methods on the sets, one file per method and set."""
        results = []
        for sampler in sets:
            for name in names:
                path = self.work / f"results-{split}-{dial:g}-{shot}" / f"{sampler}-{file_name(name)}.parquet"
                if not path.is_file():
                    tasks = self.tasks(dial, shot, split)[sampler]
                    evaluate(tasks, self.features(dial, split), name).write(path)
                results.append(Results.read(path))
        return results


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def interval_text(interval: Interval) -> str:
    """Write an interval in percent, e.g. `12.3 ±0.4`."""
    half = "(none)" if interval.refused else f"±{interval.half_width:.1f}"
    return f"{interval.mean:.1f} {half}"


def accuracies(comparison: Comparison, shot: int) -> None:
    """Print Acc in each set and the loss from iid to the others, for each dial and method."""
    rows, in_order = [], []
    for design in (design for design in comparison.designs if design.shot == shot):
        for method in comparison.methods:
            accuracy, gap = (
                {
                    row.tasks: row.interval
                    for row in comparison.rows(quantity, "acc")
                    if (row.design, row.classifier.method) == (design, method)
                }
                for quantity in ("accuracy", "gap")
            )
            means = [accuracy[name].mean for name in SETS]
            gaps = [gap[name] for name in GAPS]
            rows.append([f"{design.dial:g}", method, *(f"{mean:.1f}" for mean in means), *map(interval_text, gaps)])
            in_order += [bool(np.all(np.diff(means) < 0))] if design.dial else []
    table(["a", "method", *SETS, *(f"iid - {name}" for name in GAPS)], rows)
    print(f"iid > clean > ood > hard-ood in {sum(in_order)} of {len(in_order)} rows with a > 0")


def growth(study: Study, shot: int) -> None:
    """Print how much the loss grows with each step of the dial; the tasks are the same, so task by task."""
    rows = []
    for name in DEFAULT_METHODS:
        losses = []
        for dial in DIALS:
            iid, hard = (values_of(result, name)["acc"] for result in study.results(dial, shot, [name], HEADS_SETS))
            losses.append(iid - hard)
        same = len({study.tasks(dial, shot)["hard-ood"].digest for dial in DIALS}) == 1
        steps = pairwise(losses)
        rows.append([name, *(interval_text(gap_interval(after, before, paired=same)) for before, after in steps)])
    print(f"What each step of a adds to the loss iid - hard-ood, {shot} shots, the same tasks: {same}")
    table(["method", *(f"{before:g} to {after:g}" for before, after in pairwise(DIALS))], rows)


def other_intervals(study: Study, split: str) -> None:
    """Print the loss from iid to hard-ood at a = 1 under intervals over new recordings and new classes."""
    names = ("ncc", "cosine")
    tasks = study.tasks(1.0, 5, split)
    inputs = Inputs(
        tasks=[tasks[name] for name in HEADS_SETS],
        catalogs=[study.catalog(1.0)],
        features=[study.features(1.0, split)],
    )
    compared = compare(
        study.results(1.0, 5, names, HEADS_SETS, split), intervals=("sampler", "images", "classes"), inputs=inputs
    )
    rows = [
        [
            row.classifier.method,
            *(interval_text(row.intervals["acc"][interval_name]) for interval_name in compared.interval_names),
        ]
        for row in compared.gaps[0].rows
    ]
    classes = len(study.catalog(1.0).in_split(split).table.column("label").unique())
    print(f"Loss iid - hard-ood, 5 shots, a = 1, the {classes} classes of {split}")
    table(["method", *compared.interval_names], rows)
    for interval_name, reason in compared.refused.items():
        print(f"no {interval_name} interval: {reason}")


def without_common_direction(study: Study) -> None:
    """Print Acc at a = 1 without the direction in which mixing moves the features of the training classes."""
    train, features = study.features(1.0, "train"), study.features(1.0)
    catalog = study.catalog(1.0).in_split("train")
    values = train.array[train.rows_of(catalog.table.column("item"))].astype(np.float64)
    clean = np.array(catalog.table.column("context").to_pylist()) == "clean"
    moved = values[~clean].mean(axis=0) - values[clean].mean(axis=0)
    moved /= np.linalg.norm(moved)
    remaining = (features.array - np.outer(features.array @ moved, moved)).astype(np.float32)
    projected = Features.from_array(features.table.column("item"), remaining)
    tasks = study.tasks(1.0, 5)
    rows = []
    for name in DEFAULT_METHODS:
        counts = [values_of(evaluate(tasks[sampler], projected, name), name)["acc"] for sampler in SETS]
        gaps = [interval_text(gap_interval(counts[0], count, paired=True)) for count in counts[1:]]
        rows.append([name, *(f"{count.mean():.1f}" for count in counts), *gaps])
    print("5 shots, a = 1, without the direction in which mixing moves the training classes")
    table(["method", *SETS, *(f"iid - {name}" for name in GAPS)], rows)


def several_contexts(study: Study) -> None:
    """Print Acc at a = 1 with supports in one context, different by class, and in several that classes may share."""
    for shot in SHOTS:
        rows, between = [], dict.fromkeys(SEVERAL, 0)
        for several in SEVERAL:
            tasks = study.tasks(1.0, shot, several=several)
            for name in DEFAULT_METHODS:
                acc = [values_of(evaluate(tasks[sampler], study.features(1.0), name), name)["acc"] for sampler in SETS]
                gaps = [gap_interval(acc[0], other, paired=True) for other in acc[1:]]
                clean_over_ood = gap_interval(acc[SETS.index("clean")], acc[SETS.index("ood")], paired=True)
                rows.append(
                    [str(several), name, *(f"{values.mean():.1f}" for values in acc), *map(interval_text, gaps)]
                )
                rows[-1].append(interval_text(clean_over_ood))
                between[several] += acc[0].mean() > acc[SETS.index("clean")].mean() > acc[SETS.index("ood")].mean()
        print(f"Supports in several contexts: 5 ways, {shot} shots, a = 1, {QUERY} queries, {TASKS} tasks")
        table(["contexts", "method", *SETS, *(f"iid - {name}" for name in GAPS), "clean - ood"], rows)
        for several, count in between.items():
            print(
                f"support_contexts={several}: clean between ood and iid for {count} of {len(DEFAULT_METHODS)} methods"
            )


def figures(comparison: Comparison, folder: Path) -> None:
    """Write all panels of the report, each as a file."""
    for panel in context_panels(comparison):
        write_svg(folder / f"{file_name(panel.name)}.svg", panel.figure, panel.name)


def shifted(study: Study) -> None:
    """Run the study of the default methods."""
    designs = [(dial, shot) for dial in DIALS for shot in (MORE_SHOTS if dial == 1 else SHOTS)]
    results = [result for dial, shot in designs for result in study.results(dial, shot, DEFAULT_METHODS)]
    comparison = compare(results)
    for shot in MORE_SHOTS:
        print(f"\n5 ways, {shot} shots, {QUERY} queries, {TASKS} tasks; percent, 95% sampler interval, paired")
        accuracies(comparison, shot)
    for shot in SHOTS:
        growth(study, shot)
    for split in ("test", "train"):
        other_intervals(study, split)
    without_common_direction(study)
    figures(comparison, study.work / "figures")
    at_one = [result for shot in MORE_SHOTS for result in study.results(1.0, shot, DEFAULT_METHODS)]
    tasks = [study.tasks(1.0, 5)[name] for name in GAPS]
    ComparedStudy.of([*at_one, *tasks, study.catalog(1.0)]).report(study.work / "report.html")


def uses_length(study: Study, name: str) -> bool:
    """Return whether any answer changes if every feature is multiplied by its own factor, between 1/2 and 2."""
    features, tasks = study.features(1.0), study.tasks(1.0, 5)["hard-ood"]
    few = TaskSet(tasks.table.slice(0, int(tasks.starts[RESCALED_TASKS])))
    factors = 2 ** np.random.default_rng(0).uniform(-1, 1, (len(features.array), 1))
    rescaled = Features.from_array(features.table.column("item"), (features.array * factors).astype(np.float32))
    before, after = (
        evaluate(few, vectors, name).table.column("missed").to_pylist() for vectors in (features, rescaled)
    )
    changed = sum(missed != missed_after for missed, missed_after in zip(before, after, strict=True))
    return bool(100 * changed > len(before))  # rounding may change ties


def heads(study: Study) -> None:
    """Compare every head on vectors by its loss from iid to hard-ood, ranked, and how far the two kinds differ."""
    names = [name for name in methods.names() if methods.get(name).needs == "vectors"]
    by_dial = {dial: study.results(dial, 5, names, HEADS_SETS) for dial in (0.0, 1.0)}
    compared = {dial: compare(results) for dial, results in by_dial.items()}
    ranked = sorted(compared[1.0].rows("gap"), key=lambda row: row.interval.mean)
    without = {row.classifier: row.interval for row in compared[0.0].rows("gap")}
    length = {name: uses_length(study, name) for name in names}
    rows = []
    for row in ranked:
        method = row.classifier.method
        iid, hard = (compared[1.0].number(row, "accuracy", "acc", tasks) for tasks in (row.reference, row.tasks))
        assert iid
        assert hard
        measured = [interval_text(interval) for interval in (iid, hard, row.interval, without[row.classifier])]
        of_chance = row.interval.mean / (iid.mean - CHANCE)
        kind = [make_method(method).family, "yes" if length[method] else "no"]
        rows.append([method, *kind, *measured, f"{100 * of_chance:.0f}%"])
    print(f"\n5 ways, 5 shots, {QUERY} queries, {TASKS} tasks, a = 1; percent, 95% sampler interval, paired")
    table(["head", "family", "uses length", "iid", "hard-ood", "loss", "loss at a = 0", "of iid - chance"], rows)
    pairs = compared[1.0].gaps[0].pairs["acc", "sampler"]
    against = {(pair.a.method, pair.b.method): pair for pair in pairs}
    inductive = [name for name in (row.classifier.method for row in ranked) if make_method(name).family == "inductive"]
    long = [name for name in inductive if length[name]]
    rows = []
    for name in (name for name in inductive if not length[name]):
        cells = []
        for other in long:
            pair = against.get((name, other)) or against[other, name]
            mean = pair.interval.mean if pair.a.method == name else -pair.interval.mean
            sign = "" if pair.conclusion == "0" else "*"
            cells.append(f"{mean:+.1f} ±{pair.interval.half_width:.1f}{sign}")
        rows.append([name, *cells])
    print("Inductive heads: the loss of a head that ignores length minus that of one that uses it; * conclusive (Holm)")
    table(["", *long], rows)
    figures(compared[1.0], study.work / "figures-heads")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sounds(), help="the folder ESC-50")
    parser.add_argument("--work", type=Path, default=Path("sound-context"), help="working folder for all files")
    parser.add_argument("--heads", action="store_true", help="compare all heads instead")
    parser.add_argument(
        "--support-contexts", action="store_true", help="compare supports in one and in several contexts instead"
    )
    options = parser.parse_args()
    if options.data is None or not options.data.is_dir():
        sys.exit("ESC-50 is missing: pass --data, or set SHOTPROOF_DATA to the folder that holds it")
    study = heads if options.heads else several_contexts if options.support_contexts else shifted
    study(Study(options.data, options.work))


if __name__ == "__main__":
    main()
