"""The detector `captions`: words from captions that somebody made already."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.detector import Words, items_named, named_column, require_all_items
from shotproof.attributes.detectors.captioning import CaptionDetector
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.plain_values import typed
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import parse_json, read_text
from shotproof.core.tables import conform, read_parquet

logger = logging.getLogger("shotproof")

NAMES = ("item", "file")
LONGEST_CAPTION = 10_000  # characters; a tagger's numbers run out of range on whole books
FORMATS = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class CaptionsDetector(CaptionDetector):
    """Words from a CSV, Parquet or JSONL file with the columns `item` (or `file`) and `caption`.

    Several captions of an item give the union of their words; an item whose captions are all null has no known words.
    The captions may be of more items than the catalog has (of other splits, say), but not of fewer.
    """

    about = "nouns and adjectives of the captions in a CSV, Parquet or JSONL file"
    example = "captions(file='captions.csv')"

    file: Path = option(help="the captions, with the columns item (or file) and caption", path=True)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item; one without a row is an error."""
        found = self._captions(catalog)
        for item in catalog.items:
            if not found[item]:
                logger.warning("item '%s' is skipped: it has no caption in %s", item, self.file)
        return self.words_of({item: found[item] or None for item in catalog.items})

    def check(self, catalog: Catalog) -> None:
        """Refuse a file that lacks items."""
        super().check(catalog)
        self._captions(catalog)

    def _captions(self, catalog: Catalog) -> dict[str, list[str]]:
        """Return the captions of every item."""
        what = f"captions file {self.file}"
        names, captions = _read(self.file, what)
        found: dict[str, list[str]] = {}
        unknown = []
        for name, item, caption in zip(names, items_named(names, catalog, what), captions, strict=True):
            if item is None:
                unknown.append(name)
            else:
                found.setdefault(item, []).extend([] if caption is None else [caption])
        hint = f"; {len(unknown)} rows are of no item of the catalog, e.g. '{unknown[0]}'" if unknown else ""
        require_all_items(found, catalog, what, hint)
        return found


def _read(file: Path, what: str) -> tuple[list[str], list[str | None]]:
    """Return the names and the captions of all rows."""
    table = _table(file, what)
    names = named_column(table, NAMES, what)
    table = conform(table, {"caption": "string"}, what)
    if not table.num_rows:
        raise InputError(f"{what} has no rows")
    longest = pc.max(pc.utf8_length(table.column("caption"))).as_py() or 0
    if longest > LONGEST_CAPTION:
        raise InputError(f"{what}: expected captions of at most {LONGEST_CAPTION:,} characters, found {longest:,}")
    return names, table.column("caption").to_pylist()


def _table(file: Path, what: str) -> pa.Table:
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{what}: expected a name that ends with {', '.join(FORMATS)}")
    if suffix == ".csv":
        return read_csv(file, what, is_text=lambda name: name in (*NAMES, "caption"))
    return _read_jsonl(file, what) if suffix == ".jsonl" else read_parquet(file, what)


def _read_jsonl(file: Path, what: str) -> pa.Table:
    """Return the columns that matter as text; the others, which only serve an error's message, as nulls."""
    columns: dict[str, list[str | None]] = {}
    text = read_text(file, what).removesuffix("\n")
    for number, line in enumerate(text.split("\n") if text else ()):
        place = f"{what}, line {number + 1}"
        row = typed(parse_json(line, place), Mapping[str, Any], place) or {}
        for name in row.keys() - columns.keys():
            columns[name] = [None] * number
        for name, values in columns.items():
            value = row.get(name) if name in (*NAMES, "caption") else None
            values.append(typed(value, str, f"{place}, '{name}'"))
    return pa.table({name: pa.array(values, pa.string()) for name, values in sorted(columns.items())})
