"""Why an interval that was asked for could not be given, in sentences."""

from __future__ import annotations

from shotproof.core.nouns import nouns
from shotproof.stats.comparison import Comparison
from shotproof.stats.export.numbers import listed


def interval_sentences(comparison: Comparison) -> list[str]:
    """Say on which tasks the first interval could not be given, and why: one sentence per reason.

    Args:
        comparison: whose intervals are told

    Returns:
        The sentences; none where the first interval is everywhere.
    """
    wanted = comparison.covers[0]
    measured = [(block, group) for block in comparison.blocks for group in block.measured]
    sets: dict[str, list[str]] = {}
    for block, group in measured:
        refused = [row.intervals[comparison.metric][wanted].refused for row in group.rows]
        if refused and refused[0] is not None and all(refused):
            reason = refused[0].partition(";")[0].removeprefix(f"{group.label}: ")  # details are on the page
            sets.setdefault(reason, []).append(f"{group.label} ({comparison.design_name(block.design)})")
    others = [name for name in comparison.covers[1:] if name not in comparison.refused]
    instead = f"; the {others[0]} interval stands in its place" if others else ""
    if others and others[0] == "sampler":
        instead += f", and is about these {nouns(comparison.medium)} only"
    everywhere = len(sets) == 1 and wanted in comparison.refused
    return [
        f"No {wanted} interval{'' if everywhere else f' on {listed(labels, 3)} tasks'}: {reason}{instead}."
        for reason, labels in sets.items()
    ]
