"""JSON Schema of robustness cards, made from their record.

python -m shotproof.comparison.card_schema    # writes the file that is shipped
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shotproof.comparison.card import FORMAT, KIND, Card
from shotproof.core.plain_values import json_schema
from shotproof.core.storage.whole_files import write_text

SHIPPED = Path(__file__).parent / "card.schema.json"


def card_schema() -> dict[str, Any]:
    """Return the schema: every field of the record, with its meaning."""
    record = json_schema(Card)
    fixed = {"kind": {"const": KIND}, "format": {"const": FORMAT}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Shotproof robustness card",
        **record,
        "properties": {**fixed, **record["properties"]},
        "required": [*fixed, *record["required"]],
    }


def schema_text() -> str:
    """Return the text of the shipped schema file."""
    return json.dumps(card_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SHIPPED, schema_text())
