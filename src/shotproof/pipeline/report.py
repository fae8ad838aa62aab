"""The report: everything that its page shows is computed here, and handed to the page to be drawn."""

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
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.plot import save_figures
from shotproof.comparison.verdicts import verdicts
from shotproof.core.errors import InputError
from shotproof.report.pages.content import ExplainedTasks, GalleryTask, PageContent, SetCosts
from shotproof.report.pages.mismatch_examples import write_explanation_page
from shotproof.report.pages.page import write_page
from shotproof.results.answers import AnsweredTasks, answers_on
from shotproof.results.origin import REFERENCES, Design
from shotproof.tasks.taskset import TaskSet

TITLE = "How much do these classifiers lean on shortcuts?"
GALLERY_TASKS = 6  # in all
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
) -> None:
    """Write a comparison as a page that opens offline.

    Without the task sets, the catalog or the attributes the page says what they would add.

    Args:
        path: the page, `.html`
        comparison: of the inputs' results
        inputs: all that was read or made
        title: the page's
        mismatch: as `explain` takes it
        similarity: adds how near the images are to their concepts and contexts
        figures: a folder for the figures of the comparison, as SVG, PDF and PNG
        projection: how an iid task and its ood one are laid out on a plane: `pca`, `tsne` or `none`
        experiment: the name of the experiment's file, for what to do next

    Raises:
        Mismatch: a task set has no results.
    """
    sets = _answered_sets(comparison, inputs)
    explained = []
    for explanation, words in explain_hardest(inputs, mismatch=mismatch):
        hard = explanation.sets[0].tasks
        design, label = _place(comparison, hard)
        name = f"{label}, {comparison.design_name(design)}"
        explained.append(_explained(name, explanation, words, inputs.catalog_of(hard)))
    content = PageContent(
        title=title or TITLE,
        comparison=comparison,
        inputs=inputs,
        gallery=_gallery(sets, inputs),
        costs=list(_costs(comparison)),
        plans=plan_curves(comparison, inputs),
        explained=explained,
        projections=[] if projection == NO_PROJECTION else shift_projections(inputs, projection),
        similarity=similarity,
        fooled=find_fooled(comparison, inputs),
        experiment=experiment,
    )
    write_page(Path(path), content)
    if figures is not None:
        save_figures(comparison, Path(figures))


def write_explanations(
    path: str | Path, explained: Sequence[tuple[Explanation, Attributes]], catalogs: Sequence[Catalog] = ()
) -> None:
    """Write explanations as a page of their own, with example images where a catalog is given.

    Args:
        path: the page, `.html`
        explained: by `explain`, each with the attributes that it is by
        catalogs: whose files are shown

    Raises:
        InputError: the page's name ends in something else.
    """
    check_page_name(Path(path))
    inputs = Inputs(catalogs=catalogs)
    parts = [
        _explained(one.sets[0].name, one, attributes, inputs.catalog_of(one.sets[0].tasks))
        for one, attributes in explained
    ]
    write_explanation_page(Path(path), parts)


def check_page_name(path: Path, figures: str | None = None) -> None:
    """Refuse a name that promises something else than a page; `figures` is how to ask for figures."""
    if path.suffix.lower() not in PAGES:
        instead = f"; for figures as SVG, PDF and PNG give {figures}" if figures else ""
        raise InputError(f"{path}: a report is a page, expected a name that ends in .html{instead}")


@dataclass(frozen=True)
class _AnsweredSet:
    """A task set under the name that the page gives it, replicates in the order of their seeds."""

    name: str
    replicates: list[AnsweredTasks]


def _answered_sets(comparison: Comparison, inputs: Inputs) -> list[_AnsweredSet]:
    """The task sets with their answers, in the order of the comparison; the reference only where there is no other."""
    answered = {_key(tasks): answers_on(tasks, inputs.results) for tasks in inputs.tasks}
    named = {key: _place(comparison, one.tasks) for key, one in answered.items()}
    sets: dict[bool, list[_AnsweredSet]] = {True: [], False: []}
    for block in comparison.blocks:
        for group in block.measured:
            own = [one for key, one in answered.items() if named[key] == (block.design, group.label)]
            own.sort(key=lambda one: group.digests.index(one.tasks.digest))
            if own:
                name = f"{group.label}, {comparison.design_name(block.design)}"
                sets[group.sampler in REFERENCES].append(_AnsweredSet(name, own))
    return sets[False] or sets[True]


def _place(comparison: Comparison, tasks: TaskSet) -> tuple[Design, str]:
    """The design and the label of a task set; the same tasks may be of several catalogs, best of their own."""
    found = [
        (block.design, group.label)
        for block in comparison.blocks
        for group in block.groups
        if tasks.digest in group.digests
    ]
    return next((one for one in found if one[0].catalog == tasks.record.source("catalog")), found[0])


def _costs(comparison: Comparison) -> Iterator[SetCosts]:
    """Give what attributes cost on each task set, of the classifier in focus there."""
    for verdict in verdicts(comparison):
        costs = comparison.costs.get((verdict.block.design, verdict.loss.label), {})
        costly = [one for one in costs if costs[one].conclusive]
        classifier = verdict.focus or next(iter(costly or costs), None)
        if classifier is not None and classifier in costs:
            name = f"{verdict.loss.label}, {comparison.design_name(verdict.block.design)}"
            yield SetCosts(name, comparison.classifier_title(classifier), costs[classifier])


def _gallery(sets: Sequence[_AnsweredSet], inputs: Inputs) -> list[GalleryTask]:
    """Some tasks of each set whose catalog is there, evenly spaced from the hardest to the easiest.

    Of replicates, those of the first seed.
    """
    shown = [(one, catalog) for one in sets if (catalog := inputs.catalog_of(one.replicates[0].tasks)) is not None][
        :GALLERY_TASKS
    ]
    return [
        GalleryTask(one.name + _seed(one.replicates), chosen, catalog)
        for (one, catalog), count in zip(shown, _evenly(GALLERY_TASKS, len(shown)), strict=True)
        for chosen in choose_tasks(one.replicates[0], count)
    ]


def _explained(name: str, explanation: Explanation, attributes: Attributes, catalog: Catalog | None) -> ExplainedTasks:
    examples = [] if catalog is None else mismatch_examples(explanation, attributes)
    return ExplainedTasks(name, explanation, examples, catalog)


def _key(tasks: TaskSet) -> tuple[str, str | None]:
    """What tells task sets apart: sounds that are mixed louder may be in the same tasks."""
    return tasks.digest, tasks.record.source("catalog")


def _seed(replicates: Sequence[AnsweredTasks]) -> str:
    return f", seed {replicates[0].tasks.record.seed}" if len(replicates) > 1 else ""


def _evenly(total: int, parts: int) -> Iterator[int]:
    """A number for each part; the first parts take what is left over."""
    return (total // parts + (index < total % parts) for index in range(parts))
