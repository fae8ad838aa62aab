"""Why a class of a task is hard: what its support has and its query lacks, or the other way round, and what lures."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from shotproof.analysis.explanation.chance import expected_mismatch
from shotproof.analysis.explanation.mismatch import Side
from shotproof.analysis.exploration.explored_tasks import NONE, ExploredTasks
from shotproof.core.arrays import IntArray

WORDS = 3  # told per class
LEAST_EXCESS = 20.0  # points above chance from which a mismatch is told
LEAST_LURED = 0.2  # share of a class's queries from which a lure is told

_chance = lru_cache(maxsize=256)(expected_mismatch)


@dataclass(frozen=True)
class Lure:
    """Queries that have what was planted in the support of another class.

    slot: of that class
    query: the positions of these queries
    """

    word: str
    slot: int
    query: list[int]


@dataclass(frozen=True)
class WordMismatch:
    """A word that support and query hold to another share than chance would give.

    support, query: the positions of the items that hold it
    excess: |percentage of the support - percentage of the query|, less what chance gives, in points
    """

    word: str
    support: list[int]
    query: list[int]
    excess: float


@dataclass(frozen=True)
class Reasons:
    """Why one class of a task is hard, the strongest reasons first."""

    lures: list[Lure]
    mismatches: list[WordMismatch]


def reasons_of(tasks: ExploredTasks, rows: range) -> list[Reasons]:
    """The reasons of each class of one task."""
    support, query = (_sides_of(tasks, side, rows) for side in (tasks.support, tasks.query))
    codes = tasks.planted.codes[rows.start : rows.stop]
    planted = [None if code == NONE else tasks.planted.names[code] for code in codes]
    return [
        Reasons(_lures(query[slot], planted, slot), _mismatches(support[slot], query[slot]))
        for slot in range(len(rows))
    ]


@dataclass(frozen=True)
class _ShownItems:
    """The support or the query items of one row; `holds` [items, words] is None where no attributes know them."""

    tasks: ExploredTasks
    items: IntArray
    holds: npt.NDArray[np.bool_] | None

    def holders(self, word: str) -> list[int]:
        """The positions of those that hold a word, or are in the context of this name."""
        holds = np.zeros(len(self.items), dtype=np.bool_)
        place = bisect_left(self.tasks.context.names, word)
        if word in self.tasks.context.names[place : place + 1]:
            holds |= self.tasks.context.codes[self.items] == place
        if self.holds is not None and self.tasks.held is not None:
            place = bisect_left(self.tasks.held.words, word)
            if word in self.tasks.held.words[place : place + 1]:
                holds |= self.holds[:, place]
        found: list[int] = np.flatnonzero(holds).tolist()
        return found


def _sides_of(tasks: ExploredTasks, side: Side, rows: range) -> list[_ShownItems]:
    """One side of each row; words are looked up for all of them at once, which takes most of the time."""
    ends = side.ends[rows.start : rows.stop + 1]
    items, inner = side.items[ends[0] : ends[-1]], ends[1:-1] - ends[0]
    each = np.split(items, inner)
    holds = [None] * len(rows) if tasks.held is None else np.split(tasks.held.matrix[items].toarray(), inner)
    return [_ShownItems(tasks, *one) for one in zip(each, holds, strict=True)]


def _lures(query: _ShownItems, planted: Sequence[str | None], own: int) -> list[Lure]:
    found = [
        Lure(word, slot, holders)
        for slot, word in enumerate(planted)
        if word not in (None, planted[own])
        and (holders := query.holders(word))
        and len(holders) >= LEAST_LURED * len(query.items)
    ]
    return sorted(found, key=lambda one: -len(one.query))[:WORDS]


def _mismatches(support: _ShownItems, query: _ShownItems) -> list[WordMismatch]:
    held = support.tasks.held
    if held is None or support.holds is None or query.holds is None:
        return []
    sizes = [int(held.known[side.items].sum()) for side in (support, query)]
    if not all(sizes):
        return []
    counts = [side.sum(axis=0) for side in (support.holds, query.holds)]
    distance = abs(counts[0] / sizes[0] - counts[1] / sizes[1])
    excess = 100 * distance - _chance(*sizes)[counts[0] + counts[1]]
    strongest = [int(word) for word in np.argsort(-excess, kind="stable")[:WORDS] if excess[word] >= LEAST_EXCESS]
    return [
        WordMismatch(
            held.words[word],
            np.flatnonzero(support.holds[:, word]).tolist(),
            np.flatnonzero(query.holds[:, word]).tolist(),
            float(excess[word]),
        )
        for word in strongest
    ]
