"""Tasks with thumbnails: support and query of each class, its planted attribute, and which queries were missed."""

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
SHOWN_ITEMS = 400  # of a task, but those of two classes at least


@dataclass(frozen=True)
class ShownClass:
    """One class of a shown task, under its name for people.

    attribute: that its support holds; what: what it is called, `planted` or the name of the contexts
    """

    name: str
    attribute: str | None
    what: str
    support: list[Thumbnail]
    query: list[Thumbnail]


@dataclass(frozen=True)
class ShownAnswers:
    """One classifier on one shown task, one value per class: correct answers, and missed positions where known."""

    correct: list[int]
    missed: list[list[int] | None]


@dataclass(frozen=True)
class ShownTask:
    """One task: its number in its set, how hard it is there, and its classes.

    answers: one entry per classifier of the gallery; None where that classifier was not evaluated on this set
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
    """The shown tasks, and the classifiers to choose from."""

    tasks: list[ShownTask]
    classifiers: list[Classifier]

    def marks(self) -> list[list[dict[str, Any] | None]]:
        """What the page's script needs to switch classifiers: answers by task, then by classifier."""
        return [[asdict(answers) if answers else None for answers in task.answers] for task in self.tasks]


def make_gallery(tasks: Sequence[GalleryTask], album: Album, only: Collection[Classifier] | None = None) -> Gallery:
    """Show the tasks, as many as the album has room for, but at least one, and the answers of `only` these."""
    answered = dict.fromkeys(answer.classifier for task in tasks for answer in task.chosen.answered.answers)
    classifiers = [one for one in answered if only is None or one in only]
    shown: list[ShownTask] = []
    with current_runtime().progress_bar("thumbnails", len(tasks)) as advance:
        for given in tasks:
            rows = _rows(given)
            items = [item for row in rows for side in ("support", "query") for item in row[side]]
            if not shown or album.has_room_for(items, given.catalog):
                shown.append(_show(given, rows, classifiers, album))
            advance(1)
    return Gallery(shown, classifiers)


def _show(
    given: GalleryTask, rows: Sequence[dict[str, Any]], classifiers: Sequence[Classifier], album: Album
) -> ShownTask:
    chosen, catalog = given.chosen, given.catalog
    own_column = chosen.answered.tasks.record.context_column
    column, what = own_column or CONTEXT, own_column.replace("_", " ") if own_column else PLANTED
    classes = [
        ShownClass(
            catalog.class_names.get(row["label"], row["label"]),
            row["attribute"],
            what,
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
        set_name=given.set_name,
        accuracy=chosen.accuracy,
        rank=chosen.rank,
        tasks_in_set=len(chosen.answered.tasks),
        classes=classes,
        answers=[answers.get(classifier) for classifier in classifiers],
        classes_left_out=len(chosen.rows) - len(rows),
    )


def _rows(given: GalleryTask) -> list[dict[str, Any]]:
    """Return the rows of a task; of one with very many items, those of its first classes."""
    rows = given.chosen.rows
    found: list[dict[str, Any]] = given.chosen.answered.tasks.table.slice(rows[0], len(rows)).to_pylist()
    items = itertools.accumulate(len(row["support"]) + len(row["query"]) for row in found)
    return found[: max(2, sum(count <= SHOWN_ITEMS for count in items))]


@dataclass(frozen=True)
class ShownFooled:
    """A query with its class's name for people, and the name of the class that it was called."""

    found: FooledQuery
    name: str
    called: str
    query: Thumbnail
    own_support: list[Thumbnail]
    called_support: list[Thumbnail]


@dataclass(frozen=True)
class FooledPart:
    """The section: what it is about, and the examples."""

    fooled: Fooled
    classifier: str
    set_name: str
    examples: list[ShownFooled]


def fooled_part(fooled: Fooled, comparison: Comparison, album: Album) -> FooledPart:
    """Return the examples with their items in the album."""
    column = fooled.column or CONTEXT
    names = fooled.catalog.class_names

    def shown(one: FooledQuery) -> ShownFooled:
        query, own, called = (
            album.thumbnails(items, fooled.catalog, column)
            for items in ([one.item], one.own_support, one.called_support)
        )
        return ShownFooled(one, names[one.label], names[one.called], query[0], own, called)

    return FooledPart(
        fooled,
        comparison.classifier_title(fooled.classifier),
        f"{fooled.label} tasks ({comparison.design_name(fooled.design)})",
        [shown(example) for example in fooled.examples],
    )
