"""Direct and paired comparisons side by side, as *Oops, I Sampled it Again* has them (Tables 1 and 3, Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.results.evaluated import Classifier
from shotproof.stats.pairs import Conclusion

CLOSED, OPEN, PAIRED = "closed, direct", "open, direct", "open, paired"


@dataclass(frozen=True)
class Triple:
    """Conclusions on how method `a` compares with method `b`; as published, none is corrected for the number of pairs.

    closed: direct, from the intervals of both over tasks drawn with replacement (Eq. 4)
    open: the same over tasks drawn without replacement
    paired: task by task, on the latter
    at_best: task by task, on tasks without replacement with the best number of queries; None where there are none
    """

    a: Classifier
    b: Classifier
    closed: Conclusion
    open: Conclusion
    paired: Conclusion
    at_best: Conclusion | None = None

    @property
    def inverted(self) -> bool:
        """Whether the direct comparison with replacement says the opposite of one without."""
        return any({self.closed, other} == {"+", "-"} for other in (self.open, self.paired))

    @property
    def signs(self) -> list[Conclusion]:
        """In the paper's order, with that at the best number of queries last where it is known."""
        best = [] if self.at_best is None else [self.at_best]
        return [self.closed, self.open, self.paired, *best]


@dataclass(frozen=True)
class Triples:
    """All pairs of a task set.

    tasks: how many are drawn without replacement
    best_query: the best number of queries per class, Q*; None where no tasks with it were evaluated
    best_tasks: how many tasks without replacement have so many
    """

    pairs: list[Triple]
    tasks: int
    best_query: int | None = None
    best_tasks: int | None = None

    @property
    def names(self) -> list[str]:
        """What each sign of a triple is."""
        best = [] if self.best_query is None else [best_name(self.best_query)]
        return [CLOSED, OPEN, PAIRED, *best]

    @property
    def conclusive(self) -> dict[str, int]:
        """How many comparisons of each kind are conclusive."""
        signs = zip(*(one.signs for one in self.pairs), strict=True)
        return {name: sum(sign != "0" for sign in of) for name, of in zip(self.names, signs, strict=True)}

    @property
    def inverted(self) -> list[Triple]:
        """Where the usual comparison says the opposite of one on tasks without replacement."""
        return [one for one in self.pairs if one.inverted]


@dataclass(frozen=True)
class Fates:
    """What becomes of comparisons that are conclusive with replacement, directly compared (section 3 of the paper).

    regained: not conclusive without replacement, and conclusive again when paired
    unconfirmed: not conclusive when paired
    inverted: the opposite without replacement
    """

    pairs: int
    closed: int
    regained: int
    unconfirmed: int
    inverted: int

    @classmethod
    def of(cls, given: Sequence[Triples]) -> Fates:
        """Counted over any number of task sets."""
        pairs = [one for triples in given for one in triples.pairs]
        closed = [one for one in pairs if one.closed != "0"]
        return cls(
            len(pairs),
            len(closed),
            sum(one.open == "0" and one.paired != "0" for one in closed),
            sum(one.paired == "0" for one in closed),
            sum(one.inverted for one in closed),
        )


def best_name(query: int | None) -> str:
    """What a comparison at the best number of queries is called."""
    return f"{PAIRED}, {'best number of' if query is None else query} {'query' if query == 1 else 'queries'}"
