"""Why FewSTAB tasks fail on some data: counted while tries are drawn, told when it is hopeless."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData

if TYPE_CHECKING:
    from shotproof.tasks.fewstab.fewstab_sampler import BoundFewStab

_MOST_INCOMPLETE = 200  # supports of one task that leave too few queries
_HELP = "lower the ways, the shots or the queries, give more attributes or items, or try support='attribute'"


class TryCounts:
    """Counts of what became of the tries of one block of tasks."""

    def __init__(self, bound: BoundFewStab) -> None:
        self.bound = bound
        self.tries = 0
        self.successes = 0
        self.incomplete: Counter[int] = Counter()

    def record(self, tries: int, successes: int) -> None:
        """So many tries, of which so many succeeded."""
        self.tries += tries
        self.successes += successes

    def record_incomplete(self, tasks: IntArray) -> None:
        """The supports drawn for these tasks left too few queries: with sources, or with support at random."""
        self.incomplete.update(tasks.tolist())
        for task, times in self.incomplete.most_common(1):
            if times >= _MOST_INCOMPLETE:
                raise InsufficientData(
                    f"task {task}: {times} supports left fewer than {self.bound.shape.query} query items of "
                    f"other sources in some class: {_HELP}"
                )

    def tries_per_task(self) -> int:
        """How many tries of a task to draw in the next round: about as many as one success takes."""
        expected = 4 if not self.tries else int(np.ceil(self.tries / max(self.successes, 0.5)))
        return min(max(expected, 4), 4096)

    def refuse_if_hopeless(self, tasks: IntArray, tried: IntArray) -> None:
        """Stop once a task has had its tries."""
        hopeless = tried >= self.bound.sampler.max_tries
        if not hopeless.any():
            return
        task = int(tasks[np.argmax(hopeless)])
        raise InsufficientData(
            f"task {task} failed {self.bound.sampler.max_tries} tries; {self.bound.why_tries_fail(task)}; {_HELP}, or "
            "raise max_tries"
        )


def why_supports_lack(bound: BoundFewStab, classes: IntArray, lacking: BoolArray) -> str:
    """Name the class whose support was too small in the largest share of its draws, with its words.

    Args:
        bound: what drew the tries
        classes: the classes of the tries, [n, way]
        lacking: whether the support of each was too small, [n, way]
    """
    bins = len(bound.pool.classes)
    share = np.bincount(classes[lacking], minlength=bins) / np.maximum(np.bincount(classes.ravel(), minlength=bins), 1)
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
        f"{bound.shape.way - 1} in {share[worst]:.0%} of its draws; its {len(pairs)} eligible words, with the "
        f"items that hold them: {counts}"
    )


def refuse_unusable(bound: BoundFewStab) -> None:
    """Refuse data in which too few classes have an eligible word, or too few eligible words differ."""
    shot, query, way = bound.shape.shot, bound.shape.query, bound.shape.way
    if not len(bound.holders.keys):
        raise InputError("the attributes hold no word of any item of this split: the attribute table is empty")
    if len(bound.usable) < way:
        barren = int(np.flatnonzero(bound.eligible_counts == 0)[0])
        pairs = np.arange(*bound.holders.first_pair[barren : barren + 2])
        most = bound.holders.counts[pairs].max(initial=0)
        raise InsufficientData(
            f"{way} ways need {way} classes with an eligible word (held by {shot} items or more and lacked by "
            f"{query} or more), the data has {len(bound.usable)} of {len(bound.pool.classes)}; e.g. class "
            f"'{bound.pool.classes[barren]}' ({bound.pool.sizes[barren]} items, {len(pairs)} words, the most "
            f"frequent held by {most}) has none: {_HELP}"
        )
    different = len(np.unique(bound.holders.pair_word[bound.eligible]))
    if different < way:
        raise InsufficientData(
            f"{way} ways need {way} different eligible words (held by {shot} items or more of a class and lacked "
            f"by {query} or more), the data has {different}: {_HELP}"
        )
