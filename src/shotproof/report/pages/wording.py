"""How the page and the terminal say things: numbers in percent, named intervals, the finding in a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from shotproof.core.records import UNKNOWN
from shotproof.evaluation.evaluated import Classifier
from shotproof.evaluation.origin import RANDOM, REFERENCES, Design
from shotproof.stats.block import Group
from shotproof.stats.comparison import Comparison
from shotproof.stats.intervals import Covers, Interval

# FewSTAB's names of the metrics: wAcc-R on random tasks, wAcc-A on tasks with biased attributes.
SYMBOLS = {RANDOM: "R", "fewstab": "A"}

# Samplers whose tasks mislead by a shortcut; the tasks of others are hard for other reasons.
SHORTCUTS = ("fewstab", "ood", "hard-ood", "shift")

# With more designs and samplers than this, the headline speaks of the largest design of each data set alone.
MAX_EXTREMES = 3

MINUS = "\u2212"

# What to know of an interval besides what it covers.
CAUTION: dict[Covers, str] = {
    "sampler": "Student’s t over tasks. Biased samplers reuse items heavily, so theirs is the least trustworthy.",
    "depletion": "Student’s t over tasks drawn without replacement until the data is used up; their mean is another.",
    "images": "From re-evaluation on random halves of each class’s images.",
    "classes": "From re-evaluation on random halves of the classes; with few classes it is wide, honestly.",
}


def percent(value: float) -> str:
    """A number that is in percent, with one decimal, without the sign of percent."""
    if math.isnan(value):
        return "n/a"
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def bounds(interval: Interval) -> str:
    """The interval's ends, in brackets."""
    if interval.refused:
        return "[no interval]"
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{round(difference, 1) + 0.0:+.1f}"


def level(share: float) -> str:
    """The level of an interval, e.g. `95%`."""
    return f"{100 * share:.4g}%"


def typeset(text: str) -> str:
    """With minus signs instead of hyphens before numbers, as wide as a digit on the page."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def metric(name: str, label: str) -> str:
    """E.g. `wAcc-A` or `wAcc-A [captions]`: the metric with the symbol of the tasks that it was measured on."""
    sampler = sampler_of(label)
    return f"{name}-{SYMBOLS.get(sampler, sampler)}{label.removeprefix(sampler)}"


def reference_metric(name: str, comparison: Comparison) -> str:
    """The metric on the tasks that the others are measured against, e.g. `Acc-R`."""
    return metric(name, comparison.references[0]) if len(comparison.references) == 1 else f"{name} (reference)"


def biased_metric(name: str, comparison: Comparison) -> str:
    """The metric on the tasks that are not the reference; by the sampler's symbol where there is only one."""
    labels = comparison.biased_samplers or ["fewstab"]
    return metric(name, labels[0]) if len(labels) == 1 else f"{name} (biased)"


def sampler_of(label: str) -> str:
    """The sampler of a task set: its label without options and detector."""
    return re.split(r"[( ]", label, maxsplit=1)[0]


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
        largest = {design.data_set: design for design in comparison.designs}
        told = [one for one in told if one.design == largest[one.design.data_set]]
    return sentences + [_extremes(comparison, one.design, one.label) for one in told]


def _measured(comparison: Comparison) -> str:
    classifiers = len({(row.encoder, row.method) for row in comparison.rows})
    encoders, methods = len(comparison.encoders), len(comparison.methods)
    kinds = f"{_count(encoders, 'encoder')} × {_count(methods, 'method')}"
    if classifiers != encoders * methods:
        kinds = f"{_count(encoders, 'encoder')}, {_count(methods, 'method')}"
    tested = f"{_count(classifiers, 'classifier')} ({kinds}) {'was' if classifiers == 1 else 'were'} tested on"
    blocks = {comparison.design_name(block.design): block for block in comparison.blocks}
    if len({tuple(group.label for group in block.groups) for block in comparison.blocks}) > 1:
        return f"{tested} {_listed([f'{name} tasks ({_task_sets(of.groups)})' for name, of in blocks.items()])}."
    each = " each" if len(blocks) > 1 else ""
    return f"{tested} {_listed(list(blocks))} tasks: {_task_sets(comparison.groups)}{each}."


def _task_sets(groups: Sequence[Group]) -> str:
    """E.g. `600 random tasks and 600 fewstab tasks`, or the range where the numbers differ."""
    sizes: dict[str, set[int]] = {}
    for group in groups:
        sizes.setdefault(group.label, set()).add(group.tasks)
    return _listed([f"{_range(sizes[name])} {_sampler_words(name)}" for name in sorted(sizes, key=_reference_first)])


def _extremes(comparison: Comparison, design: Design, label: str) -> str:
    """Which classifier loses most and which least, on one design and task set."""
    rows = [
        row for row in comparison.rows if row.biased and (row.design, row.biased.sampler) == (design, label) and row.gap
    ]
    losses = sorted(
        (row.gap.mean, f"{percent(row.gap.mean)} points {bounds(row.gap)}", str(Classifier(row.encoder, row.method)))
        for row in rows
        if row.gap
    )
    first = next(row.reference.sampler for row in rows if row.reference)
    (_, least, most_robust), (_, most, least_robust) = losses[0], losses[-1]
    start = f"On {comparison.design_name(design)} tasks, {least_robust}"
    if len(losses) == 1:
        return f"{start} loses {most} of worst-class accuracy ({label} against {first})."
    shortcuts = sampler_of(label) in SHORTCUTS
    loses, it = ("leans on shortcuts", "leans on them") if shortcuts else ("loses", "loses")
    return (
        f"{start} {loses} most: its worst-class accuracy is {most} lower on {label} tasks than on {first} "
        f"ones; {most_robust} {it} least: {least}."
    )


def _sampler_words(label: str) -> str:
    if label == UNKNOWN:
        return "tasks of an unknown sampler"
    return f"{label} tasks"


def _reference_first(label: str) -> tuple[bool, str]:
    return label not in REFERENCES, label


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
