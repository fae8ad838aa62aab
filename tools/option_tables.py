"""The option tables of the docs, and the experiment file's schema, from the records of components.

python -m tools.option_tables    # writes them; a test fails where they have drifted
"""

from __future__ import annotations

import re
from pathlib import Path

from shotproof.pipeline.components import option_rows, registry_of
from shotproof.pipeline.experiment_schema import SHIPPED, schema_text

DOCS = Path(__file__).parents[1] / "docs"
_MARKED = re.compile(r"(<!-- options:(\w+) -->\n).*?(<!-- /options:\2 -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """A page with the table of each kind between its marks."""
    return _MARKED.sub(lambda found: f"{found[1]}{option_table(found[2])}{found[3]}", text)


def option_table(kind: str) -> str:
    """One row per option of each component, and one for a component that has none."""
    lines = ["| name | what it is | option | values | default | what it does |", "|---|---|---|---|---|---|"]
    registry = registry_of(kind)
    for name in registry:
        component = registry.get(name)
        rows = option_rows(component) or [("", "", "", "")]
        for place, (option, values, default, told) in enumerate(rows):
            first = [f"`{name}`", component.about] if place == 0 else ["", ""]
            cells = [*first, f"`{option}`" if option else "", values, f"`{default}`" if option else "", told]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Every page that has marks, and the schema, as they should be."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {path: with_tables(text) for path, text in found.items() if _MARKED.search(text)} | {SHIPPED: schema_text()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
