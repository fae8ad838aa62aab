"""FewSTAB on CUB: Tables 3, 4, 6, S5, S6, S7 and S11, Figures 4, 5 and 6."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from reproduction.kept import OWN_HEAD, Evaluated, Table, read_kept
from reproduction.markdown import NOT_RUN, bounds, estimate, number, table
from reproduction.papers import ARTEFACT, Figure, read_figures
from shotproof.pipeline.steps.steps import file_name
from shotproof.results.metrics import rank_correlation
from shotproof.stats.intervals import Estimate

SHOTS = (1, 5)
ACC_AIM, WORST_AIM = 2.0, 3.0
LEAST = 4  # methods that a correlation is computed over


@dataclass(frozen=True)
class Method:
    """Method of the paper: its name, its model, and the method that evaluates it.

    by_shot: whether there is a model for each number of shots
    published: the method as the published code has it, if that measures something else
    """

    name: str
    model: str
    head: str = OWN_HEAD
    by_shot: bool = True
    published: str | None = None

    def model_at(self, shot: int) -> str:
        """Return the name of the model trained at this number of shots."""
        return f"{self.model}-{shot}" if self.by_shot else self.model

    def results_on(self, results: Table, tasks: str, trained: int) -> Evaluated | None:
        """Return the results of this method on a task set; None if they have not been run yet."""
        return results.find(tasks, self.model_at(trained), self.head)


METHODS = (
    Method("ANIL", "anil", published=file_name("anil(protocol='published')")),
    Method("LEO", "leo"),
    Method("BOIL", "boil", "boil", published=file_name("boil(protocol='published')")),
    Method("ProtoNet", "protonet"),
    Method("DN4", "dn4"),
    Method("R2D2", "r2d2"),
    Method("CAN", "can"),
    Method("RENet", "renet"),
    Method("Baseline++", "baseline++", file_name("baseline++"), by_shot=False),
    Method("RFS", "rfs", "logistic", by_shot=False),
)
ABLATIONS = {
    "SC1": "fewstab(support='random')",
    "SC2": "fewstab(support='attribute')",
    "SC3": "fewstab",  # of the main table
    "QC1": "fewstab(query_selection='intra')",
    "QC2": "fewstab(query_selection='inter')",
}
Paper = Mapping[tuple[str, int | None, str], Figure]


def sections() -> dict[str, str]:
    """Build each derived section, by name."""
    results, paper = read_kept("fewstab-cub"), read_figures("fewstab-cub")
    return {
        "fewstab-1-shot": main_table(results, paper, 1),
        "fewstab-5-shot": main_table(results, paper, 5),
        "fewstab-published": published_table(results, paper),
        "fewstab-ranks": rank_table(results, paper),
        "fewstab-regression": regression_table(results, paper),
        "fewstab-ablations": ablation_table(results, read_kept("fewstab-cub-ablations")),
        "fewstab-detectors": detector_table(read_kept("fewstab-cub-detectors")),
        "fewstab-training-shots": training_shot_table(results, read_kept("fewstab-cub-training-shots")),
    }


def main_table(results: Table, paper: Paper, shot: int) -> str:
    """Write Tables 3 and S7 at one number of shots: the paper's number, ours, and whether the aim is met."""
    header = ["method", "Acc, paper", "ours", "difference", "within 2", "wAcc-R, paper", "ours", "difference"]
    header += ["within 3", "wAcc-A, paper", "ours", "gap, paper", "ours"]
    rows = []
    for method in METHODS:
        figures = [paper[method.name, shot, quantity] for quantity in ("Acc", "wAcc-R", "wAcc-A", "gap")]
        random = method.results_on(results, f"random-5way-{shot}shot", shot)
        biased = method.results_on(results, f"fewstab-5way-{shot}shot", shot)
        rows.append(
            [
                method.name,
                *compared(figures[0], random and random.acc, ACC_AIM),
                *compared(figures[1], random and random.wacc, WORST_AIM),
                *(figures[2].text, estimate(biased.wacc) if biased else NOT_RUN),
                *(figures[3].text, estimate(random.wacc.minus(biased.wacc)) if random and biased else NOT_RUN),
            ]
        )
    return table(header, rows)


def compared(figure: Figure, ours: Estimate | None, aim: float) -> list[str]:
    """Compare the paper's number with ours: the difference, and whether it is within the aim if the number is sound."""
    if ours is None:
        return [figure.text, NOT_RUN, "", ""]
    difference = ours.mean - figure.value
    met = "yes" if abs(difference) <= aim else "no"
    judged = "artefact" if figure.sound == ARTEFACT else met
    return [figure.text, estimate(ours), number(difference, sign=True), judged]


