"""Sentences of a cure: what helps, what it costs, what supports to take, and what to collect; at most five."""

from __future__ import annotations

from collections.abc import Iterator

from shotproof.comparison.numbers import bounds, level, listed, percent, points
from shotproof.core.nouns import counted, nouns
from shotproof.cures.cure import Cure, SupportPoint, TriedRemedy
from shotproof.cures.effects import AS_IS, Effect
from shotproof.results.encoder_names import short_encoder_names

MOST_SENTENCES = 5
CONDITIONS = {
    "mixed-rival": "when the background changes to that of another class of the task",
    "mixed-random": "when the background changes to that of any item",
}


def cure_sentences(cure: Cure) -> list[str]:
    """State what was found, in at most five sentences."""
    sentences = [
        *_remedy_sentences(cure),
        *_support_sentences(cure),
        *_collect_sentences(cure),
        *_basis_sentences(cure),
    ]
    return sentences[:MOST_SENTENCES]


def condition(axis: str) -> str:
    """Say on which tasks something is lost."""
    return CONDITIONS.get(axis, f"on {axis} tasks")


def _remedy_sentences(cure: Cure) -> Iterator[str]:
    """State what the recommended remedy does, or that none does anything conclusive."""
    row = cure.row(cure.recommended)
    classifier = f"{cure.method} on {short_encoder_names([cure.encoder])[cure.encoder]}"
    if row is None:
        axes = list(dict.fromkeys(effect.axis for effect in _baseline_effects(cure)))
        if axes and not any(_is_loss(effect) for effect in _baseline_effects(cure)):
            yield (
                f"There is nothing to cure: {classifier} does not conclusively lose accuracy above chance "
                f"{listed(list(map(condition, axes)), last='or')}."
            )
            return
        yield (
            f"Of {counted(len(cure.tried), 'remedy', 'remedies')} tried, none conclusively lowers what {classifier} "
            f"loses without costing accuracy.{_settling(cure)}"
        )
        return
    helped = [effect for effect in row.effects if effect.outcome == "helps"]
    parts = [
        f"{percent(effect.after.mean)}% instead of {percent(effect.before.mean)}% {condition(effect.axis)} "
        f"({points(effect.difference.mean)} points {bounds(effect.difference)})"
        for effect in helped
    ]
    compared = "" if row.baseline == AS_IS else f", compared with {row.baseline}"
    yield f"With {row.title}, {classifier} loses less of its accuracy above chance{compared}: {listed(parts)}."
    needs = f" It needs {row.needs}." if row.needs else ""
    yield (
        f"Accuracy on {row.plain} tasks goes from {percent(row.accuracy_before.mean)}% to "
        f"{percent(row.accuracy_after.mean)}% ({points(row.accuracy_difference.mean)} points "
        f"{bounds(row.accuracy_difference)}).{needs}"
    )


def _settling(cure: Cure) -> str:
    """Say how many more tasks would settle the remedy that seems to help most."""
    unsettled = [
        (effect.difference.mean, effect.more_tasks, row.title)
        for row in cure.tried
        for effect in row.effects
        if effect.more_tasks and effect.difference.mean < 0
    ]
    if not unsettled:
        return ""
    _, tasks, name = min(unsettled)
    return f" About {_rounded(tasks):,} more tasks would settle it for {name}, if it helps as much as it seems to."


def _rounded(number: int) -> int:
    """Round to two digits."""
    return int(float(f"{number:.1e}"))


def _support_sentences(cure: Cure) -> Iterator[str]:
    """State what supports from several contexts change, or else more shots, if their intervals do not overlap."""
    curves: dict[tuple[bool, str], list[SupportPoint]] = {}
    for point in cure.supports:
        if not point.lost.refused:
            curves.setdefault((point.contexts is None, point.axis), []).append(point)
    for (_, axis), curve in sorted(curves.items()):  # by contexts first
        first, last = curve[0], min(curve, key=lambda point: point.lost.mean)
        if last.lost.high < first.lost.low:
            yield (
                f"{_supports(last)} instead of {first.contexts or first.shots} lower the share that is lost "
                f"{condition(axis)} from {percent(first.lost.mean)}% {bounds(first.lost)} to "
                f"{percent(last.lost.mean)}% {bounds(last.lost)}."
            )
            return


def _supports(point: SupportPoint) -> str:
    if point.contexts is None:
        return counted(point.shots, "support")
    return f"Supports from {counted(point.contexts, 'context')}"


def _collect_sentences(cure: Cure) -> Iterator[str]:
    """Name the items to collect first."""
    if not cure.collect:
        return
    items = nouns(cure.medium)
    wanted = [
        f"{row.having - row.lacking:,} more {items} of {row.label} without '{row.cue}' ({row.having:,} have it, "
        f"{row.lacking:,} do not)"
        for row in cure.collect[:2]
    ]
    yield f"To balance what costs most, collect {listed(wanted)}."


def _basis_sentences(cure: Cure) -> Iterator[str]:
    """State what the statements are based on."""
    fit, choose, confirm = (cure.parts[part] for part in ("fit", "choose", "confirm"))
    is_chosen = any(row.score is not None for row in cure.tried)
    chosen = f"chosen on {choose} others" if is_chosen else "taken with their first settings"
    names = list(dict.fromkeys(effect.difference.covers for row in cure.tried for effect in row.effects))
    yield (
        f"Basis: {cure.design} tasks; remedies were fitted on {fit} classes, {chosen} and confirmed "
        f"on {confirm} others; {level(cure.level)} {listed(names)} intervals, conclusions corrected for "
        f"{counted(len(cure.tried), 'remedy', 'remedies')}."
    )


def _baseline_effects(cure: Cure) -> list[Effect]:
    """Return one effect per axis, for what is lost before."""
    effects = [effect for row in cure.tried if row.baseline == AS_IS for effect in row.effects]
    return list({effect.axis: effect for effect in effects}.values())


def _is_loss(effect: Effect) -> bool:
    return not effect.before.refused and effect.before.low > 0


def apply_lines(cure: Cure, row: TriedRemedy) -> list[str]:
    """Return the lines that apply a remedy: of a command, and of Python."""
    if row.family != "features":
        return list(row.apply)
    steps = [line.removeprefix('--transform "').removesuffix('"') for line in row.apply]
    listed_steps = ", ".join(f'"{step}"' for step in steps)
    return [
        "shotproof evaluate tasks.parquet features.parquet " + " ".join(row.apply),
        f"features = sp.transform(features, [{listed_steps}])",
        f"transforms = [{listed_steps}]  # [features] of an experiment file",
    ]
