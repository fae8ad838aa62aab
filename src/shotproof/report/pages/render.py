"""Rendering of templates: one HTML file that opens offline, runs only its own script and loads nothing from outside."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from shotproof.comparison.numbers import bounds, level, percent, points, typeset
from shotproof.comparison.summary import Term
from shotproof.core.nouns import counted, nouns
from shotproof.stats.intervals import Interval, IntervalName, meanings
from shotproof.version import __version__

if TYPE_CHECKING:
    import jinja2  # imported only when a page is written: in most runs, pages are up to date

TEMPLATES = Path(__file__).parent / "templates"

LONGEST_PIECE = 16  # letters: as long as the names of methods
_TIP = Markup(
    '<span class="with-tip"><button type="button" class="term" aria-describedby="tip-term-{number}">{word}</button>'
    '<span role="tooltip" class="tip" id="tip-term-{number}">{meaning}.</span></span>'
)
_CAUTION: dict[IntervalName, str] = {
    "sampler": (
        "It is Student’s t over tasks. Biased samplers often reuse the same items, so for them it is the least "
        "reliable."
    ),
    "depletion": (
        "It is Student’s t over tasks drawn without replacement until the data is used up; the mean of these tasks is "
        "not that of other samplers."
    ),
    "images": "It comes from re-evaluation on random halves of each class’s {items}.",
    "classes": (
        "It comes from re-evaluation on random halves of the classes; with few classes it is wide, as it should be."
    ),
}
_PIECE = re.compile(rf"[^\W_]{{1,{LONGEST_PIECE}}}[\W_]*|[\W_]+")


@functools.cache
def environment() -> jinja2.Environment:
    """Build the template environment, with the filters that format numbers; all text is escaped."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "percent": lambda value: typeset(percent(value)),
        "points": lambda difference: typeset(points(difference)),
        "bounds": lambda interval: typeset(bounds(interval)),
        "level": level,
        "typeset": typeset,
        "half": _half_width,
        "breakable": breakable,
        "continued": _continue_sentence,
        "counted": counted,
    }
    templates.filters |= filters
    return templates


def render(template: str, context: dict[str, Any], *, has_script: bool = True) -> str:
    """Render a page from a template; the context's `medium`, if it has one, decides the word for items."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script) if has_script else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    page: str = (
        environment()
        .get_template(template)
        .render(
            context,
            version=__version__,
            cautions=cautions,
            meaning=meanings(context.get("medium")),
            items=nouns(context.get("medium")),
            style=Markup(style),
            script=Markup(script),
            policy=policy,
        )
    )
    return page


def cautions(medium: str | None) -> dict[IntervalName, str]:
    """Return the caution for each interval, in the words for such items."""
    return {name: sentence.format(items=nouns(medium)) for name, sentence in _CAUTION.items()}


def with_terms(sentences: Sequence[str], terms: Sequence[Term]) -> list[Markup]:
    """Typeset sentences; a click on the first occurrence of a term shows its meaning."""
    marked = [escape(typeset(sentence)) for sentence in sentences]
    for number, term in enumerate(terms):
        pattern = rf"(?<![\w-]){re.escape(escape(term.word))}(?!-)"
        tip = _TIP.format(word=term.word, meaning=term.meaning, number=number)
        for index, sentence in enumerate(marked):
            if re.search(pattern, sentence):
                before, after = re.split(pattern, sentence, maxsplit=1)
                marked[index] = Markup(before) + tip + Markup(after)
                break
    return marked


def breakable(name: str) -> Markup:
    """Allow line breaks in a name after its signs, and within longer words, so that no table is wider than its page."""
    return Markup("<wbr>").join(_PIECE.findall(name))


def _half_width(interval: Interval) -> str:
    """Write the half-width, e.g. `±1.2`; empty if there is no interval, as for a single task."""
    text = percent(interval.half_width)
    return "" if text == "n/a" else f"±{text}"


def _continue_sentence(sentence: str) -> str:
    """Begin a sentence with a lowercase letter, to continue another one."""
    return sentence[:1].lower() + sentence[1:]


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
