"""How the page and the terminal say things: numbers in percent, named intervals, the finding in a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from shotproof.evaluation.sources import RANDOM, REFERENCES, UNKNOWN, Design
from shotproof.report.comparison import Comparison
from shotproof.stats.intervals import Covers, Interval

# FewSTAB's names of the metrics: wAcc-R on random tasks, wAcc-A on tasks with biased attributes.
SYMBOLS = {RANDOM: "R", "fewstab": "A"}

# Samplers whose tasks mislead by a shortcut; the tasks of others are hard for other reasons.
SHORTCUTS = ("fewstab", "ood", "hard_ood", "shift")

# With more designs and samplers than this, the headline speaks of the largest design alone.
MAX_EXTREMES = 3

MINUS = "\u2212"

# What to know of an interval beside what it covers.
CAUTION: dict[Covers, str] = {
    "sampler": "Student’s t over tasks. Biased samplers reuse items heavily, so theirs is the least trustworthy.",
    "depletion": "Student’s t over tasks drawn without replacement until the data is used up; their mean is another.",
    "images": "From re-evaluation on random halves of each class’s images.",
    "classes": "From re-evaluation on random halves of the classes; with few classes it is wide, honestly.",
}


def percent(share: float) -> str:
    """A share in percent, with one decimal, without the sign."""
    if math.isnan(share):
        return "n/a"
    text = f"{100 * share:.1f}"
    return "0.0" if text == "-0.0" else text


def bounds(interval: Interval) -> str:
    """The interval's ends in percent, in brackets."""
    if interval.refused:
        return "[no interval]"
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def typeset(text: str) -> str:
    """With minus signs instead of hyphens before numbers, as wide as a digit on the page."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def metric(name: str, sampler: str) -> str:
    """E.g. `wAcc-A`: the metric with the symbol of the tasks that it was measured on."""
    return f"{name}-{SYMBOLS.get(sampler, sampler)}"


def reference_metric(name: str, comparison: Comparison) -> str:
    """The metric on the tasks that the others are measured against, e.g. `Acc-R`."""
    return metric(name, comparison.references[0]) if len(comparison.references) == 1 else f"{name} (reference)"


def biased_metric(name: str, comparison: Comparison) -> str:
    """The metric on the tasks that are not the reference; by the sampler's symbol where there is only one."""
    samplers = comparison.biased_samplers or ["fewstab"]
    return metric(name, samplers[0]) if len(samplers) == 1 else f"{name} (biased)"


def classifier(encoder: str, method: str) -> str:
    """A classifier in words."""
    return method if encoder == UNKNOWN else f"{method} on {encoder}"


def headline(comparison: Comparison) -> list[str]:
    """What was measured and what came out, in plain sentences."""
    sentences = [_measured(comparison)]
    if not comparison.agreements:
        sentences.append(
            "There is no gap to report: that needs the same classifiers on random (or iid) tasks and on others of the "
            "same catalog, split, way, shot and query."
        )
    told = comparison.agreements
    if len(told) > MAX_EXTREMES:
        told = [one for one in told if one.design == comparison.designs[-1]]
    return sentences + [_extremes(comparison, one.design, one.sampler) for one in told]


def _measured(comparison: Comparison) -> str:
    classifiers = len({(row.encoder, row.method) for row in comparison.rows})
    encoders, methods = len(comparison.encoders), len(comparison.methods)
    kinds = f"{_count(encoders, 'encoder')} × {_count(methods, 'method')}"
    if classifiers != encoders * methods:
        kinds = f"{_count(encoders, 'encoder')}, {_count(methods, 'method')}"
    designs = _listed([comparison.design_name(design) for design in comparison.designs])
    sizes: dict[str, set[int]] = {}
    for row in comparison.rows:
        for measurement in (row.reference, row.biased):
            if measurement:
                sizes.setdefault(measurement.sampler, set()).add(measurement.tasks)
    sets = _listed([f"{_range(sizes[name])} {_sampler_words(name)}" for name in sorted(sizes, key=_reference_first)])
    tested = "was tested" if classifiers == 1 else "were tested"
    each = " each" if len(comparison.designs) > 1 else ""
    return f"{_count(classifiers, 'classifier')} ({kinds}) {tested} on {designs} tasks: {sets}{each}."


def _extremes(comparison: Comparison, design: Design, sampler: str) -> str:
    """Which classifier loses most and which least, on one design and sampler."""
    rows = [
        row
        for row in comparison.rows
        if row.biased and (row.design, row.biased.sampler) == (design, sampler) and row.gap
    ]
    losses = sorted(
        (row.gap.mean, f"{percent(row.gap.mean)} points {bounds(row.gap)}", classifier(row.encoder, row.method))
        for row in rows
        if row.gap
    )
    first = next(row.reference.sampler for row in rows if row.reference)
    (_, least, most_robust), (_, most, least_robust) = losses[0], losses[-1]
    start = f"On {comparison.design_name(design)} tasks, {least_robust}"
    kind = sampler.partition(" (")[0]  # variants of a sampler have their options in brackets
    if len(losses) == 1:
        return f"{start} loses {most} of worst-class accuracy ({sampler} against {first})."
    loses, it = ("leans on shortcuts", "leans on them") if kind in SHORTCUTS else ("loses", "loses")
    return (
        f"{start} {loses} most: its worst-class accuracy is {most} lower on {sampler} tasks than on {first} "
        f"ones; {most_robust} {it} least: {least}."
    )


def _sampler_words(sampler: str) -> str:
    if sampler == UNKNOWN:
        return "tasks of an unknown sampler"
    return f"{sampler} tasks"


def _reference_first(sampler: str) -> tuple[bool, str]:
    return sampler not in REFERENCES, sampler


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