def published_table(results: Table, paper: Paper) -> str:
    """Write the table of ANIL and BOIL as the published code measures them."""
    rows = []
    for method in METHODS:
        for shot in SHOTS if method.published else ():
            sides = [
                results.find(f"{tasks}-5way-{shot}shot", method.model_at(shot), method.published or "")
                for tasks in ("random", "fewstab")
            ]
            figures = [paper[method.name, shot, quantity] for quantity in ("wAcc-R", "wAcc-A")]
            cells = [method.name, str(shot)]
            for figure, side in zip(figures, sides, strict=True):
                if side is None:
                    cells += [figure.text, NOT_RUN, ""]
                else:
                    cells += [figure.text, estimate(side.wacc), number(side.wacc.mean - figure.value, sign=True)]
            rows.append(cells)
    header = ["method", "shots", "wAcc-R, paper", "ours", "difference", "wAcc-A, paper", "ours", "difference"]
    return table(header, rows)


def rank_table(results: Table, paper: Paper) -> str:
    """Write Table 4 and Figure 4: how well wAcc-R predicts the order by wAcc-A, and the mean gap."""
    rows = []
    for shot in SHOTS:
        names = [method.name for method in METHODS]
        published = [[paper[name, shot, quantity].value for name in names] for quantity in ("wAcc-R", "wAcc-A")]
        sides = both_sides(results, shot)
        row = [str(shot), number(rank_correlation(*published)), number(_mean_gap(*published))]
        if len(sides) < LEAST:
            rows.append([*row, f"{NOT_RUN}: {len(sides)} of {len(METHODS)} methods", ""])
            continue
        ours = [(random.wacc.mean, biased.wacc.mean) for random, biased in sides.values()]
        rows.append([*row, rank_text(ours), number(_mean_gap(*zip(*ours, strict=True)))])
    header = [
        "shots",
        "Spearman of wAcc-R and wAcc-A, paper's table",
        "mean gap, paper",
        "Spearman, ours",
        "mean gap, ours",
    ]
    return table(header, rows)


def rank_text(pairs: Sequence[tuple[float, float]]) -> str:
    """Write Spearman's correlation with its 95% interval (Bonett and Wright), as if methods were drawn at random."""
    correlation, count = rank_correlation(*zip(*pairs, strict=True)), len(pairs)
    if count <= 3 or abs(correlation) > 1 - 1e-9:  # Fisher's z has no spread
        return f"{number(correlation)} over {count} methods"
    half = 1.959964 * math.sqrt((1 + correlation**2 / 2) / (count - 3))
    z = math.atanh(correlation)
    return f"{bounds(correlation, math.tanh(z - half), math.tanh(z + half))} over {count} methods"


def regression_table(results: Table, paper: Paper) -> str:
    """Write the regression of Figure 5 at 5 shots: a line through Acc and wAcc-A of the methods."""
    mini = read_figures("fewstab-mini")
    names = [method.name for method in METHODS]
    sound = [name for name in names if paper[name, 5, "wAcc-A"].sound != ARTEFACT]
    lines = {}
    for title, figures in (("the paper's miniImageNet", mini), ("the paper's CUB", paper)):
        for subset, selected in (("ten methods", names), ("without ANIL and BOIL", sound)):
            points = [[figures[name, 5, quantity].value for name in selected] for quantity in ("Acc", "wAcc-A")]
            lines[f"{title}, {subset}"] = line_through(*points)
    sides = both_sides(results, 5)
    if len(sides) < LEAST:
        lines["ours on CUB"] = [f"{NOT_RUN}: {len(sides)} of {len(METHODS)} methods", "", ""]
    else:
        points = [[random.acc.mean for random, _ in sides.values()], [biased.wacc.mean for _, biased in sides.values()]]
        lines[f"ours on CUB, {len(sides)} methods"] = line_through(*points)
    header = ["Acc and wAcc-A at 5 shots", "slope", "intercept", "r"]
    return table(header, [[title, *cells] for title, cells in lines.items()])


