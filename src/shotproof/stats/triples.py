"""Direct and paired comparisons side by side, as in *Oops, I Sampled it Again* (Tables 1 and 3, Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.results.evaluated import Classifier
from shotproof.stats.pairs import Conclusion

CLOSED, OPEN, PAIRED = "closed, direct", "open, direct", "open, paired"


@dataclass(frozen=True)
class Triple:
    """Conclusions on methods `a` and `b`; as published, without correction for the number of pairs.

    closed: direct, from the intervals of both over tasks drawn with replacement (Eq. 4)
    open: the same over tasks drawn without replacement
    paired: task by task, on tasks drawn without replacement
    at_best: task by task, on tasks without replacement with the best number of queries; None if there are none
    """

    a: Classifier
    b: Classifier
    closed: Conclusion
    open: Conclusion
    paired: Conclusion
    at_best: Conclusion | None = None

    @property
    def inverted(self) -> bool:
        """Return whether the direct comparison with replacement contradicts one without."""
        return any({self.closed, conclusion} == {"+", "-"} for conclusion in (self.open, self.paired))

    @property
    def signs(self) -> list[Conclusion]:
        """Return the conclusions in the paper's order; that at the best number of queries is last, if known."""
        best = [] if self.at_best is None else [self.at_best]
        return [self.closed, self.open, self.paired, *best]


@dataclass(frozen=True)
class Triples:
    """Comparisons of all pairs on a task set.

    tasks: the number of tasks drawn without replacement
    best_query: the best number of queries per class, Q*; None if no tasks with it were evaluated
    best_tasks: the number of tasks without replacement with this number of queries
    """

    pairs: list[Triple]
    tasks: int
    best_query: int | None = None
    best_tasks: int | None = None

    @property
    def names(self) -> list[str]:
        """Return the name of each conclusion of a triple."""
        best = [] if self.best_query is None else [best_name(self.best_query)]
        return [CLOSED, OPEN, PAIRED, *best]

    @property
    def conclusive(self) -> dict[str, int]:
        """Count the conclusive comparisons of each kind."""
        signs = zip(*(triple.signs for triple in self.pairs), strict=True)
        return {
            name: sum(sign != "0" for sign in kind_signs) for name, kind_signs in zip(self.names, signs, strict=True)
        }

    @property
    def inverted(self) -> list[Triple]:
        """Return the pairs whose usual comparison (closed, direct) contradicts one on tasks without replacement."""
        return [triple for triple in self.pairs if triple.inverted]


@dataclass(frozen=True)
class Fates:
    """Outcomes of comparisons that are conclusive with replacement, compared directly (section 3 of the paper).

    regained: not conclusive without replacement, and conclusive again if paired
    unconfirmed: not conclusive if paired
    inverted: the opposite without replacement
    """

    pairs: int
    closed: int
    regained: int
    unconfirmed: int
    inverted: int

    @classmethod
    def of(cls, all_triples: Sequence[Triples]) -> Fates:
        """Count the outcomes over any number of task sets."""
        pairs = [triple for triples in all_triples for triple in triples.pairs]
        closed = [triple for triple in pairs if triple.closed != "0"]
        return cls(
            len(pairs),
            len(closed),
            sum(triple.open == "0" and triple.paired != "0" for triple in closed),
            sum(triple.paired == "0" for triple in closed),
            sum(triple.inverted for triple in closed),
        )


def best_name(query: int | None) -> str:
    """Return the name of the comparison at the best number of queries."""
    return f"{PAIRED}, {'best number of' if query is None else query} {'query' if query == 1 else 'queries'}"
