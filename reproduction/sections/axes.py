"""Methods on several axes at once, on birds and on sounds: is robustness one thing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from reproduction.kept import Table, read_kept
from reproduction.markdown import NOT_RUN, estimate, table
from reproduction.sections import sound_cells
from reproduction.sections.fewstab import LEAST, METHODS, rank_text
from shotproof.stats.intervals import Estimate

BIRD_AXES = {"fewstab": "attributes", "hardest": "hardest supports", "meta-dataset": "unbalanced"}
CONTEXT_AXES = {"ood": "other contexts", "hard-ood": "misleading contexts"}
SOUND_AXES = (*CONTEXT_AXES.values(), BIRD_AXES["hardest"], BIRD_AXES["meta-dataset"])
SOUND_METHODS = {**sound_cells.METHODS, **sound_cells.CONTRASTIVE}
STRESSED = {
    f"ProtoNet on {name}": training for name, training in sound_cells.TRAINED_ON.items() if training[0] != "protonet"
}

Lost = Mapping[str, Mapping[str, Estimate]]  # by method and axis; what was not run yet is not there


def sections() -> dict[str, str]:
    """Build each derived section, by name."""
    birds, heard = birds_lost(), sounds_lost(SOUND_METHODS)
    return {
        "axes": axis_table(birds, list(BIRD_AXES.values())),
        "axes-ranks": rank_table(birds, list(BIRD_AXES.values())),
        "axes-sounds": axis_table({**heard, **sounds_lost(STRESSED)}, SOUND_AXES),
        "axes-sounds-ranks": rank_table(heard, SOUND_AXES),
    }


def birds_lost() -> Lost:
    """Estimate the Acc that each of the ten methods loses from random tasks."""
    table_ = read_kept("axes-birds")
    return {method.name: _from_random(table_, BIRD_AXES, method.model_at(5), method.head) for method in METHODS}


def sounds_lost(methods: Mapping[str, tuple[str, str, bool]]) -> Lost:
    """Estimate the same for networks on one second of sound: contexts from iid tasks, other axes from random ones."""
    results, contexts = read_kept("axes-sounds"), sound_cells.read_sounds(sound_cells.SECOND)
    losses = {}
    for name, (objective, head, by_shot) in methods.items():
        cell = sound_cells.find_cell(contexts, sound_cells.SECOND, name, 5, dict(methods), seeds=(0,))
        lost = {title: cell.gap(to) for to, title in CONTEXT_AXES.items()} if cell else {}
        axes = {axis: title for axis, title in BIRD_AXES.items() if title in SOUND_AXES}
        model = f"{sound_cells.SECOND}-{objective}{'-5' if by_shot else ''}-s0"
        losses[name] = {**lost, **_from_random(results, axes, model, head)}
    return {name: lost for name, lost in losses.items() if lost}


def axis_table(lost: Lost, axes: Sequence[str]) -> str:
    """Write the points that each method loses on each axis."""
    rows = [
        [name, *(estimate(by_axis[axis]) if axis in by_axis else NOT_RUN for axis in axes)]
        for name, by_axis in lost.items()
    ]
    return table(["points of Acc lost at 5 shots", *axes], rows or [[NOT_RUN, *[""] * len(axes)]])


def rank_table(lost: Lost, axes: Sequence[str]) -> str:
    """Write Spearman's correlation of the losses for each pair of axes."""
    rows = []
    for first, second in combinations(axes, 2):
        pairs = [
            (by_axis[first].mean, by_axis[second].mean)
            for by_axis in lost.values()
            if first in by_axis and second in by_axis
        ]
        missing = f"{NOT_RUN}: {len(pairs)} of {len(lost)} methods"
        rows.append([f"{first} and {second}", missing if len(pairs) < LEAST else rank_text(pairs)])
    return table(["axes", "Spearman of what is lost"], rows)


def _from_random(results: Table, axes: Mapping[str, str], model: str, head: str) -> dict[str, Estimate]:
    """Estimate the loss from random tasks, task by task if the queries are the same."""
    random, lost = results.find("random-5way-5shot", model, head), {}
    for axis, title in axes.items():
        task_set = next((result.tasks for result in results.evaluated if result.tasks.startswith(axis)), "")
        other = results.find(task_set, model, head)
        if random is not None and other is not None:
            paired = "-like-" in task_set
            lost[title] = (
                Estimate.over_tasks(random.accuracy - other.accuracy) if paired else random.acc.minus(other.acc)
            )
    return lost
