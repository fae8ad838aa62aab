"""Why FewSTAB tasks fail on some data: counted while tries are drawn, told when it is hopeless."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from shotproof.draws import IntArray
from shotproof.errors import InputError, Starved

if TYPE_CHECKING:
    from shotproof.tasks.fewstab import FewStabSampler

_MOST_INCOMPLETE = 200  # supports of one task that leave too few queries
_HELP = "lower --way, --shot or --query, give more attributes or items, or try --support attribute"


class Starvation:
    """Counts of what became of the tries of one block of tasks."""

    def __init__(self, sampler: FewStabSampler) -> None:
        self.sampler = sampler
        self.tries = 0
        self.successes = 0
        self.same_words = 0
        self.incomplete: Counter[int] = Counter()
        self.class_drawn = np.zeros(len(sampler.pool.classes), dtype=np.int64)
        self.class_starved = np.zeros(len(sampler.pool.classes), dtype=np.int64)

    def saw_tries(self, tries: int, same_words: int) -> None:
        """So many tries, in so many of which two classes drew the same word."""
        self.tries += tries
        self.same_words += same_words

    def saw_supports(self, classes: IntArray, counts: IntArray) -> None:
        """The sizes of the possible supports, [n, way], of the classes drawn."""
        bins = len(self.class_drawn)
        self.class_drawn += np.bincount(classes.ravel(), minlength=bins)
        self.class_starved += np.bincount(classes[counts < self.sampler.design.shot], minlength=bins)

    def saw_successes(self, successes: int) -> None:
        """So many tries succeeded."""
        self.successes += successes

    def saw_incomplete(self, tasks: IntArray) -> None:
        """The supports drawn for these tasks left too few queries: with sources, or with support at random."""
        self.incomplete.update(tasks.tolist())
        for task, times in self.incomplete.most_common(1):
            if times >= _MOST_INCOMPLETE:
                raise Starved(
                    f"task {task}: {times} supports left fewer than {self.sampler.design.query} query items of "
                    f"other sources in some class: {_HELP}"
                )

    def tries_a_task(self) -> int:
        """How many tries of a task to draw in the next round: about as many as one success takes."""
        expected = 4 if not self.tries else int(np.ceil(self.tries / max(self.successes, 0.5)))
        return min(max(expected, 4), 4096)

    def refuse_if_hopeless(self, tasks: IntArray, tried: IntArray) -> None:
        """Stop once a task has had its tries."""
        hopeless = tried >= self.sampler.max_tries
        if not hopeless.any():
            return
        raise Starved(
            f"task {tasks[np.argmax(hopeless)]} failed {self.sampler.max_tries} tries; {self._cause()}; "
            f"{_HELP}, or raise --max-tries"
        )

    def _cause(self) -> str:
        sampler = self.sampler
        if not self.class_starved.any():
            return (
                f"two classes drew the same word in {self.same_words} of {self.tries} tries: the classes have too few "
                f"different eligible words ({len(np.unique(sampler.holders.pair_word[sampler.eligible]))} in all)"
            )
        share = self.class_starved / np.maximum(self.class_drawn, 1)
        worst = int(np.argmax(share))
        first = sampler.first_eligible[worst]
        pairs = sampler.eligible[first : first + sampler.eligible_counts[worst]]
        counts = ", ".join(
            f"'{sampler.words[sampler.holders.pair_word[p]]}' {sampler.holders.counts[p]}"
            for p in pairs[np.argsort(-sampler.holders.counts[pairs], kind="stable")][:5]
        )
        return (
            f"the support starves: class '{sampler.pool.classes[worst]}' ({sampler.pool.sizes[worst]} items) "
            f"lacked {sampler.design.shot} items that hold its word and none of the other "
            f"{sampler.design.way - 1} in {share[worst]:.0%} of its draws; its {len(pairs)} eligible words, with the "
            f"items that hold them: {counts}"
        )


def refuse_unusable(sampler: FewStabSampler) -> None:
    """Refuse data in which too few classes have an eligible word, or too few eligible words differ."""
    shot, query, way = sampler.design.shot, sampler.design.query, sampler.design.way
    if not len(sampler.holders.keys):
        raise InputError("the attributes hold no word of any item of this split: the attribute table is empty")
    if len(sampler.usable) < way:
        barren = int(np.flatnonzero(sampler.eligible_counts == 0)[0])
        pairs = np.arange(*sampler.holders.first_pair[barren : barren + 2])
        most = sampler.holders.counts[pairs].max(initial=0)
        raise Starved(
            f"{way} ways need {way} classes with an eligible word (held by {shot} items or more and lacked by "
            f"{query} or more), the data has {len(sampler.usable)} of {len(sampler.pool.classes)}; e.g. class "
            f"'{sampler.pool.classes[barren]}' ({sampler.pool.sizes[barren]} items, {len(pairs)} words, the most "
            f"frequent held by {most}) has none: {_HELP}"
        )
    different = len(np.unique(sampler.holders.pair_word[sampler.eligible]))
    if different < way:
        raise Starved(
            f"{way} ways need {way} different eligible words (held by {shot} items or more of a class and lacked "
            f"by {query} or more), the data has {different}: {_HELP}"
        )
