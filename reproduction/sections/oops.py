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
    """One data set at one number of shots: what was kept of closed tasks, of open ones, and of open ones at Q*."""

    data: str
    shot: int
    closed: list[Evaluated]
    opened: list[Evaluated]
    at_best: list[Evaluated]

    @cached_property
    def comparison(self) -> Comparison:
        """All pairs, as the paper compares them: none is corrected for their number."""
        return compare([one.results for one in (*self.closed, *self.opened)], intervals=["sampler", "depletion"])

    @cached_property
    def triples(self) -> Triples:
        """The conclusions on all pairs."""
        return next(group.triples["acc"] for group in self.comparison.groups if "acc" in group.triples)

    @cached_property
    def conclusive_at_best(self) -> int:
        """How many pairs are conclusive, task by task, on open tasks of the paper's Q*."""
        pairs = [Estimate.over_tasks(a.accuracy - b.accuracy) for a, b in combinations(self.at_best, 2)]
        return sum(conclude([pair], correct=False) != ["0"] for pair in pairs)

    @property
    def best_query(self) -> float:
        """Our own Q*, of the classifier in the middle."""
        variances = [Pilot.of(one.results).moments(one.results.methods[0]).variance(way=5) for one in self.closed]
        return statistics.median(variance.best_query(self.shot) for variance in variances)

    @property
    def correlations(self) -> list[float]:
        """Pearson's r of the accuracies on closed tasks, of every two classifiers."""
        return [correlation(a.accuracy, b.accuracy) for a, b in combinations(self.closed, 2)]


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Pearson's r."""
    return float(np.corrcoef(first, second)[0, 1])


@cache
def designs() -> list[Design]:
    """All that were run."""
    found = []
    for data in DATA:
        kept = read_kept(data).evaluated
        for shot, query in BEST_QUERY.items():
            names = [f"random-5way-{shot}shot", f"depletion-5way-{shot}shot", f"depletion-5way-{shot}shot-{query}query"]
            sides = [named(kept, name) for name in names]
            if all(sides):
                found.append(Design(data, shot, *sides))
    return found


def named(kept: Sequence[Evaluated], tasks: str) -> list[Evaluated]:
    """What was evaluated on a task set, whose name may end in its number of tasks."""
    return [one for one in kept if re.fullmatch(rf"{tasks}(-\d+tasks)?", one.tasks)]


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    found = designs()
    return {"oops": conclusion_table(found), "oops-data": data_table(found)}


def conclusion_table(found: list[Design]) -> str:
    """Figure 6: of all pairs, how many are conclusive under each comparison; what becomes of the closed ones."""
    paper = read_figures("oops")
    pairs = paper["all pairs", None, "pairs"].value
    shares = (*KINDS.values(), AT_BEST)
    published = {name: f"{paper['all pairs', None, name].value:.0f} of {pairs:.0f}" for name in shares}
    published |= {name: f"{paper['all pairs', None, name].value:.0f}" for name in FATES}
    published[R] = number(paper["two methods", None, R].value, 3)
    ours = dict.fromkeys(published, NOT_RUN)
    if found:
        triples = [one.triples for one in found]
        fates = Fates.of(triples)
        counts = {title: sum(triple.conclusive[kind] for triple in triples) for kind, title in KINDS.items()}
        counts[AT_BEST] = sum(one.conclusive_at_best for one in found)
        ours = {name: f"{count} of {fates.pairs}" for name, count in counts.items()}
        ours |= dict(zip(FATES, map(str, (fates.regained, fates.unconfirmed, fates.inverted)), strict=True))
        all_r = [r for one in found for r in one.correlations]
        ours[R] = f"{number(min(all_r), 3)} to {number(max(all_r), 3)}, median {number(statistics.median(all_r), 3)}"
    return table(
        ["comparisons of two methods", "paper", "ours"], [[name, published[name], ours[name]] for name in published]
    )


def data_table(found: list[Design]) -> str:
    """The same by data set and number of shots, with our own Q*."""
    rows = []
    for data, title in DATA.items():
        of_data = [one for one in found if one.data == data]
        rows += [] if of_data else [[title, NOT_RUN, *[""] * 8]]
        for one in of_data:
            triples, fates = one.triples, Fates.of([one.triples])
            tasks = [len(side[0].accuracy) for side in (one.closed, one.opened, one.at_best)]
            rows.append(
                [
                    title,
                    str(one.shot),
                    ", ".join(f"{count:,}" for count in tasks),
                    str(fates.pairs),
                    *(str(triples.conclusive[kind]) for kind in KINDS),
                    str(one.conclusive_at_best),
                    str(fates.inverted),
                    f"{number(one.best_query, 1)} (paper: {BEST_QUERY[one.shot]})",
                ]
            )
    header = ["data and encoders", "shots", "tasks: closed, open, at Q*", "pairs"]
    return table(
        [*header, "closed direct", "open direct", "open paired", "at the paper's Q*", "inverted", "our Q*"], rows
    )
