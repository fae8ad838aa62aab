"""How the page and the terminal say things: numbers in percent, named intervals, metrics with their symbols."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds as bounds
from shotproof.comparison.numbers import level as level
from shotproof.comparison.numbers import percent as percent
from shotproof.comparison.numbers import points as points
from shotproof.comparison.summary import Term
from shotproof.core.nouns import nouns
from shotproof.results.origin import RANDOM
from shotproof.stats.intervals import Covers

_TIP = Markup(
    '<span class="with-tip"><button type="button" class="term" aria-describedby="tip-term-{number}">{word}</button>'
    '<span role="tooltip" class="tip" id="tip-term-{number}">{meaning}.</span></span>'
)

# FewSTAB's names of the metrics: wAcc-R on random tasks, wAcc-A on tasks with biased attributes.
SYMBOLS = {RANDOM: "R", "fewstab": "A"}

MINUS = "\u2212"
LEAST_P = 1e-99  # smaller p-values are rounding

_CAUTION: dict[Covers, str] = {
    "sampler": "Student’s t over tasks. Biased samplers reuse items heavily, so theirs is the least trustworthy.",
    "depletion": "Student’s t over tasks drawn without replacement until the data is used up; their mean is another.",
    "images": "From re-evaluation on random halves of each class’s {items}.",
    "classes": "From re-evaluation on random halves of the classes; with few classes it is wide, honestly.",
}


def cautions(medium: str | None) -> dict[Covers, str]:
    """What to know of an interval besides what it covers, in the words for such items."""
    return {name: sentence.format(items=nouns(medium)) for name, sentence in _CAUTION.items()}


def p_value(value: float) -> str:
    """A p-value in two digits, or as a power of ten; one that is as good as zero as a bound."""
    if math.isnan(value):
        return "n/a"
    if value >= 1e-4:
        return f"{value:.2g}"
    return f"{value:.0e}" if value >= LEAST_P else f"<{LEAST_P:.0e}"


def typeset(text: str) -> str:
    """With minus signs instead of hyphens before numbers, as wide as a digit on the page."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def with_terms(sentences: Sequence[str], terms: Sequence[Term]) -> list[Markup]:
    """Typeset sentences; where a term first occurs, a click on it tells what it means."""
    marked = [escape(typeset(sentence)) for sentence in sentences]
    for number, term in enumerate(terms):
        place = rf"(?<![\w-]){re.escape(escape(term.word))}(?!-)"
        tip = _TIP.format(word=term.word, meaning=term.meaning, number=number)
        for index, sentence in enumerate(marked):
            if re.search(place, sentence):
                before, after = re.split(place, sentence, maxsplit=1)
                marked[index] = Markup(before) + tip + Markup(after)
                break
    return marked


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
