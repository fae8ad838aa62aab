"""Tasks with thumbnails: support and query of each class, its planted attribute, and the missed queries."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shotproof.analysis.fooled import Fooled, FooledQuery
from shotproof.comparison.comparison import Comparison
from shotproof.core.runtime.runtime import current_runtime
from shotproof.report.pages.album import CONTEXT, Album, Thumbnail
from shotproof.report.pages.content import GalleryTask
from shotproof.results.evaluated import Classifier

PLANTED = "planted"
SHOWN_ITEMS = 400  # items per task, but at least those of two classes


@dataclass(frozen=True)
class ShownClass:
    """One class of a shown task, with its name for readers.

    attribute: attribute of its support; attribute_kind: `planted` or the name of the contexts
    """

    name: str
    attribute: str | None
    attribute_kind: str
    support: list[Thumbnail]
    query: list[Thumbnail]


@dataclass(frozen=True)
class ShownAnswers:
    """One classifier on one shown task, one value per class: correct answers, and missed positions if known."""

    correct: list[int]
    missed: list[list[int] | None]


@dataclass(frozen=True)
class ShownTask:
    """One task: its number in its set, its rank by hardness there, and its classes.

    answers: one entry per classifier of the gallery; None if that classifier was not evaluated on this set
    """

    number: int
    set_name: str
    accuracy: float
    rank: int
    tasks_in_set: int
    classes: list[ShownClass]
    answers: list[ShownAnswers | None]
    classes_left_out: int


@dataclass(frozen=True)
class Gallery:
    """Tasks shown, and the classifiers to choose from."""

    tasks: list[ShownTask]
    classifiers: list[Classifier]

    def marks(self) -> list[list[dict[str, Any] | None]]:
        """Return the answers by task, then by classifier, for the page's script to switch classifiers."""
        return [[asdict(answers) if answers else None for answers in task.answers] for task in self.tasks]


def make_gallery(tasks: Sequence[GalleryTask], album: Album, only: Collection[Classifier] | None = None) -> Gallery:
    """Build a gallery of as many tasks as the album has room for, but at least one, with the answers of `only`."""
    answered = dict.fromkeys(answer.classifier for task in tasks for answer in task.chosen.answered.answers)
    classifiers = [classifier for classifier in answered if only is None or classifier in only]
    shown_tasks: list[ShownTask] = []
    with current_runtime().progress_bar("thumbnails", len(tasks)) as advance:
        for task in tasks:
            rows = _rows(task)
            items = [item for row in rows for side in ("support", "query") for item in row[side]]
            if not shown_tasks or album.has_room_for(items, task.catalog):
                shown_tasks.append(_show_task(task, rows, classifiers, album))
            advance(1)
    return Gallery(shown_tasks, classifiers)


def _show_task(
    task: GalleryTask, rows: Sequence[dict[str, Any]], classifiers: Sequence[Classifier], album: Album
) -> ShownTask:
    chosen, catalog = task.chosen, task.catalog
    context_column = chosen.answered.tasks.record.context_column
    column, kind = context_column or CONTEXT, context_column.replace("_", " ") if context_column else PLANTED
    classes = [
        ShownClass(
            catalog.class_names.get(row["label"], row["label"]),
            row["attribute"],
            kind,
            album.thumbnails(row["support"], catalog, column),
            album.thumbnails(row["query"], catalog, column),
        )
        for row in rows
    ]
    answers = {
        answer.classifier: ShownAnswers(
            [int(answer.counts.n_correct[row]) for row in chosen.rows[: len(rows)]],
            [answer.missed_at(row) for row in chosen.rows[: len(rows)]],
        )
        for answer in chosen.answered.answers
        if answer.classifier in classifiers
    }
    return ShownTask(
        number=rows[0]["task"],
        set_name=task.set_name,
        accuracy=chosen.accuracy,
        rank=chosen.rank,
        tasks_in_set=len(chosen.answered.tasks),
        classes=classes,
        answers=[answers.get(classifier) for classifier in classifiers],
        classes_left_out=len(chosen.rows) - len(rows),
    )


def _rows(task: GalleryTask) -> list[dict[str, Any]]:
    """Return the rows of a task; if it has too many items, those of its first classes."""
    indices = task.chosen.rows
    rows: list[dict[str, Any]] = task.chosen.answered.tasks.table.slice(indices[0], len(indices)).to_pylist()
    items = itertools.accumulate(len(row["support"]) + len(row["query"]) for row in rows)
    return rows[: max(2, sum(count <= SHOWN_ITEMS for count in items))]


@dataclass(frozen=True)
class ShownFooled:
    """Misclassified query with the names of its class and of the predicted class for readers."""

    fooled_query: FooledQuery
    name: str
    predicted: str
    query: Thumbnail
    own_support: list[Thumbnail]
    predicted_support: list[Thumbnail]


@dataclass(frozen=True)
class FooledPart:
    """Section on fooled queries, with its examples."""

    fooled: Fooled
    classifier: str
    set_name: str
    examples: list[ShownFooled]


def fooled_part(fooled: Fooled, comparison: Comparison, album: Album) -> FooledPart:
    """Build the section, with the items of its examples in the album."""
    column = fooled.column or CONTEXT
    names = fooled.catalog.class_names

    def show(example: FooledQuery) -> ShownFooled:
        query, own_support, predicted_support = (
            album.thumbnails(items, fooled.catalog, column)
            for items in ([example.item], example.own_support, example.called_support)
        )
        name, predicted = names[example.label], names[example.called]
        return ShownFooled(example, name, predicted, query[0], own_support, predicted_support)

    return FooledPart(
        fooled,
        comparison.classifier_title(fooled.classifier),
        f"{fooled.label} tasks ({comparison.design_name(fooled.design)})",
        [show(example) for example in fooled.examples],
    )
