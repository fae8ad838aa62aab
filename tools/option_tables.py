"""The option tables of the docs, and the experiment file's schema, from the records of components and sections.

python -m tools.option_tables    # writes them; a test fails if they have drifted
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from shotproof.core.options import Option
from shotproof.core.plain_values import kinds_of
from shotproof.pipeline.components import option_rows, registry_of
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment_file import SHIPPED, ExperimentFile, TuneOn, schema_text
from shotproof.pipeline.experiment_text import toml_value
from shotproof.pipeline.method_uses import MethodUse

DOCS = Path(__file__).parents[1] / "docs"
ENTRIES = {"sampler": Draw.entry_options(), "method": MethodUse.entry_options(), "tune_on": TuneOn.options()}
_MARKED = re.compile(r"(<!-- (options|keys):(\w+) -->\n).*?(<!-- /\2:\3 -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Fill the tables of each kind, and of each section of an experiment file, between the marks of a page."""
    writers = {"options": option_table, "keys": key_table}
    return _MARKED.sub(lambda match: f"{match[1]}{writers[match[2]](match[3])}{match[4]}", text)


def option_table(kind: str) -> str:
    """Write one row per option of each component, and one for a component without options."""
    registry = registry_of(kind)
    rows = []
    for name in registry:
        component = registry.get(name)
        for place, (option, values, default, help_text) in enumerate(option_rows(component) or [("", "", "", "")]):
            first = [f"`{name}`", component.about] if place == 0 else ["", ""]
            rows.append([*first, f"`{option}`" if option else "", values, f"`{default}`" if option else "", help_text])
    return _table(["name", "what it is", "option", "values", "default", "what it does"], rows)


def key_table(section: str) -> str:
    """Write one row per key of a section of an experiment file, or of a table within one."""
    sections = {option.name: kinds_of(option.kind)[0].options() for option in ExperimentFile.options()}
    rows = [
        [f"`{option.name}`", option.without_none().values, _default(option), option.help]
        for option in {**sections, **ENTRIES}[section]
    ]
    return _table(["key", "values", "default", "what it does"], rows)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return f"`{toml_value(option.default)}`" if option.json_schema().get("default") not in (None, []) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [head, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    first, *others = [f"| {' | '.join(row)} |\n" for row in cells]
    return "".join([first, "|---" * len(head), "|\n", *others])


def pages() -> dict[Path, str]:
    """Return every page that has marks, and the schema, with their expected content."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {path: with_tables(text) for path, text in texts.items() if _MARKED.search(text)} | {SHIPPED: schema_text()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
