"""Task sets that are one and the same under several names are told once.

`ood` and `hard-ood` are the same tasks if there are two contexts, or no more queries than other classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shotproof.results.evaluated import Evaluated
from shotproof.stats.evidence import Replicates


def merge_identical(replicates: Sequence[Replicates]) -> tuple[list[Replicates], list[list[str]]]:
    """Keep the first of the task sets that stress the same thing with the same tasks, seed by seed.

    Args:
        replicates: the task sets of one design

    Returns:
        Those that are left, with all classifiers that were evaluated under either name, and the labels of sets that
        are the same, one list for each that has several.
    """
    alike: dict[object, list[Replicates]] = {}
    for one in replicates:
        digests, origin = tuple(each.origin.tasks_digest for each in one.sets), one.origin
        is_alone = origin.axis is None or None in digests
        alike.setdefault(id(one) if is_alone else (digests, origin.axis, origin.attributes), []).append(one)
    kept = []
    for same in alike.values():
        by_seed = zip(*(each.sets for each in same), strict=True)
        kept.append(Replicates([_merged(sets) for sets in by_seed]))
    return kept, [[each.label for each in same] for same in alike.values() if len(same) > 1]


def note_of(same: list[str]) -> str:
    """E.g. `ood and hard-ood are the same tasks here`."""
    return f"{', '.join(same[:-1])} and {same[-1]} are the same tasks here"


def _merged(sets: Sequence[Evaluated]) -> Evaluated:
    """The first of the sets, with the classifiers of all."""
    first, *others = sets
    for other in others:
        first = replace(
            first,
            values=first.values | {one: other.values[one] for one in other.values if one not in first.values},
            features=other.features | first.features,
            by_row=other.by_row | first.by_row,
        )
    return first
