"""Ten methods on several axes at once: is robustness one thing?"""

from __future__ import annotations

from itertools import combinations

from reproduction.kept import read_kept
from reproduction.markdown import NOT_RUN, estimate, number, table
from reproduction.sections.fewstab import LEAST, METHODS
from shotproof.evaluation.metrics import rank_correlation
from shotproof.stats.intervals import Estimate

AXES = {"fewstab": "attributes", "hardest": "hardest supports", "meta-dataset": "unbalanced"}


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    return {"axes": axis_table(), "axes-ranks": rank_table()}


def axis_table() -> str:
    """What each method loses in Acc from random tasks, on each axis."""
    rows = []
    for method in METHODS:
        found = [_lost(method.model_at(5), method.head, axis) for axis in AXES]
        rows.append([method.name, *(NOT_RUN if one is None else estimate(one) for one in found)])
    return table(["points of Acc lost at 5 shots", *AXES.values()], rows)


def rank_table() -> str:
    """Spearman's correlation of what the methods lose, for each two axes."""
    rows = []
    for first, second in combinations(AXES, 2):
        pairs = [
            (one.mean, other.mean)
            for method in METHODS
            if (one := _lost(method.model_at(5), method.head, first)) is not None
            and (other := _lost(method.model_at(5), method.head, second)) is not None
        ]
        told = f"{NOT_RUN}: {len(pairs)} of {len(METHODS)} methods"
        if len(pairs) >= LEAST:
            told = f"{number(rank_correlation(*zip(*pairs, strict=True)))} over {len(pairs)} methods"
        rows.append([f"{AXES[first]} and {AXES[second]}", told])
    return table(["axes", "Spearman of what is lost"], rows)


def _lost(model: str, head: str, axis: str) -> Estimate | None:
    kept = read_kept("axes-birds")
    tasks = next((one.tasks for one in kept.evaluated if one.tasks.startswith(axis)), "")
    random, other = kept.find("random-5way-5shot", model, head), kept.find(tasks, model, head)
    return None if random is None or other is None else random.acc.minus(other.acc)
