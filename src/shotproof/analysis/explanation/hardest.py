"""The hardest task set of each group of matched ones, explained against the others."""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.analysis.explanation.explain import Explanation, explain
from shotproof.analysis.explanation.mismatch import Pooling
from shotproof.analysis.reevaluation.material import Material
from shotproof.analysis.task_sources import attributes_of
from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.answers import results_on
from shotproof.evaluation.origin import REFERENCES, Design, design_of
from shotproof.evaluation.results import Results
from shotproof.tasks.taskset import TaskSet


def explain_hardest(
    material: Material, *, mismatch: Pooling = "class", level: float = 0.95, runtime: Runtime | None = None
) -> list[tuple[Explanation, Attributes]]:
    """An explanation for each group of matched sets that is not random alone, with the attributes it is by.

    Of replicates, the one with the lowest seed is taken. A group whose items no attributes know is left out.

    Args:
        material: the task sets, the attributes, and the results and features that tell how hard each task is
        mismatch, level: as `explain` takes them
        runtime: how it is computed; None is the current one

    Returns:
        One explanation per group, each with its attributes.
    """
    return [
        explain_by_material(hard, others, material, mismatch=mismatch, level=level, runtime=runtime)
        for hard, *others in _groups(material)
        if attributes_of(hard, material.attributes) is not None
    ]


def explain_by_material(
    tasks: TaskSet,
    against: Sequence[TaskSet],
    material: Material,
    *,
    mismatch: Pooling = "class",
    level: float = 0.95,
    runtime: Runtime | None = None,
) -> tuple[Explanation, Attributes]:
    """Explain a set with the attributes that know its items, and the features that it was evaluated on.

    Features without results on them are used where there is one encoder only.

    Args:
        tasks, against: the set to explain, and those that it is compared with
        material: where attributes, features and results are looked for
        mismatch, level: as `explain` takes them
        runtime: how it is computed; None is the current one

    Returns:
        The explanation, and the attributes that it is by.

    Raises:
        InputError: no attributes know the items.
    """
    attributes = attributes_of(tasks, material.attributes)
    if attributes is None:
        raise InputError("no attributes say which words hold of the items of these tasks")
    used = {given.record.features_digest for given in results_on(tasks, material.results)}
    evaluated = [one for one in material.features if one.digest in used]
    features = next(iter(evaluated or (material.features if len(material.features) == 1 else [])), None)
    results = [given for given in material.results if features and given.record.features_digest == features.digest]
    explanation = explain(
        tasks,
        attributes,
        against=against,
        features=features,
        results=results,
        mismatch=mismatch,
        level=level,
        runtime=runtime,
    )
    return explanation, attributes


def _groups(material: Material) -> list[list[TaskSet]]:
    """Matched sets together, the hardest first, then the reference; a set that matches none gets that of its design."""
    sets = _without_replicates(material.tasks)
    groups: dict[tuple[str | None, str], list[TaskSet]] = {}
    for one in sets:
        groups.setdefault((one.record.source("catalog"), one.match), []).append(one)
    found = []
    for members in groups.values():
        hard = [one for one in members if not _is_reference(one)]
        hard.sort(key=lambda one: _accuracy(one, material.results))
        if hard:
            alike = [one for one in sets if _design(one) == _design(hard[0])]
            usual = [one for one in (*members, *alike) if _is_reference(one)][:1]
            found.append([hard[0], *usual, *hard[1:]])
    return found


def _without_replicates(tasks: Sequence[TaskSet]) -> list[TaskSet]:
    """One set for each design, sampler and attributes: the one with the lowest seed."""
    chosen: dict[tuple[Design, str, str | None], TaskSet] = {}
    for one in sorted(tasks, key=lambda one: one.record.seed or 0):
        key = (_design(one), str(one.record.sampler or one.digest), one.record.source("attributes"))
        chosen.setdefault(key, one)
    return [one for one in tasks if any(one is kept for kept in chosen.values())]


def _accuracy(tasks: TaskSet, results: Sequence[Results]) -> float:
    """The mean accuracy of all results on these tasks, in percent."""
    own = results_on(tasks, results)
    values = [given.counts(method).accuracy_by_task().mean() for given in own for method in given.methods]
    return float(sum(values) / len(values)) if values else 100.0


def _is_reference(tasks: TaskSet) -> bool:
    return tasks.record.sampler_name in REFERENCES


def _design(tasks: TaskSet) -> Design:
    return design_of(tasks.record, tasks.record.way, tasks.record.query)
