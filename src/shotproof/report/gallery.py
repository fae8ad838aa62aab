"""Tasks with thumbnails: support and query of each class, its planted attribute, and which queries were missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shotproof.catalog.catalog import Catalog
from shotproof.progress import progress
from shotproof.report.album import Album, Thumbnail
from shotproof.report.answers import Answers
from shotproof.tasks.taskset import TaskSet

MAX_TASKS = 6


@dataclass(frozen=True)
class ShownClass:
    """One class of a shown task."""

    label: str
    attribute: str | None
    support: list[Thumbnail]
    query: list[Thumbnail]


@dataclass(frozen=True)
class Outcome:
    """One classifier on one shown task, a value a class: correct answers, and missed positions where they are known."""

    correct: list[int]
    missed: list[list[int] | None]


@dataclass(frozen=True)
class ShownTask:
    """One task: its number, the set that it is from, its mean accuracy over all classifiers and its rank by that.

    `outcomes` has an entry a classifier of the gallery; None where that classifier was not evaluated on this set.
    """

    number: int
    set_name: str
    accuracy: float
    rank: int
    tasks_in_set: int
    classes: list[ShownClass]
    outcomes: list[Outcome | None]


@dataclass(frozen=True)
class Gallery:
    """The shown tasks, the classifiers to choose from, and the album that the items are embedded in."""

    tasks: list[ShownTask]
    classifiers: list[tuple[str, str]]
    album: Album

    def marks(self) -> list[list[dict[str, Any] | None]]:
        """What the page's script needs to switch classifiers: outcomes by task, then by classifier."""
        return [[asdict(outcome) if outcome else None for outcome in task.outcomes] for task in self.tasks]


@dataclass(frozen=True)
class AnsweredTasks:
    """A task set under the name that the page gives it, with the answers of every classifier on it."""

    name: str
    tasks: TaskSet
    answers: list[Answers]


def make_gallery(
    sets: Sequence[AnsweredTasks], catalog: Catalog, max_tasks: int = MAX_TASKS, album: Album | None = None
) -> Gallery:
    """Show up to `max_tasks` tasks in all, evenly spaced in each set from the hardest task to the easiest."""
    classifiers = list(dict.fromkeys((one.encoder, one.method) for given in sets for one in given.answers))
    sets = sets[:max_tasks]
    chosen = [
        (given, position)
        for index, given in enumerate(sets)
        for position in choose_tasks(given, max_tasks // len(sets) + (index < max_tasks % len(sets)))
    ]
    album = album or Album(catalog)
    shown: list[ShownTask] = []
    with progress("thumbnails", len(chosen)) as advance:
        for given, (rank, position) in chosen:
            if not shown or album.has_room_for(_items(given.tasks, position)):
                shown.append(_show(given, position, rank, classifiers, album))
            advance(1)
    return Gallery(shown, classifiers, album)


def choose_tasks(given: AnsweredTasks, count: int) -> list[tuple[int, int]]:
    """Rank (1 = hardest) and position of `count` tasks, evenly spaced from hardest to easiest; of one, the median.

    A task is as hard as its mean accuracy over all classifiers; equally hard tasks are in the order of the file.
    """
    order = np.argsort(_accuracy_by_task(given), kind="stable")
    count = min(count, len(order))
    spaced = [0.5] if count == 1 else np.linspace(0, 1, count)
    ranks = [round(float(place) * (len(order) - 1)) for place in spaced]
    return [(rank + 1, int(order[rank])) for rank in ranks]


def _show(
    given: AnsweredTasks, position: int, rank: int, classifiers: Sequence[tuple[str, str]], album: Album
) -> ShownTask:
    rows = _rows(given.tasks, position)
    table = given.tasks.table.slice(rows[0], len(rows))
    classes = [
        ShownClass(row["label"], row["attribute"], album.thumbnails(row["support"]), album.thumbnails(row["query"]))
        for row in table.to_pylist()
    ]
    outcomes = {
        (one.encoder, one.method): Outcome(
            [int(one.n_correct[row]) for row in rows], [one.missed_at(row) for row in rows]
        )
        for one in given.answers
    }
    return ShownTask(
        number=int(given.tasks.task_of_row[rows[0]]),
        set_name=given.name,
        accuracy=float(_accuracy_by_task(given)[position]),
        rank=rank,
        tasks_in_set=len(given.tasks),
        classes=classes,
        outcomes=[outcomes.get(classifier) for classifier in classifiers],
    )


def _rows(tasks: TaskSet, position: int) -> range:
    return range(int(tasks.starts[position]), int(tasks.starts[position + 1]))


def _items(tasks: TaskSet, position: int) -> list[str]:
    rows = _rows(tasks, position)
    table = tasks.table.slice(rows[0], len(rows))
    return [item for name in ("support", "query") for items in table.column(name).to_pylist() for item in items]


def _accuracy_by_task(given: AnsweredTasks) -> Any:
    """The mean over classifiers and classes of the class accuracy, of classes that have queries: [tasks]."""
    share = np.mean([one.share for one in given.answers], axis=0)
    starts = given.tasks.starts[:-1]
    return np.add.reduceat(np.nan_to_num(share), starts) / np.add.reduceat(~np.isnan(share), starts, dtype=np.int64)
