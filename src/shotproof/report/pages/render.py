"""Templates to pages: one HTML file that opens offline, runs its own script alone and asks for nothing outside."""

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
from shotproof.stats.intervals import Covers, Interval, meanings
from shotproof.version import __version__

if TYPE_CHECKING:
    import jinja2  # imported where a page is written: most runs find theirs up to date

TEMPLATES = Path(__file__).parent / "templates"

LONGEST_PIECE = 16  # letters: as long as names of methods are
_TIP = Markup(
    '<span class="with-tip"><button type="button" class="term" aria-describedby="tip-term-{number}">{word}</button>'
    '<span role="tooltip" class="tip" id="tip-term-{number}">{meaning}.</span></span>'
)
_CAUTION: dict[Covers, str] = {
    "sampler": "Student’s t over tasks. Biased samplers reuse items heavily, so theirs is the least trustworthy.",
    "depletion": "Student’s t over tasks drawn without replacement until the data is used up; their mean is another.",
    "images": "From re-evaluation on random halves of each class’s {items}.",
    "classes": "From re-evaluation on random halves of the classes; with few classes it is wide, honestly.",
}
_PIECE = re.compile(rf"[^\W_]{{1,{LONGEST_PIECE}}}[\W_]*|[\W_]+")


@functools.cache
def environment() -> jinja2.Environment:
    """Return the templates, with the filters by which pages show numbers; whatever text is put into them is escaped."""
    import jinja2

    made = jinja2.Environment(
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
        "counted": counted,
    }
    made.filters |= filters
    return made


def render(template: str, context: dict[str, Any]) -> str:
    """Return a page from one of the templates; items are called by the context's `medium`, where it has one."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
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


def cautions(medium: str | None) -> dict[Covers, str]:
    """What to know of an interval besides what it covers, in the words for such items."""
    return {name: sentence.format(items=nouns(medium)) for name, sentence in _CAUTION.items()}


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


def breakable(name: str) -> Markup:
    """Let a name break after its signs, and within longer words: no name makes a table wider than a page."""
    return Markup("<wbr>").join(_PIECE.findall(name))


def _half_width(interval: Interval) -> str:
    """E.g. `±1.2`; nothing where a single task gives no interval."""
    text = percent(interval.half_width)
    return "" if text == "n/a" else f"±{text}"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
