"""Methods on several axes at once, on birds and on sounds: is robustness one thing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from reproduction.kept import Table, read_kept
from reproduction.markdown import NOT_RUN, estimate, table
from reproduction.sections import sound_cells
from reproduction.sections.fewstab import LEAST, METHODS, told_rank
from shotproof.stats.intervals import Estimate

BIRD_AXES = {"fewstab": "attributes", "hardest": "hardest supports", "meta-dataset": "unbalanced"}
CONTEXT_AXES = {"ood": "other contexts", "hard-ood": "misleading contexts"}
SOUND_AXES = (*CONTEXT_AXES.values(), BIRD_AXES["hardest"], BIRD_AXES["meta-dataset"])
SOUND_METHODS = {**sound_cells.METHODS, **sound_cells.CONTRASTIVE}
STRESSED = {f"ProtoNet on {name}": given for name, given in sound_cells.TRAINED_ON.items() if given[0] != "protonet"}

Lost = Mapping[str, Mapping[str, Estimate]]  # by method and axis; what was not run yet is not there


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    birds, heard = birds_lost(), sounds_lost(SOUND_METHODS)
    return {
        "axes": axis_table(birds, list(BIRD_AXES.values())),
        "axes-ranks": rank_table(birds, list(BIRD_AXES.values())),
        "axes-sounds": axis_table({**heard, **sounds_lost(STRESSED)}, SOUND_AXES),
        "axes-sounds-ranks": rank_table(heard, SOUND_AXES),
    }


def birds_lost() -> Lost:
    """What each of the ten methods loses in Acc from random tasks."""
    kept = read_kept("axes-birds")
    return {one.name: _from_random(kept, BIRD_AXES, one.model_at(5), one.head) for one in METHODS}


def sounds_lost(methods: Mapping[str, tuple[str, str, bool]]) -> Lost:
    """The same of networks on one second of sound that were run; contexts from iid tasks, others from random ones."""
    kept, contexts = read_kept("axes-sounds"), sound_cells.read_sounds(sound_cells.SECOND)
    found = {}
    for name, (objective, head, by_shot) in methods.items():
        cell = sound_cells.find_cell(contexts, sound_cells.SECOND, name, 5, dict(methods), seeds=(0,))
        lost = {title: cell.gap(to) for to, title in CONTEXT_AXES.items()} if cell else {}
        axes = {axis: title for axis, title in BIRD_AXES.items() if title in SOUND_AXES}
        model = f"{sound_cells.SECOND}-{objective}{'-5' if by_shot else ''}-s0"
        found[name] = {**lost, **_from_random(kept, axes, model, head)}
    return {name: lost for name, lost in found.items() if lost}


def axis_table(lost: Lost, axes: Sequence[str]) -> str:
    """What each method loses, on each axis."""
    rows = [
        [name, *(estimate(of_one[axis]) if axis in of_one else NOT_RUN for axis in axes)]
        for name, of_one in lost.items()
    ]
    return table(["points of Acc lost at 5 shots", *axes], rows or [[NOT_RUN, *[""] * len(axes)]])


def rank_table(lost: Lost, axes: Sequence[str]) -> str:
    """Spearman's correlation of what the methods lose, for each two axes."""
    rows = []
    for first, second in combinations(axes, 2):
        pairs = [(one[first].mean, one[second].mean) for one in lost.values() if first in one and second in one]
        told = f"{NOT_RUN}: {len(pairs)} of {len(lost)} methods"
        rows.append([f"{first} and {second}", told if len(pairs) < LEAST else told_rank(pairs)])
    return table(["axes", "Spearman of what is lost"], rows)


def _from_random(kept: Table, axes: Mapping[str, str], model: str, head: str) -> dict[str, Estimate]:
    """What is lost from random tasks, task by task where the queries are the same."""
    random, lost = kept.find("random-5way-5shot", model, head), {}
    for axis, title in axes.items():
        tasks = next((one.tasks for one in kept.evaluated if one.tasks.startswith(axis)), "")
        other = kept.find(tasks, model, head)
        if random is not None and other is not None:
            paired = "-like-" in tasks
            lost[title] = (
                Estimate.over_tasks(random.accuracy - other.accuracy) if paired else random.acc.minus(other.acc)
            )
    return lost
