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
    """One of the ten: its name in the paper, its model, and the method that evaluates it.

    by_shot: whether there is a model for each number of shots
    published: the method as the published code has it, where that measures something else
    """

    name: str
    model: str
    head: str = OWN_HEAD
    by_shot: bool = True
    published: str | None = None

    def model_at(self, shot: int) -> str:
        """The model that was trained at so many shots."""
        return f"{self.model}-{shot}" if self.by_shot else self.model

    def found(self, kept: Table, tasks: str, trained: int) -> Evaluated | None:
        """What it gave on a task set; None where that was not run yet."""
        return kept.find(tasks, self.model_at(trained), self.head)


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
    """Each derived section by its name."""
    kept, paper = read_kept("fewstab-cub"), read_figures("fewstab-cub")
    return {
        "fewstab-1-shot": main_table(kept, paper, 1),
        "fewstab-5-shot": main_table(kept, paper, 5),
        "fewstab-published": published_table(kept, paper),
        "fewstab-ranks": rank_table(kept, paper),
        "fewstab-regression": regression_table(kept, paper),
        "fewstab-ablations": ablation_table(kept, read_kept("fewstab-cub-ablations")),
        "fewstab-detectors": detector_table(read_kept("fewstab-cub-detectors")),
        "fewstab-training-shots": training_shot_table(kept, read_kept("fewstab-cub-training-shots")),
    }


def main_table(kept: Table, paper: Paper, shot: int) -> str:
    """Table 3 and S7 at one number of shots: the paper's figure, ours, the difference, whether the aim is met."""
    header = ["method", "Acc, paper", "ours", "difference", "within 2", "wAcc-R, paper", "ours", "difference"]
    header += ["within 3", "wAcc-A, paper", "ours", "gap, paper", "ours"]
    rows = []
    for method in METHODS:
        figures = [paper[method.name, shot, quantity] for quantity in ("Acc", "wAcc-R", "wAcc-A", "gap")]
        random = method.found(kept, f"random-5way-{shot}shot", shot)
        biased = method.found(kept, f"fewstab-5way-{shot}shot", shot)
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
    """The paper's figure, ours, the difference, and whether it is within the aim where the figure is sound."""
    if ours is None:
        return [figure.text, NOT_RUN, "", ""]
    difference = ours.mean - figure.value
    met = "yes" if abs(difference) <= aim else "no"
    judged = "artefact" if figure.sound == ARTEFACT else met
    return [figure.text, estimate(ours), number(difference, sign=True), judged]


def published_table(kept: Table, paper: Paper) -> str:
    """ANIL and BOIL as the published code measures them."""
    rows = []
    for method in METHODS:
        for shot in SHOTS if method.published else ():
            found = [
                kept.find(f"{tasks}-5way-{shot}shot", method.model_at(shot), method.published or "")
                for tasks in ("random", "fewstab")
            ]
            figures = [paper[method.name, shot, quantity] for quantity in ("wAcc-R", "wAcc-A")]
            cells = [method.name, str(shot)]
            for figure, one in zip(figures, found, strict=True):
                if one is None:
                    cells += [figure.text, NOT_RUN, ""]
                else:
                    cells += [figure.text, estimate(one.wacc), number(one.wacc.mean - figure.value, sign=True)]
            rows.append(cells)
    header = ["method", "shots", "wAcc-R, paper", "ours", "difference", "wAcc-A, paper", "ours", "difference"]
    return table(header, rows)


def rank_table(kept: Table, paper: Paper) -> str:
    """Table 4 and Figure 4: how far wAcc-R tells the order by wAcc-A, and the mean gap."""
    rows = []
    for shot in SHOTS:
        names = [method.name for method in METHODS]
        published = [[paper[name, shot, quantity].value for name in names] for quantity in ("wAcc-R", "wAcc-A")]
        found = both_sides(kept, shot)
        row = [str(shot), number(rank_correlation(*published)), number(_mean_gap(*published))]
        if len(found) < LEAST:
            rows.append([*row, f"{NOT_RUN}: {len(found)} of {len(METHODS)} methods", ""])
            continue
        ours = [(random.wacc.mean, biased.wacc.mean) for random, biased in found.values()]
        rows.append([*row, told_rank(ours), number(_mean_gap(*zip(*ours, strict=True)))])
    header = [
        "shots",
        "Spearman of wAcc-R and wAcc-A, paper's table",
        "mean gap, paper",
        "Spearman, ours",
        "mean gap, ours",
    ]
    return table(header, rows)


def told_rank(pairs: Sequence[tuple[float, float]]) -> str:
    """Spearman's correlation with its 95% interval (Bonett and Wright), as if methods were drawn at random."""
    found, count = rank_correlation(*zip(*pairs, strict=True)), len(pairs)
    if count <= 3 or abs(found) > 1 - 1e-9:  # Fisher's z has no spread
        return f"{number(found)} over {count} methods"
    half = 1.959964 * math.sqrt((1 + found**2 / 2) / (count - 3))
    z = math.atanh(found)
    return f"{bounds(found, math.tanh(z - half), math.tanh(z + half))} over {count} methods"


