"""Which tasks a page lays out on a plane: one of the iid tasks beside the same one with queries in other contexts."""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.analysis.chosen_tasks import choose_tasks
from shotproof.analysis.projection import Projection, project_task
from shotproof.analysis.reevaluation.material import Material
from shotproof.evaluation.answers import answers_on
from shotproof.features.features import Features
from shotproof.stats.stages import stage_of
from shotproof.tasks.taskset import TaskSet

IID, OTHERS = "iid", ("ood", "hard-ood")
SHOWN = 4  # projections in all


def shift_projections(material: Material, how: str) -> list[Projection]:
    """The iid task of median accuracy beside the same task of ood, for each encoder, of the largest number of shots.

    Without ood tasks, hard-ood ones; none where iid tasks, others of the same supports, or features are missing.
    """
    pair = _matched(material.tasks)
    if pair is None or not material.results:
        return []
    answered = answers_on(pair[0], material.results)
    if not answered.answers:
        return []
    task = choose_tasks(answered, 1)[0].position
    wanted = {row for one in pair for side in ("support", "query") for row in _items(one, side)}
    # Encoders as they are before their stages, of which there are many.
    whole = [one for one in material.features if stage_of(one.name) is None] or list(material.features)
    return [project_task(pair, one, task=task, how=how) for one in whole if _has(one, wanted)][:SHOWN]


def _matched(tasks: Sequence[TaskSet]) -> tuple[TaskSet, TaskSet] | None:
    """A set of iid tasks and one of others that are paired with it, of the most shots."""
    for iid in sorted(tasks, key=lambda one: -(one.record.shot or 0)):
        if iid.record.sampler_name == IID:
            for name in OTHERS:
                for other in tasks:
                    if other.record.sampler_name == name and other.match == iid.match and len(other) == len(iid):
                        return iid, other
    return None


def _items(tasks: TaskSet, side: str) -> list[str]:
    items: list[str] = tasks.table.column(side).combine_chunks().flatten().unique().to_pylist()
    return items


def _has(features: Features, items: set[str]) -> bool:
    return items <= set(features.table.column("item").to_pylist())
