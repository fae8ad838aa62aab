"""Tasks with thumbnails: support and query of each class, its planted attribute, and the missed queries."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shotproof.analysis.fooled import Fooled, FooledQuery
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.core.runtime.runtime import current_runtime
from shotproof.report.pages.album import CONTEXT, Album, Thumbnail
from shotproof.report.pages.changed_thumbnails import change_words, changed_name, with_shown_changes
from shotproof.report.pages.content import GalleryTask
from shotproof.results.answers import AnsweredTasks, Answers
from shotproof.results.evaluated import Classifier
from shotproof.tasks.taskset import SIDES, UNCHANGED_ITEM, TaskSet, change_column

PLANTED = "planted"
SHOWN_ITEMS = 400  # items per task, but at least those of two classes


@dataclass(frozen=True)
class ShownClass:
    """One class of a shown task, with its name for readers.

    attribute: attribute of its support; attribute_kind: `planted` or the name of the contexts
    unchanged: its queries before they were changed; None if nothing is changed in this task
    """

    name: str
    attribute: str | None
    attribute_kind: str
    support: list[Thumbnail]
    query: list[Thumbnail]
    unchanged: list[Thumbnail] | None = None


@dataclass(frozen=True)
class ShownAnswers:
    """One classifier on one shown task, one value per class.

    correct: number of correct answers
    missed: positions of the missed queries; None if the results do not record them
    called: names of the classes that these queries were assigned to; None if the results do not record them
    """

    correct: list[int]
    missed: list[list[int] | None]
    called: list[list[str] | None]

    def called_at(self, place: int, position: int) -> str:
        """Return the name that a missed query of a class was given; empty if it was not missed or is not known."""
        missed, called = self.missed[place], self.called[place]
        return called[missed.index(position)] if missed and called and position in missed else ""


@dataclass(frozen=True)
class ShownTask:
    """One task: its number in its set, its rank by hardness there, and its classes.

    answers: one entry per classifier of the gallery; None if that classifier was not evaluated on this set
    change: what is changed in the items; empty if nothing is
    unchanged: the answers of the same classifiers on the same task without changes
    """

    number: int
    set_name: str
    accuracy: float
    rank: int
    tasks_in_set: int
    classes: list[ShownClass]
    answers: list[ShownAnswers | None]
    classes_left_out: int
    change: str = ""
    unchanged: list[ShownAnswers | None] | None = None


@dataclass(frozen=True)
class Gallery:
    """Tasks shown, and the classifiers to choose from."""

    tasks: list[ShownTask]
    classifiers: list[Classifier]

    def marks(self) -> list[list[dict[str, Any] | None]]:
        """Return the answers by task, then by classifier, for the page's script to switch classifiers."""
        return [
            [
                {**asdict(answers), "unchanged": asdict(before) if before else None} if answers else None
                for answers, before in zip(task.answers, task.unchanged or [None] * len(task.answers), strict=True)
            ]
            for task in self.tasks
        ]


def make_gallery(tasks: Sequence[GalleryTask], album: Album, only: Collection[Classifier] | None = None) -> Gallery:
    """Build a gallery of as many tasks as the album has room for, but at least one, with the answers of `only`."""
    answered = dict.fromkeys(answer.classifier for task in tasks for answer in task.chosen.answered.answers)
    classifiers = [classifier for classifier in answered if only is None or classifier in only]
    shown_tasks: list[ShownTask] = []
    catalogs = _with_changed_items(tasks)
    with current_runtime().progress_bar("thumbnails", len(tasks)) as advance:
        for task, catalog in zip(tasks, catalogs, strict=True):
            rows = _rows(task)
            items = [item for row in rows for side in SIDES for item in (*row[side], *_shown_names(row, side))]
            if not shown_tasks or album.has_room_for(items, catalog):
                shown_tasks.append(_show_task(task, catalog, rows, classifiers, album))
            advance(1)
    return Gallery(shown_tasks, classifiers)


def _with_changed_items(tasks: Sequence[GalleryTask]) -> list[Catalog]:
    """Return the catalog of each task, with its changed items; tasks of one catalog share it."""
    changed = [task for task in tasks if task.chosen.answered.tasks.is_changed]
    pairs: dict[str, list[tuple[str, str]]] = {}
    for task in changed:
        for row, side in itertools.product(_rows(task), SIDES):
            items_and_changes = zip(
                row[side], row.get(change_column(side)) or [UNCHANGED_ITEM] * len(row[side]), strict=True
            )
            pairs.setdefault(task.catalog.digest, []).extend(items_and_changes)
    catalogs = {task.catalog.digest: task.catalog for task in changed}
    catalogs = {digest: with_shown_changes(catalogs[digest], pairs[digest]) for digest in catalogs}
    return [catalogs[task.catalog.digest] if task.chosen.answered.tasks.is_changed else task.catalog for task in tasks]