def regression_table(kept: Table, paper: Paper) -> str:
    """Figure 5 at 5 shots: a line through Acc and wAcc-A of the methods."""
    mini = read_figures("fewstab-mini")
    names = [method.name for method in METHODS]
    sound = [name for name in names if paper[name, 5, "wAcc-A"].sound != ARTEFACT]
    lines = {}
    for title, figures in (("the paper's miniImageNet", mini), ("the paper's CUB", paper)):
        for which, chosen in (("ten methods", names), ("without ANIL and BOIL", sound)):
            points = [[figures[name, 5, quantity].value for name in chosen] for quantity in ("Acc", "wAcc-A")]
            lines[f"{title}, {which}"] = line_through(*points)
    found = both_sides(kept, 5)
    if len(found) < LEAST:
        lines["ours on CUB"] = [f"{NOT_RUN}: {len(found)} of {len(METHODS)} methods", "", ""]
    else:
        points = [[random.acc.mean for random, _ in found.values()], [biased.wacc.mean for _, biased in found.values()]]
        lines[f"ours on CUB, {len(found)} methods"] = line_through(*points)
    header = ["Acc and wAcc-A at 5 shots", "slope", "intercept", "r"]
    return table(header, [[title, *cells] for title, cells in lines.items()])


def line_through(x: Sequence[float], y: Sequence[float]) -> list[str]:
    """Slope, intercept and Pearson's r, each with its 95% interval: over methods, as if they were drawn at random."""
    fit = stats.linregress(x, y)
    bound = float(stats.t.ppf(0.975, len(x) - 2))
    told = [
        bounds(value, value - bound * error, value + bound * error)
        for value, error in ((fit.slope, fit.stderr), (fit.intercept, fit.intercept_stderr))
    ]
    if len(x) <= 3:  # Fisher's z has no spread
        return [*told, number(fit.rvalue)]
    half = 1.959964 / math.sqrt(len(x) - 3)
    z = math.atanh(float(np.clip(fit.rvalue, -1 + 1e-12, 1 - 1e-12)))
    return [*told, bounds(fit.rvalue, math.tanh(z - half), math.tanh(z + half))]


def ablation_table(kept: Table, ablations: Table) -> str:
    """Tables S5 and S6: wAcc-R minus wAcc-A under each way to choose supports and queries, and the mean."""
    paper, main = read_figures("fewstab-cub-ablations"), read_figures("fewstab-cub")
    rows: list[list[str]] = []
    complete = []  # the drops of methods that were run under every way
    for method in METHODS:
        random = method.found(kept, "random-5way-5shot", 5)
        cells, drops = [method.name], []
        for name, sampler in ABLATIONS.items():
            published = main[method.name, 5, "wAcc-R"].value - paper[method.name, 5, f"wAcc-A, {name}"].value
            biased = method.found(kept if name == "SC3" else ablations, f"{file_name(sampler)}-5way-5shot", 5)
            drop = random.wacc.minus(biased.wacc) if random and biased else None
            cells += [number(published), estimate(drop) if drop else NOT_RUN]
            drops += [drop.mean] if drop else []
        rows.append(cells)
        complete += [drops] if len(drops) == len(ABLATIONS) else []
    of = f" ({len(complete)} of {len(METHODS)})"
    means = [f"{number(float(np.mean(one)))}{of}" for one in zip(*complete, strict=True)] or [NOT_RUN] * len(ABLATIONS)
    published_means = [number(paper["mean of ten", 5, f"drop, {name}"].value) for name in ABLATIONS]
    rows.append(["mean", *(cell for pair in zip(published_means, means, strict=True) for cell in pair)])
    header = ["method", *(cell for name in ABLATIONS for cell in (f"{name}, paper", "ours"))]
    return table(header, rows)


def detector_table(kept: Table) -> str:
    """Tables 6 and S11: does the order of the methods depend on the detector?"""
    paper = read_figures("fewstab-detectors")
    rows = []
    for shot in SHOTS:
        found = [
            [
                method.found(kept, f"{file_name(ABLATIONS['SC2'])}-{detector}-5way-{shot}shot", shot)
                for detector in ("photometric", "parts")
            ]
            for method in METHODS
        ]
        both = [(first.wacc.mean, second.wacc.mean) for first, second in found if first and second]
        published = paper["all ten", shot, "Spearman of wAcc-A by two detectors, CUB"].text
        told = f"{NOT_RUN}: {len(both)} of {len(METHODS)} methods"
        rows.append([str(shot), published, told if len(both) < LEAST else told_rank(both)])
    return table(["shots", "ViT-GPT2 and BLIP, paper", "photometric words and visible parts, ours"], rows)


def training_shot_table(kept: Table, trained_at_one: Table) -> str:
    """Figure 6 at 5 test shots: wAcc-A of models trained at 5 shots minus that of models trained at 1, task by task."""
    rows = []
    for method in METHODS:
        if not method.by_shot:
            continue
        five = method.found(kept, "fewstab-5way-5shot", 5)
        one = method.found(trained_at_one, "fewstab-5way-5shot", 1)
        if five is None or one is None:
            rows.append([method.name, NOT_RUN, "", ""])
            continue
        difference = Estimate.over_tasks(five.worst - one.worst)
        rows.append([method.name, estimate(one.wacc), estimate(five.wacc), estimate(difference)])
    return table(["method", "wAcc-A, trained at 1 shot", "trained at 5 shots", "difference"], rows)


def both_sides(kept: Table, shot: int) -> dict[str, tuple[Evaluated, Evaluated]]:
    """The methods with results on random and on FewSTAB tasks."""
    found = {}
    for method in METHODS:
        random, biased = (method.found(kept, f"{one}-5way-{shot}shot", shot) for one in ("random", "fewstab"))
        if random is not None and biased is not None:
            found[method.name] = (random, biased)
    return found


def _mean_gap(random: Sequence[float], biased: Sequence[float]) -> float:
    return float(np.mean(np.subtract(random, biased)))
