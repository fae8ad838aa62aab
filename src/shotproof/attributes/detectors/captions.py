"""The detector `captions`: words from a file of captions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.detector import Words, match_items, read_item_names, require_all_items
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
LONGEST_CAPTION = 10_000  # characters; a tagger's probabilities underflow on whole books
FORMATS = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class CaptionsDetector(CaptionDetector):
    """Words from a CSV, Parquet or JSONL file with the columns `item` (or `file`) and `caption`.

    An item with several captions gets the union of their words; nothing is known about an item whose captions are all
    null. The file may have more items than the catalog, such as those of other splits, but not fewer.
    """

    about = "nouns and adjectives of the captions in a CSV, Parquet or JSONL file"
    example = "captions(file='captions.csv')"

    file: Path = option(help="file of captions with the columns item (or file) and caption", path=True)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item. An item without a row is an error."""
        captions = self._read_captions(catalog)
        for item in catalog.items:
            if not captions[item]:
                logger.warning("item '%s' is skipped: it has no caption in %s", item, self.file)
        return self.words_of({item: captions[item] or None for item in catalog.items})

    def check(self, catalog: Catalog) -> None:
        """Check that the file has captions for all items."""
        super().check(catalog)
        self._read_captions(catalog)

    def _read_captions(self, catalog: Catalog) -> dict[str, list[str]]:
        """Read the captions of every item."""
        title = f"captions file {self.file}"
        names, captions = _read(self.file, title)
        captions_by_item: dict[str, list[str]] = {}
        unknown_names = []
        for name, item, caption in zip(names, match_items(names, catalog, title), captions, strict=True):
            if item is None:
                unknown_names.append(name)
            else:
                captions_by_item.setdefault(item, []).extend([] if caption is None else [caption])
        hint = ""
        if unknown_names:
            hint = f"; {len(unknown_names)} rows name no item of the catalog, e.g. '{unknown_names[0]}'"
        require_all_items(captions_by_item, catalog, title, hint)
        return captions_by_item


def _read(file: Path, title: str) -> tuple[list[str], list[str | None]]:
    """Read the names and the captions of all rows."""
    table = _read_table(file, title)
    names = read_item_names(table, NAMES, title)
    table = conform(table, {"caption": "string"}, title)
    if not table.num_rows:
        raise InputError(f"{title} has no rows")
    longest = pc.max(pc.utf8_length(table.column("caption"))).as_py() or 0
    if longest > LONGEST_CAPTION:
        raise InputError(f"{title}: expected captions of at most {LONGEST_CAPTION:,} characters, found {longest:,}")
    return names, table.column("caption").to_pylist()


def _read_table(file: Path, title: str) -> pa.Table:
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{title}: expected a file name that ends with {', '.join(FORMATS)}")
    if suffix == ".csv":
        return read_csv(file, title, is_text=lambda name: name in (*NAMES, "caption"))
    return _read_jsonl(file, title) if suffix == ".jsonl" else read_parquet(file, title)


def _read_jsonl(file: Path, title: str) -> pa.Table:
    """Read the needed columns as text, and all others as nulls, so that an error message can list their names."""
    columns: dict[str, list[str | None]] = {}
    text = read_text(file, title).removesuffix("\n")
    for number, line in enumerate(text.split("\n") if text else ()):
        location = f"{title}, line {number + 1}"
        row = typed(parse_json(line, location), Mapping[str, Any], location) or {}
        for name in row.keys() - columns.keys():
            columns[name] = [None] * number
        for name, values in columns.items():
            value = row.get(name) if name in (*NAMES, "caption") else None
            values.append(typed(value, str, f"{location}, '{name}'"))
    return pa.table({name: pa.array(values, pa.string()) for name, values in sorted(columns.items())})
