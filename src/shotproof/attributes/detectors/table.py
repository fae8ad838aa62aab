"""The detector `table`: words from a table of annotations, or from the catalog's own columns.

The columns decide how a table is read. Items are named in `item`, `path` or `file`; the other columns depend on the
form:

| form | columns |
|---|---|
| long | `attribute`: one row per item and word; an empty word says only that the item is known |
| list | `attributes`: a list of words, or words separated by `;`; null if nothing is known about the item |
| wide | any others: one column per word, true or 1 if the item has it, otherwise false or 0 |

In a wide table the columns of a catalog (`label`, `split`, `context`, `source`) are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.attributes.detector import Detector, Words, match_items, read_item_names, require_all_items
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.csv_file import read_csv_or_parquet
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.tables import conform

NAMES = ("item", "path", "file")
IGNORED = (*NAMES, "label", "split", "context", "source")
TEXT = (*IGNORED, "attribute", "attributes")
SEPARATOR = ";"

RowWords = list[str] | None


@dataclass(frozen=True)
class TableDetector(Detector):
    """Words from the annotations in a CSV or Parquet file, or, without a file, from the catalog's bool columns.

    The file may have more items than the catalog, but not fewer.
    """

    about = "annotations in a CSV or Parquet file, or the catalog's own true/false columns"

    example = "table(file='annotations.csv')"

    file: Path | None = option(None, "file of annotations; None: the catalog's own true/false columns", path=True)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item."""
        words = _read_catalog(catalog) if self.file is None else _read_file(self.file, catalog)
        if not any(words.values()):
            raise InputError(f"{self.file or 'the catalog'} has no word for any item: there is no attribute to test")
        return words

    def check(self, catalog: Catalog) -> None:
        """Check the annotations by reading them, which is quick."""
        super().check(catalog)
        self.detect(catalog, current_runtime())


def _read_catalog(catalog: Catalog) -> Words:
    columns = [field.name for field in catalog.table.schema if pa.types.is_boolean(field.type)]
    if not columns:
        raise InputError("the catalog has no true/false columns to use as attributes: give a file of annotations")
    return dict(zip(catalog.items, _read_wide(catalog.table, columns, "catalog"), strict=True))


def _read_file(file: Path, catalog: Catalog) -> Words:
    title = f"annotations file {file}"
    table = read_csv_or_parquet(file, title, is_text=lambda name: name in TEXT)
    names = read_item_names(table, NAMES, title)
    rows = zip(match_items(names, catalog, title), _read_rows(table, title), strict=True)
    words_by_item: Words = {}
    row_counts: Counter[str] = Counter()
    for item, words in rows:
        if item is None:
            continue
        row_counts[item] += 1
        words_by_item[item] = words if item not in words_by_item else [*(words_by_item[item] or []), *(words or [])]
    if not words_by_item:
        raise InputError(
            f"{title} and the catalog have no item in common: '{names[0]}' and '{catalog.items[0]}', for example"
        )
    repeated = next((item for item, row_count in row_counts.items() if row_count > 1), None)
    if repeated is not None and "attribute" not in table.column_names:
        raise InputError(f"{title}: expected one row per item, but item '{repeated}' has {row_counts[repeated]} rows")
    hint = "; for an item without words, add a row with an empty attribute" if "attribute" in table.column_names else ""
    require_all_items(words_by_item, catalog, title, hint)
    return words_by_item


def _read_rows(table: pa.Table, title: str) -> list[RowWords]:
    """Return the words of each row."""
    forms = [name for name in ("attribute", "attributes") if name in table.column_names]
    if len(forms) == 2:
        raise InputError(f"{title} has both a column 'attribute' and a column 'attributes': keep one of them")
    if forms == ["attribute"]:
        words = conform(table, {"attribute": "string"}, title).column("attribute").to_pylist()
        return [_clean([word]) for word in words]
    if forms == ["attributes"]:
        return _read_lists(table, title)
    columns = [name for name in table.column_names if name not in IGNORED]
    if not columns:
        raise InputError(
            f"{title} has no attributes: expected a column 'attribute' (long), 'attributes' (a list), "
            f"or a column of 0 and 1 for each (wide), found {', '.join(table.column_names[:8])}"
        )
    return _read_wide(table, columns, title)


def _read_lists(table: pa.Table, title: str) -> list[RowWords]:
    kind = table.schema.field("attributes").type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        cells = table.column("attributes").to_pylist()
        return [None if cell is None else _clean(cell.split(SEPARATOR)) for cell in cells]
    lists = conform(table, {"attributes": "strings"}, title).column("attributes").to_pylist()
    return [None if words is None else _clean(words) for words in lists]


def _read_wide(table: pa.Table, columns: Sequence[str], title: str) -> list[RowWords]:
    matrix = np.column_stack([_read_flags(table.column(name), f"{title}, column '{name}'") for name in columns])
    all_codes = np.nonzero(matrix)[1]
    ends = np.cumsum(matrix.sum(axis=1))[:-1]
    return [[columns[code] for code in codes] for codes in np.split(all_codes, ends)]


def _read_flags(column: pa.ChunkedArray, title: str) -> npt.NDArray[np.bool_]:
    """Convert a column of true and false, or of 1 and 0, to bool [n]."""
    expected = "expected true and false, or 1 and 0 (for words in text, a column 'attribute' or 'attributes')"
    if column.null_count:
        raise InputError(f"{title}: {column.null_count} of {len(column)} cells are empty; {expected}")
    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"{title}: found {column.type}, e.g. '{column[0]}'; {expected}")
    values: npt.NDArray[np.float64] = column.to_numpy().astype(np.float64)
    invalid = values[(values != 0) & (values != 1)]
    if len(invalid):
        raise InputError(f"{title}: found {invalid[0]:g}; {expected}")
    return values.astype(bool)


def _clean(words: Sequence[str | None]) -> list[str]:
    return [word.strip() for word in words if word and word.strip()]
