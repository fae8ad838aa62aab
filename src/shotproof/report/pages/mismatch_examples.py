"""Why are these tasks hard? The section of the report, and a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.analysis.explanation.explain import MismatchExample
from shotproof.catalog.catalog import Catalog
from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.hardness_figures import hardness_scatter, mismatch_dots, ways_curves
from shotproof.report.figures.svg import marker
from shotproof.report.pages.album import CONTEXT, Album, Thumbnail
from shotproof.report.pages.content import ExplainedTasks
from shotproof.report.pages.render import render
from shotproof.results.evaluated import Classifier

SHOWN_ATTRIBUTES = 12


@dataclass(frozen=True)
class ShownExample:
    """An example with its items as they are shown, each with whether the attribute holds of it."""

    attribute: str
    task: int
    name: str
    support: list[tuple[Thumbnail, bool]]
    query: list[tuple[Thumbnail, bool]]


def explanation_part(explained: ExplainedTasks, album: Album) -> dict[str, Any]:
    """What the template shows of one explanation; examples only where there is a catalog."""
    explanation, catalog = explained.explanation, explained.catalog
    names = [task_set.name for task_set in explanation.sets]
    scatters = []
    for classifier in explanation.hardness():
        own = classifier[0][1]
        told = f"Accuracy of {own.method} against inverse query loss in {', '.join(names)}."
        figure = hardness_scatter([dict(classifier).get(name) for name in names], told)
        correlations = [(name, one.correlation) for name, one in classifier]
        title = str(Classifier(explanation.encoder_names[own.encoder], own.method))
        scatters.append({"classifier": title, "figure": figure, "correlations": correlations})
    ways = [task_set.ways for task_set in explanation.sets]
    column = explanation.sets[0].tasks.record.context_column or CONTEXT
    varied = len({way for one in ways for way in one.tasks}) > 1
    return {
        "name": explained.name,
        "explanation": explanation,
        "rows": explanation.attributes[:SHOWN_ATTRIBUTES],
        "keys": [(marker(5, 5, index), name) for index, name in enumerate(names)],
        "figure": mismatch_dots(
            explanation, SHOWN_ATTRIBUTES, f"Mismatch by attribute in {', '.join(names)}. The table has the values."
        ),
        "scatters": scatters,
        "ways": ways_curves(ways, f"Share of tasks by number of classes in {', '.join(names)}.") if varied else None,
        "examples": []
        if catalog is None
        else [_shown(example, album, catalog, column) for example in explained.examples],
    }


def write_explanation_page(path: Path, explained: Sequence[ExplainedTasks]) -> None:
    """Write explanations as a page of their own."""
    album = Album()
    parts = [explanation_part(one, album) for one in explained]
    title = f"Why are these {explained[0].name} tasks hard?" if len(explained) == 1 else "Why are these tasks hard?"
    documents = [one.explanation.to_json() for one in explained]
    content = documents[0] if len(documents) == 1 else documents
    context = {"title": title, "why": parts, "album": album, "content": content}
    write_text(path, render("explanation_page.html", context))


def _shown(example: MismatchExample, album: Album, catalog: Catalog, column: str) -> ShownExample:
    support, query = (
        list(
            zip(
                album.thumbnails([item for item, _ in side], catalog, column), [holds for _, holds in side], strict=True
            )
        )
        for side in (example.support, example.query)
    )
    name = catalog.class_names.get(example.label, example.label)
    return ShownExample(example.attribute, example.task, name, support, query)