def _shown_names(row: dict[str, Any], side: str) -> list[str]:
    """Return the names of the items of one side as they are shown to the classifier."""
    spellings = row.get(change_column(side))
    if spellings is None:
        return list(row[side])
    return [
        item if spelling == UNCHANGED_ITEM else changed_name(item, spelling)
        for item, spelling in zip(row[side], spellings, strict=True)
    ]


def _show_task(
    task: GalleryTask,
    catalog: Catalog,
    rows: Sequence[dict[str, Any]],
    classifiers: Sequence[Classifier],
    album: Album,
) -> ShownTask:
    chosen = task.chosen
    is_changed = chosen.answered.tasks.is_changed
    context_column = chosen.answered.tasks.record.context_column
    column, kind = context_column or CONTEXT, context_column.replace("_", " ") if context_column else PLANTED
    classes = [
        ShownClass(
            catalog.class_names.get(row["label"], row["label"]),
            row["attribute"],
            kind,
            album.thumbnails(_shown_names(row, "support"), catalog, column),
            album.thumbnails(_shown_names(row, "query"), catalog, column),
            album.thumbnails(row["query"], catalog, column) if is_changed else None,
        )
        for row in rows
    ]
    labels = chosen.answered.tasks.table.column("label").slice(chosen.rows.start, len(chosen.rows)).to_pylist()
    names = [catalog.class_names.get(label, label) for label in labels]
    before = None
    if task.unchanged is not None:
        rows_before = _same_rows(task.unchanged.tasks, rows)
        before = None if rows_before is None else _answers(task.unchanged, rows_before, names)
    answers = _answers(chosen.answered, chosen.rows[: len(rows)], names)
    return ShownTask(
        number=rows[0]["task"],
        set_name=task.set_name,
        accuracy=chosen.accuracy,
        rank=chosen.rank,
        tasks_in_set=len(chosen.answered.tasks),
        classes=classes,
        answers=[answers.get(classifier) for classifier in classifiers],
        classes_left_out=len(chosen.rows) - len(rows),
        change=_change(rows) if is_changed else "",
        unchanged=None if before is None else [before.get(classifier) for classifier in classifiers],
    )


def _answers(answered: AnsweredTasks, rows: Sequence[int], names: Sequence[str]) -> dict[Classifier, ShownAnswers]:
    """Return the answers of each classifier on some rows of one task; `names` are those of its classes."""

    def called(answers: Answers, row: int) -> list[str] | None:
        slots = None if answers.answered is None else answers.answered[row].as_py()
        return None if slots is None else [names[slot] if 0 <= slot < len(names) else "" for slot in slots]

    return {
        answers.classifier: ShownAnswers(
            [int(answers.counts.n_correct[row]) for row in rows],
            [answers.missed_at(row) for row in rows],
            [called(answers, row) for row in rows],
        )
        for answers in answered.answers
    }


def _same_rows(tasks: TaskSet, rows: Sequence[dict[str, Any]]) -> range | None:
    """Return the rows of another task set with the same task; None if its classes or queries are others."""
    position = np.flatnonzero(tasks.task_of_row[tasks.starts[:-1]] == rows[0]["task"])
    if not len(position):
        return None
    start = int(tasks.starts[position[0]])
    others = tasks.table.slice(start, len(rows)).to_pylist()
    is_same = [row["query"] for row in rows] == [row["query"] for row in others]
    return range(start, start + len(rows)) if is_same else None


def _change(rows: Sequence[dict[str, Any]]) -> str:
    """Name what is changed in a task, without the items whose backgrounds are shown, and on which side."""
    sides = [side for side in SIDES if change_column(side) in rows[0]]
    spelling = next(
        spelling
        for row in rows
        for side in sides
        for spelling in row[change_column(side)]
        if spelling != UNCHANGED_ITEM
    )
    side = "" if sides == ["query"] else " in support and query" if len(sides) == 2 else " in the support"
    return f"{change_words(spelling)}{side}"


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
