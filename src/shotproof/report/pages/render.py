"""Templates to pages: one HTML file that opens offline, runs its own script alone and asks for nothing outside."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from shotproof.core.nouns import counted, nouns
from shotproof.report.pages import wording
from shotproof.stats.intervals import Interval, meanings
from shotproof.version import __version__

TEMPLATES = Path(__file__).parent / "templates"

LONGEST_PIECE = 16  # letters: as long as names of methods are
_PIECE = re.compile(rf"[^\W_]{{1,{LONGEST_PIECE}}}[\W_]*|[\W_]+")


@functools.cache
def environment() -> jinja2.Environment:
    """The templates, with the filters by which pages show numbers; whatever text is put into them is escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "percent": lambda value: wording.typeset(wording.percent(value)),
        "points": lambda difference: wording.typeset(wording.points(difference)),
        "bounds": lambda interval: wording.typeset(wording.bounds(interval)),
        "half": _half_width,
        "breakable": breakable,
        "counted": counted,
    }
    made.filters |= filters
    return made


def render(template: str, context: dict[str, Any]) -> str:
    """A page from one of the templates; items are called by the context's `medium`, where it has one."""
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
            wording=wording,
            meaning=meanings(context.get("medium")),
            items=nouns(context.get("medium")),
            style=Markup(style),
            script=Markup(script),
            policy=policy,
        )
    )
    return page


def breakable(name: str) -> Markup:
    """Let a name break after its signs, and within longer words: no name makes a table wider than a page."""
    return Markup("<wbr>").join(_PIECE.findall(name))


def _half_width(interval: Interval) -> str:
    """E.g. `±1.2`; nothing where a single task gives no interval."""
    text = wording.percent(interval.half_width)
    return "" if text == "n/a" else f"±{text}"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
