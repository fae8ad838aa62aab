"""Task sets that are one and the same under several names: of two contexts, `ood` and `hard-ood` are."""

from __future__ import annotations

from shotproof.stats.block import Block


def identical_sets(block: Block) -> list[list[str]]:
    """The labels of a design's task sets whose tasks are the same, seed by seed.

    Args:
        block: the task sets of one design

    Returns:
        One list of labels per set that has several, in the order of the block.
    """
    labels: dict[tuple[str | None, ...], list[str]] = {}
    for group in block.measured:
        if all(group.digests):
            labels.setdefault(tuple(group.digests), []).append(group.label)
    return [same for same in labels.values() if len(same) > 1]


def note_of(same: list[str]) -> str:
    """E.g. `ood and hard-ood are the same tasks here`."""
    return f"{', '.join(same[:-1])} and {same[-1]} are the same tasks here"