def line_through(x: Sequence[float], y: Sequence[float]) -> list[str]:
    """Fit a line: slope, intercept and Pearson's r with 95% intervals, as if methods were drawn at random."""
    fit = stats.linregress(x, y)
    bound = float(stats.t.ppf(0.975, len(x) - 2))
    cells = [
        bounds(value, value - bound * error, value + bound * error)
        for value, error in ((fit.slope, fit.stderr), (fit.intercept, fit.intercept_stderr))
    ]
    if len(x) <= 3:  # Fisher's z has no spread
        return [*cells, number(fit.rvalue)]
    half = 1.959964 / math.sqrt(len(x) - 3)
    z = math.atanh(float(np.clip(fit.rvalue, -1 + 1e-12, 1 - 1e-12)))
    return [*cells, bounds(fit.rvalue, math.tanh(z - half), math.tanh(z + half))]


def ablation_table(results: Table, ablations: Table) -> str:
    """Write Tables S5 and S6: wAcc-R minus wAcc-A under each way to choose supports and queries, and the mean."""
    paper, main = read_figures("fewstab-cub-ablations"), read_figures("fewstab-cub")
    rows: list[list[str]] = []
    complete = []  # the drops of methods that were run under every way
    for method in METHODS:
        random = method.results_on(results, "random-5way-5shot", 5)
        cells, drops = [method.name], []
        for name, sampler in ABLATIONS.items():
            published = main[method.name, 5, "wAcc-R"].value - paper[method.name, 5, f"wAcc-A, {name}"].value
            biased = method.results_on(results if name == "SC3" else ablations, f"{file_name(sampler)}-5way-5shot", 5)
            drop = random.wacc.minus(biased.wacc) if random and biased else None
            cells += [number(published), estimate(drop) if drop else NOT_RUN]
            drops += [drop.mean] if drop else []
        rows.append(cells)
        complete += [drops] if len(drops) == len(ABLATIONS) else []
    share = f" ({len(complete)} of {len(METHODS)})"
    means = [f"{number(float(np.mean(drops_of_one)))}{share}" for drops_of_one in zip(*complete, strict=True)] or [
        NOT_RUN
    ] * len(ABLATIONS)
    published_means = [number(paper["mean of ten", 5, f"drop, {name}"].value) for name in ABLATIONS]
    rows.append(["mean", *(cell for pair in zip(published_means, means, strict=True) for cell in pair)])
    header = ["method", *(cell for name in ABLATIONS for cell in (f"{name}, paper", "ours"))]
    return table(header, rows)


def detector_table(results: Table) -> str:
    """Write Tables 6 and S11: does the order of the methods depend on the detector?"""
    paper = read_figures("fewstab-detectors")
    rows = []
    for shot in SHOTS:
        pairs = [
            [
                method.results_on(results, f"{file_name(ABLATIONS['SC2'])}-{detector}-5way-{shot}shot", shot)
                for detector in ("photometric", "parts")
            ]
            for method in METHODS
        ]
        means = [(first.wacc.mean, second.wacc.mean) for first, second in pairs if first and second]
        published = paper["all ten", shot, "Spearman of wAcc-A by two detectors, CUB"].text
        missing = f"{NOT_RUN}: {len(means)} of {len(METHODS)} methods"
        rows.append([str(shot), published, missing if len(means) < LEAST else rank_text(means)])
    return table(["shots", "ViT-GPT2 and BLIP, paper", "photometric words and visible parts, ours"], rows)


def training_shot_table(results: Table, trained_at_one: Table) -> str:
    """Write Figure 6 at 5 test shots: wAcc-A of models trained at 5 shots minus at 1 shot, by task."""
    rows = []
    for method in METHODS:
        if not method.by_shot:
            continue
        at_five = method.results_on(results, "fewstab-5way-5shot", 5)
        at_one = method.results_on(trained_at_one, "fewstab-5way-5shot", 1)
        if at_five is None or at_one is None:
            rows.append([method.name, NOT_RUN, "", ""])
            continue
        difference = Estimate.over_tasks(at_five.worst - at_one.worst)
        rows.append([method.name, estimate(at_one.wacc), estimate(at_five.wacc), estimate(difference)])
    return table(["method", "wAcc-A, trained at 1 shot", "trained at 5 shots", "difference"], rows)


def both_sides(results: Table, shot: int) -> dict[str, tuple[Evaluated, Evaluated]]:
    """Collect the methods that have results on both random and FewSTAB tasks."""
    sides = {}
    for method in METHODS:
        random, biased = (method.results_on(results, f"{name}-5way-{shot}shot", shot) for name in ("random", "fewstab"))
        if random is not None and biased is not None:
            sides[method.name] = (random, biased)
    return sides


def _mean_gap(random: Sequence[float], biased: Sequence[float]) -> float:
    return float(np.mean(np.subtract(random, biased)))
