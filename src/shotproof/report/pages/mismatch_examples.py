"""Explanation of why tasks are hard, as a section of the report or a separate page."""

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
    """Example with thumbnails of its items, each with whether the item has the attribute."""

    attribute: str
    task: int
    name: str
    support: list[tuple[Thumbnail, bool]]
    query: list[tuple[Thumbnail, bool]]


def explanation_part(explained: ExplainedTasks, album: Album) -> dict[str, Any]:
    """Collect the values that the template shows of one explanation; examples only if there is a catalog."""
    explanation, catalog = explained.explanation, explained.catalog
    names = [task_set.name for task_set in explanation.sets]
    scatters = []
    for classifier in explanation.hardness():
        first = classifier[0][1]
        description = f"Accuracy of {first.method} against inverse query loss in {', '.join(names)}."
        figure = hardness_scatter([dict(classifier).get(name) for name in names], description)
        correlations = [(name, hardness.correlation) for name, hardness in classifier]
        title = str(Classifier(explanation.encoder_names[first.encoder], first.method))
        scatters.append({"classifier": title, "figure": figure, "correlations": correlations})
    ways = [task_set.ways for task_set in explanation.sets]
    column = explanation.sets[0].tasks.record.context_column or CONTEXT
    has_several_ways = len({way for set_ways in ways for way in set_ways.tasks}) > 1
    ways_description = f"Share of tasks by number of classes in {', '.join(names)}."
    return {
        "name": explained.name,
        "explanation": explanation,
        "rows": explanation.attributes[:SHOWN_ATTRIBUTES],
        "keys": [(marker(5, 5, index), name) for index, name in enumerate(names)],
        "figure": mismatch_dots(
            explanation, SHOWN_ATTRIBUTES, f"Mismatch by attribute in {', '.join(names)}. The table has the values."
        ),
        "scatters": scatters,
        "ways": ways_curves(ways, ways_description) if has_several_ways else None,
        "examples": []
        if catalog is None
        else [_show_example(example, album, catalog, column) for example in explained.examples],
    }


def write_explanation_page(path: Path, explained: Sequence[ExplainedTasks]) -> None:
    """Write explanations as a separate page."""
    album = Album()
    parts = [explanation_part(tasks, album) for tasks in explained]
    title = f"Why are these {explained[0].name} tasks hard?" if len(explained) == 1 else "Why are these tasks hard?"
    documents = [tasks.explanation.to_json() for tasks in explained]
    content = documents[0] if len(documents) == 1 else documents
    context = {"title": title, "why": parts, "album": album, "content": content}
    write_text(path, render("explanation_page.html", context))


def _show_example(example: MismatchExample, album: Album, catalog: Catalog, column: str) -> ShownExample:
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
