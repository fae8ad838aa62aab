"""Report of a comparison: computes everything that the page shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.analysis.explanation.explain import Explanation, explain_hardest, mismatch_examples
from shotproof.analysis.explanation.mismatch import Pooling
from shotproof.analysis.explored_tasks import choose_tasks
from shotproof.analysis.fooled import find_fooled
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.plan_curve import plan_curves
from shotproof.analysis.projection import NO_PROJECTION, shift_projections
from shotproof.analysis.similarity import Similarity
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.changed_sets import AXIS as CHANGES
from shotproof.comparison.changed_sets import changes_last
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.plot import save_figures
from shotproof.comparison.verdicts import verdicts
from shotproof.core.errors import InputError
from shotproof.cures.cure import Cure
from shotproof.report.pages.content import ExplainedTasks, GalleryTask, PageContent, SetCosts
from shotproof.report.pages.mismatch_examples import write_explanation_page
from shotproof.report.pages.page import write_page
from shotproof.results.answers import AnsweredTasks, answers_on, results_on
from shotproof.results.origin import REFERENCES, Design
from shotproof.tasks.taskset import TaskSet

TITLE = "How much do these classifiers rely on shortcuts?"
GALLERY_TASKS = 6  # in total
GALLERY_CHANGES = 2  # sets of changes, of which there may be many
PAGES = (".html", ".htm", "")


def write_compared(
    path: str | Path,
    comparison: Comparison,
    inputs: Inputs,
    *,
    title: str | None = None,
    mismatch: Pooling = "class",
    similarity: Similarity | None = None,
    figures: str | Path | None = None,
    projection: str = "pca",
    experiment: str | None = None,
    cure: Cure | None = None,
) -> None:
    """Write a comparison as a page that opens offline.

    If the task sets, the catalog or the attributes are missing, the page states what they would add.

    Args:
        path: page to write, `.html`
        comparison: comparison of the results in the inputs
        inputs: results and everything they were computed from
        title: title of the page
        mismatch: as in `explain`
        similarity: adds how similar the images are to their concepts and contexts
        figures: folder for the figures of the comparison, as SVG, PDF and PNG
        projection: projection that shows an iid task and its ood counterpart in two dimensions: `pca`, `tsne` or `none`
        experiment: name of the experiment file, for the suggested next steps
        cure: adds what helps

    Raises:
        Mismatch: a task set has no results.
    """
    sets = _answered_sets(comparison, inputs)
    explained = []
    for explanation, attributes in explain_hardest(inputs, mismatch=mismatch):
        hardest_tasks = explanation.sets[0].tasks
        design, label = _find_design_and_label(comparison, hardest_tasks)
        name = f"{label}, {comparison.design_name(design)}"
        explained.append(_add_examples(name, explanation, attributes, inputs.catalog_of(hardest_tasks)))
    content = PageContent(
        title=title or TITLE,
        comparison=comparison,
        inputs=inputs,
        gallery=_choose_gallery(_with_main_changes(sets, comparison), inputs),
        costs=list(_find_costs(comparison)),
        plans=plan_curves(comparison, inputs),
        explained=explained,
        projections=[] if projection == NO_PROJECTION else shift_projections(inputs, projection),
        similarity=similarity,
        fooled=find_fooled(comparison, inputs),
        experiment=experiment,
        cure=cure,
    )
    write_page(Path(path), content)
    if figures is not None:
        save_figures(comparison, Path(figures))


def write_explanations(
    path: str | Path, explained: Sequence[tuple[Explanation, Attributes]], catalogs: Sequence[Catalog] = ()
) -> None:
    """Write explanations as a separate page, with example images if a catalog is given.

    Args:
        path: page to write, `.html`
        explained: explanations from `explain`, each with the attributes that it is based on
        catalogs: catalogs of the example images

    Raises:
        InputError: the name of the page does not end in .html.
    """
    check_page_name(Path(path))
    inputs = Inputs(catalogs=catalogs)
    parts = [
        _add_examples(explanation.sets[0].name, explanation, attributes, inputs.catalog_of(explanation.sets[0].tasks))
        for explanation, attributes in explained
    ]
    write_explanation_page(Path(path), parts)


def check_page_name(path: Path, figures: str | None = None) -> None:
    """Reject a name that is not that of a page; `figures` is the flag or argument that requests figures."""
    if path.suffix.lower() not in PAGES:
        hint = f"; for figures as SVG, PDF and PNG use {figures}" if figures else ""
        raise InputError(f"{path}: a report is a page, expected a name that ends in .html{hint}")


@dataclass(frozen=True)
class _AnsweredSet:
    """Task set under its display name, with replicates in the order of their seeds."""

    name: str
    replicates: list[AnsweredTasks]


def _answered_sets(comparison: Comparison, inputs: Inputs) -> list[_AnsweredSet]:
    """Return the task sets with their answers, in the order of the comparison; the reference only if it is alone."""
    answered = {_identity(tasks): answers_on(tasks, inputs.results) for tasks in inputs.tasks}
    designs_and_labels = {key: _find_design_and_label(comparison, answers.tasks) for key, answers in answered.items()}
    sets: dict[bool, list[_AnsweredSet]] = {True: [], False: []}
    for block in comparison.blocks:
        for group in block.measured:
            replicates = [
                answers for key, answers in answered.items() if designs_and_labels[key] == (block.design, group.label)
            ]
            replicates.sort(key=lambda answers: group.digests.index(answers.tasks.digest))
            if replicates:
                name = f"{group.label}, {comparison.design_name(block.design)}"
                sets[group.sampler in REFERENCES].append(_AnsweredSet(name, replicates))
    return sets[False] or sets[True]


def _find_design_and_label(comparison: Comparison, tasks: TaskSet) -> tuple[Design, str]:
    """Return the design and the label of a task set, preferably of its own catalog if several catalogs share it."""
    matches = [
        (block.design, group.label)
        for block in comparison.blocks
        for group in block.groups
        if tasks.digest in group.digests
    ]
    return next((match for match in matches if match[0].catalog == tasks.record.source("catalog")), matches[0])


def _find_costs(comparison: Comparison) -> Iterator[SetCosts]:
    """Yield the attribute costs on each task set, for the classifier that its verdict focuses on."""
    for verdict in verdicts(comparison):
        costs = comparison.costs.get((verdict.block.design, verdict.loss.label), {})
        costly = [candidate for candidate in costs if costs[candidate].conclusive]
        classifier = verdict.focus or next(iter(costly or costs), None)
        if classifier is not None and classifier in costs:
            name = f"{verdict.loss.label}, {comparison.design_name(verdict.block.design)}"
            yield SetCosts(name, comparison.classifier_title(classifier), costs[classifier])


def _choose_gallery(sets: Sequence[_AnsweredSet], inputs: Inputs) -> list[GalleryTask]:
    """Choose tasks of each set with a catalog, evenly spaced from the hardest to the easiest.

    Replicated sets are represented by the first seed.
    """
    sets_and_catalogs = [
        (task_set, catalog)
        for task_set in sets
        if (catalog := inputs.catalog_of(task_set.replicates[0].tasks)) is not None
    ][:GALLERY_TASKS]
    return [
        GalleryTask(
            task_set.name + _format_seed(task_set.replicates),
            task,
            catalog,
            _answers_unchanged(task_set.replicates[0].tasks, inputs),
        )
        for (task_set, catalog), count in zip(
            sets_and_catalogs, _divide_evenly(GALLERY_TASKS, len(sets_and_catalogs)), strict=True
        )
        for task in choose_tasks(task_set.replicates[0], count)
    ]


def _with_main_changes(sets: Sequence[_AnsweredSet], comparison: Comparison) -> list[_AnsweredSet]:
    """Leave out all sets of changes but those that matter most, which come first."""
    ordered = [verdict for verdict in changes_last(list(verdicts(comparison))) if verdict.loss.axis == CHANGES]
    names = [f"{verdict.loss.label}, {comparison.design_name(verdict.block.design)}" for verdict in ordered]
    shown = {task_set.name: task_set for task_set in sets if task_set.replicates[0].tasks.is_changed}
    main = [shown[name] for name in names if name in shown][:GALLERY_CHANGES]
    return [*main, *(task_set for task_set in sets if task_set.name not in shown)] if main else list(sets)


def _answers_unchanged(tasks: TaskSet, inputs: Inputs) -> AnsweredTasks | None:
    """Return the answers on the tasks that were changed, before any change; None if there are none."""
    by_digest = {other.digest: other for other in inputs.tasks}
    original: TaskSet | None = tasks
    while original is not None and original.is_changed:
        original = by_digest.pop(original.record.source("like") or "", None)
    if original is None or original is tasks or not results_on(original, inputs.results):
        return None
    return answers_on(original, inputs.results)


def _add_examples(
    name: str, explanation: Explanation, attributes: Attributes, catalog: Catalog | None
) -> ExplainedTasks:
    """Add examples of mismatch to an explanation if a catalog is given."""
    examples = [] if catalog is None else mismatch_examples(explanation, attributes)
    return ExplainedTasks(name, explanation, examples, catalog)


def _identity(tasks: TaskSet) -> tuple[str, str | None]:
    """Return the identity of a task set: differently mixed sounds may share the same tasks."""
    return tasks.digest, tasks.record.source("catalog")


def _format_seed(replicates: Sequence[AnsweredTasks]) -> str:
    """Return the seed as a suffix of the name if there are several replicates."""
    return f", seed {replicates[0].tasks.record.seed}" if len(replicates) > 1 else ""


def _divide_evenly(total: int, parts: int) -> Iterator[int]:
    """Divide a total into integer parts; the first parts get the remainder."""
    return (total // parts + (index < total % parts) for index in range(parts))
