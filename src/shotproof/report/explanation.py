"""Why are these tasks hard? The section of the report, and a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import REFERENCES, lookup
from shotproof.explanation.explain import Explanation, explain
from shotproof.explanation.mismatch import row_mismatch, sides_of
from shotproof.features.features import Features
from shotproof.report.album import Album, Thumbnail
from shotproof.report.explanation_figures import hardness_scatter, mismatch_dots, ways_curves
from shotproof.report.render import render
from shotproof.report.svg import marker
from shotproof.tables import write_text
from shotproof.tasks.taskset import TaskSet

SHOWN_ATTRIBUTES = 12
SHOWN_EXAMPLES = 4


@dataclass(frozen=True)
class Example:
    """The class of a task in which an attribute differs most; each item with whether it holds the attribute."""

    attribute: str
    task: int
    label: str
    support: list[tuple[Thumbnail, bool]]
    query: list[tuple[Thumbnail, bool]]


def explained_groups(
    tasks: Sequence[TaskSet],
    results: Sequence[Results],
    attributes: Attributes | None,
    features: Sequence[Features],
    album: Album | None,
) -> list[dict[str, Any]]:
    """A part for each group of matched sets that is not random alone: its hardest set, against the others."""
    if attributes is None:
        return []
    parts = []
    for hard, *others in _groups(tasks, results):
        used = next((one for one in features if any(_features(given) == one.digest for given in results)), None)
        on_these = [given for given in results if used is not None and _features(given) == used.digest]
        explanation = explain(hard, attributes, against=others, features=used, results=on_these)
        parts.append(explanation_part(explanation, attributes, album))
    return parts


def explanation_part(explanation: Explanation, attributes: Attributes, album: Album | None) -> dict[str, Any]:
    """What the template shows of one explanation."""
    names = [one.name for one in explanation.sets]
    scatters = []
    for classifier in explanation.hardness():
        own = classifier[0][1]
        told = f"Accuracy of {own.method} against inverse query loss in {', '.join(names)}."
        figure = hardness_scatter([dict(classifier).get(name) for name in names], told)
        correlations = [(name, one.correlation) for name, one in classifier]
        scatters.append({"hardness": own, "figure": figure, "correlations": correlations})
    ways = [one.ways for one in explanation.sets]
    varied = len({way for one in ways for way in one.tasks}) > 1
    return {
        "explanation": explanation,
        "rows": explanation.attributes[:SHOWN_ATTRIBUTES],
        "keys": [(marker(5, 5, index), name) for index, name in enumerate(names)],
        "figure": mismatch_dots(
            explanation, SHOWN_ATTRIBUTES, f"Mismatch by attribute in {', '.join(names)}. The table has the values."
        ),
        "scatters": scatters,
        "ways": ways_curves(ways, f"Share of tasks by number of classes in {', '.join(names)}.") if varied else None,
        "examples": _examples(explanation, attributes, album) if album else [],
    }


def write_explanation(
    path: str | Path, explanation: Explanation, attributes: Attributes, catalog: Catalog | None = None
) -> None:
    """Write the explanation as a page of its own, with example images where the catalog is given."""
    album = Album(catalog) if catalog is not None else None
    part = explanation_part(explanation, attributes, album)
    title = f"Why are these {explanation.sets[0].name} tasks hard?"
    context = {"title": title, "why": [part], "album": album, "content": explanation.to_json()}
    write_text(Path(path), render("explanation_page.html", context))


def _groups(tasks: Sequence[TaskSet], results: Sequence[Results]) -> list[list[TaskSet]]:
    """Matched sets together, the hardest first, then the reference; a set that matches none gets that of its design."""
    groups: dict[str, list[TaskSet]] = {}
    for one in {given.digest: given for given in tasks}.values():
        groups.setdefault(one.match, []).append(one)
    found = []
    for members in groups.values():
        hard = sorted((one for one in members if not _is_reference(one)), key=lambda one: _accuracy(one, results))
        if hard:
            alike = [one for one in tasks if _design(one) == _design(hard[0])]
            usual = [one for one in (*members, *alike) if _is_reference(one)][:1]
            found.append([hard[0], *usual, *hard[1:]])
    return found


def _examples(explanation: Explanation, attributes: Attributes, album: Album) -> list[Example]:
    """The class of a task with the largest mismatch, for each attribute that leads; no class is shown twice."""
    tasks = explanation.sets[0].tasks
    (sides,), held = sides_of([tasks], attributes)
    words = attributes.to_words()
    shown: list[Example] = []
    used: set[int] = set()
    for one in explanation.attributes[:SHOWN_EXAMPLES]:
        if explanation.excess(one).mean <= 0 or one.attribute not in held.words:
            continue
        distance = row_mismatch(sides, held, held.words.index(one.attribute))
        row = next(int(row) for row in (-distance).argsort(kind="stable") if int(row) not in used)
        used.add(row)
        record = tasks.table.slice(row, 1).to_pylist()[0]
        both = [
            [(thumb, one.attribute in (words[thumb.item] or ())) for thumb in album.thumbnails(record[name])]
            for name in ("support", "query")
        ]
        shown.append(Example(one.attribute, record["task"], record["label"], *both))
    return shown


def _accuracy(tasks: TaskSet, results: Sequence[Results]) -> float:
    """The mean accuracy of all results on these tasks."""
    own = [given for given in results if lookup(given.meta, "tasks", "digest") == tasks.digest]
    values = [given.counts(method).accuracy_by_task().mean() for given in own for method in given.methods]
    return float(sum(values) / len(values)) if values else 1.0


def _is_reference(tasks: TaskSet) -> bool:
    return lookup(tasks.meta, "made_by", "sampler") in REFERENCES


def _design(tasks: TaskSet) -> list[Any]:
    made_by = [lookup(tasks.meta, "made_by", name) for name in ("split", "way", "shot", "query")]
    return [lookup(tasks.meta, "from", "catalog"), *made_by]


def _features(results: Results) -> Any:
    return lookup(results.meta, "features", "digest")
