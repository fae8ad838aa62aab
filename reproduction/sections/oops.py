"""Oops, I Sampled it Again, on all data at hand: how many comparisons are conclusive under each way to compare."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np

from reproduction.kept import Evaluated, read_kept
from reproduction.markdown import NOT_RUN, number, table
from reproduction.papers import read_figures
from shotproof.analysis.compare import compare
from shotproof.comparison.comparison import Comparison
from shotproof.core.arrays import FloatArray
from shotproof.planning.pilot import Pilot
from shotproof.stats.intervals import Estimate
from shotproof.stats.pairs import conclude
from shotproof.stats.triples import CLOSED, OPEN, PAIRED, Fates, Triples

DATA = {
    "oops-birds": "birds: lite0, pixels",
    "oops-birds-networks": "birds: RFS, ProtoNet, the network tuned",
    "oops-sounds": "ESC-50: logmel, its means alone",
    "oops-shapes": "shapes: lite0, pixels",
    "oops-gaussian": "normal classes: 8 and 4 dimensions",
}
BEST_QUERY = {1: 1, 5: 5, 10: 7}  # the paper's Q* by the number of shots
KINDS = {CLOSED: "conclusive, closed direct", OPEN: "conclusive, open direct", PAIRED: "conclusive, open paired"}
AT_BEST = "conclusive, open paired at Q*"
FATES = ("inconclusive open, conclusive paired", "not confirmed", "inverted")
R = "Pearson's r of task accuracies"


@dataclass(frozen=True)
class Design:
    """Data set at one number of shots: the kept results on closed tasks, on open ones, and on open ones at Q*."""

    data: str
    shot: int
    closed: list[Evaluated]
    opened: list[Evaluated]
    at_best: list[Evaluated]

    @cached_property
    def comparison(self) -> Comparison:
        """Compare all pairs as the paper does, without correction for their number."""
        return compare([result.results for result in (*self.closed, *self.opened)], intervals=["sampler", "depletion"])

    @cached_property
    def triples(self) -> Triples:
        """Return the conclusions on all pairs."""
        return next(group.triples["acc"] for group in self.comparison.groups if "acc" in group.triples)

    @cached_property
    def conclusive_at_best(self) -> int:
        """Count the pairs that are conclusive, task by task, on open tasks of the paper's Q*."""
        pairs = [Estimate.over_tasks(a.accuracy - b.accuracy) for a, b in combinations(self.at_best, 2)]
        return sum(conclude([pair], correct=False) != ["0"] for pair in pairs)

    @property
    def best_query(self) -> float:
        """Return our own Q*, of the median classifier."""
        variances = [
            Pilot.of(result.results).moments(result.results.methods[0]).variance(way=5) for result in self.closed
        ]
        return statistics.median(variance.best_query(self.shot) for variance in variances)

    @property
    def correlations(self) -> list[float]:
        """Compute Pearson's r of the accuracies on closed tasks for every pair of classifiers."""
        return [correlation(a.accuracy, b.accuracy) for a, b in combinations(self.closed, 2)]


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Compute Pearson's r."""
    return float(np.corrcoef(first, second)[0, 1])


@cache
def designs() -> list[Design]:
    """List the designs that have been run."""
    complete = []
    for data in DATA:
        results = read_kept(data).evaluated
        for shot, query in BEST_QUERY.items():
            names = [f"random-5way-{shot}shot", f"depletion-5way-{shot}shot", f"depletion-5way-{shot}shot-{query}query"]
            sides = [select_tasks(results, name) for name in names]
            if all(sides):
                complete.append(Design(data, shot, *sides))
    return complete


def select_tasks(results: Sequence[Evaluated], tasks: str) -> list[Evaluated]:
    """Select the results on a task set, whose name may end in its number of tasks."""
    return [result for result in results if re.fullmatch(rf"{tasks}(-\d+tasks)?", result.tasks)]


def sections() -> dict[str, str]:
    """Build each derived section, by name."""
    complete = designs()
    return {"oops": conclusion_table(complete), "oops-data": data_table(complete)}


def conclusion_table(complete: list[Design]) -> str:
    """Write Figure 6: how many pairs are conclusive under each comparison, and what becomes of the closed ones."""
    paper = read_figures("oops")
    pairs = paper["all pairs", None, "pairs"].value
    shares = (*KINDS.values(), AT_BEST)
    published = {name: f"{paper['all pairs', None, name].value:.0f} of {pairs:.0f}" for name in shares}
    published |= {name: f"{paper['all pairs', None, name].value:.0f}" for name in FATES}
    published[R] = number(paper["two methods", None, R].value, 3)
    ours = dict.fromkeys(published, NOT_RUN)
    if complete:
        triples = [design.triples for design in complete]
        fates = Fates.of(triples)
        counts = {title: sum(triple.conclusive[kind] for triple in triples) for kind, title in KINDS.items()}
        counts[AT_BEST] = sum(design.conclusive_at_best for design in complete)
        ours = {name: f"{count} of {fates.pairs}" for name, count in counts.items()}
        ours |= dict(zip(FATES, map(str, (fates.regained, fates.unconfirmed, fates.inverted)), strict=True))
        all_r = [r for design in complete for r in design.correlations]
        ours[R] = f"{number(min(all_r), 3)} to {number(max(all_r), 3)}, median {number(statistics.median(all_r), 3)}"
    return table(
        ["comparisons of two methods", "paper", "ours"], [[name, published[name], ours[name]] for name in published]
    )


def data_table(complete: list[Design]) -> str:
    """Write the same by data set and number of shots, with our own Q*."""
    rows = []
    for data, title in DATA.items():
        of_dataset = [design for design in complete if design.data == data]
        rows += [] if of_dataset else [[title, NOT_RUN, *[""] * 8]]
        for design in of_dataset:
            triples, fates = design.triples, Fates.of([design.triples])
            tasks = [len(side[0].accuracy) for side in (design.closed, design.opened, design.at_best)]
            rows.append(
                [
                    title,
                    str(design.shot),
                    ", ".join(f"{count:,}" for count in tasks),
                    str(fates.pairs),
                    *(str(triples.conclusive[kind]) for kind in KINDS),
                    str(design.conclusive_at_best),
                    str(fates.inverted),
                    f"{number(design.best_query, 1)} (paper: {BEST_QUERY[design.shot]})",
                ]
            )
    header = ["data and encoders", "shots", "tasks: closed, open, at Q*", "pairs"]
    return table(
        [*header, "closed direct", "open direct", "open paired", "at the paper's Q*", "inverted", "our Q*"], rows
    )
