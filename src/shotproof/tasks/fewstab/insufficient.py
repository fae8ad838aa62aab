"""Errors for data that cannot give FewSTAB tasks, and the counts of tries that explain them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData

if TYPE_CHECKING:
    from shotproof.tasks.fewstab.fewstab_sampler import BoundFewStab

_MOST_INCOMPLETE = 200  # supports of one task that may leave too few queries
_HELP = "lower the ways, the shots or the queries, give more attributes or items, or try support='attribute'"


class TryCounts:
    """Counts of tries and successes in one block of tasks."""

    def __init__(self, bound: BoundFewStab) -> None:
        self.bound = bound
        self.tries = 0
        self.successes = 0
        self.incomplete: Counter[int] = Counter()

    def record(self, tries: int, successes: int) -> None:
        """Record a number of tries, and how many of them succeeded."""
        self.tries += tries
        self.successes += successes

    def record_incomplete(self, tasks: IntArray) -> None:
        """Record tasks whose supports left too few queries, because of sources or of a random support."""
        self.incomplete.update(tasks.tolist())
        for task, count in self.incomplete.most_common(1):
            if count >= _MOST_INCOMPLETE:
                raise InsufficientData(
                    f"task {task}: {count} supports left fewer than {self.bound.shape.query} query items of "
                    f"other sources in some class: {_HELP}"
                )

    def tries_per_task(self) -> int:
        """Return how many tries of a task to draw in the next round: about as many as one success takes."""
        expected = 4 if not self.tries else int(np.ceil(self.tries / max(self.successes, 0.5)))
        return min(max(expected, 4), 4096)

    def require_tries_left(self, tasks: IntArray, tried: IntArray) -> None:
        """Raise an error if a task has used up its tries."""
        is_used_up = tried >= self.bound.sampler.max_tries
        if not is_used_up.any():
            return
        task = int(tasks[np.argmax(is_used_up)])
        raise InsufficientData(
            f"task {task} failed {self.bound.sampler.max_tries} tries; {self.bound.explain_failure(task)}; {_HELP}, or "
            "raise max_tries"
        )


def explain_small_supports(bound: BoundFewStab, classes: IntArray, is_too_small: BoolArray) -> str:
    """Name the class whose support was too small in the largest share of its draws, and its words.

    Args:
        bound: sampler that drew the tries
        classes: the classes of the tries, [n, way]
        lacking: whether the support of each was too small, [n, way]
    """
    bins = len(bound.pool.classes)
    drawn = np.bincount(classes.ravel(), minlength=bins)
    share = np.bincount(classes[is_too_small], minlength=bins) / np.maximum(drawn, 1)
    worst = int(np.argmax(share))
    first = bound.first_eligible[worst]
    pairs = bound.eligible[first : first + bound.eligible_counts[worst]]
    counts = ", ".join(
        f"'{bound.words[bound.holders.pair_word[p]]}' {bound.holders.counts[p]}"
        for p in pairs[np.argsort(-bound.holders.counts[pairs], kind="stable")][:5]
    )
    return (
        f"the support is too small: class '{bound.pool.classes[worst]}' ({bound.pool.sizes[worst]} items) "
        f"lacked {bound.shape.shot} items that hold its word and none of the other "
        f"{bound.shape.way - 1} in {share[worst]:.0%} of its draws; number of items that "
        f"hold each of its {len(pairs)} eligible words: {counts}"
    )


def require_usable_classes(bound: BoundFewStab) -> None:
    """Raise InsufficientData if too few classes have an eligible word, or there are too few eligible words."""
    shot, query, way = bound.shape.shot, bound.shape.query, bound.shape.way
    if not len(bound.holders.keys):
        raise InputError("no item of this split has any attribute: the attribute table is empty")
    if len(bound.usable) < way:
        unusable = int(np.flatnonzero(bound.eligible_counts == 0)[0])
        pairs = np.arange(*bound.holders.first_pair[unusable : unusable + 2])
        most = bound.holders.counts[pairs].max(initial=0)
        raise InsufficientData(
            f"{way} ways need {way} classes with an eligible word (held by {shot} items or more and lacked by "
            f"{query} or more); the data has {len(bound.usable)} of {len(bound.pool.classes)}; e.g. class "
            f"'{bound.pool.classes[unusable]}' ({bound.pool.sizes[unusable]} items, {len(pairs)} words, the most "
            f"frequent held by {most}) has none: {_HELP}"
        )
    distinct_words = len(np.unique(bound.holders.pair_word[bound.eligible]))
    if distinct_words < way:
        raise InsufficientData(
            f"{way} ways need {way} different eligible words (held by {shot} items or more of a class and lacked "
            f"by {query} or more); the data has {distinct_words}: {_HELP}"
        )
