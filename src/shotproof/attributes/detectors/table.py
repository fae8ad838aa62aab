"""Words from annotations: a table that somebody made, or the catalog's own columns.

The columns decide how a table is read. Items are named in `item`, `path` or `file`; beside that there is

| form | columns |
|---|---|
| long | `attribute`: one row per item and word; an empty word says only that the item is known |
| list | `attributes`: a list of words, or words with `;` between them; null where nothing is known |
| wide | any others: one column per word, with true or 1 where it holds, false or 0 where it does not |

In a wide table the columns of a catalog (`label`, `split`, `context`, `source`) are passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.attributes.detector import Detector, Words, items_named, named_column, require_all_items
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.csv_file import read_csv_or_parquet
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.tables import conform

NAMES = ("item", "path", "file")
PASSED_OVER = (*NAMES, "label", "split", "context", "source")
TEXT = (*PASSED_OVER, "attribute", "attributes")
SEPARATOR = ";"

Held = list[str] | None


@dataclass(frozen=True)
class TableDetector(Detector):
    """Words from the annotations in a CSV or Parquet file, or, without a file, from the catalog's bool columns.

    The annotations may cover more items than the catalog has, but not fewer.
    """

    about = "annotations in a CSV or Parquet file, or the catalog's own true/false columns"

    example = "table(file='annotations.csv')"

    file: Path | None = option(None, "the annotations; None: the catalog's own true/false columns", path=True)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item."""
        words = _of_catalog(catalog) if self.file is None else _of_file(self.file, catalog)
        if not any(words.values()):
            raise InputError(f"{self.file or 'the catalog'} gives no item a word: there is no attribute to test")
        return words

    def check(self, catalog: Catalog) -> None:
        """Read the words: it takes no longer than to check them."""
        super().check(catalog)
        self.detect(catalog, current_runtime())


def _of_catalog(catalog: Catalog) -> Words:
    columns = [field.name for field in catalog.table.schema if pa.types.is_boolean(field.type)]
    if not columns:
        raise InputError("the catalog has no true/false columns to take as attributes: give a file of annotations")
    return dict(zip(catalog.items, _wide(catalog.table, columns, "catalog"), strict=True))


def _of_file(file: Path, catalog: Catalog) -> Words:
    what = f"annotations file {file}"
    table = read_csv_or_parquet(file, what, is_text=lambda name: name in TEXT)
    names = named_column(table, NAMES, what)
    rows = zip(items_named(names, catalog, what), _rows(table, what), strict=True)
    found: Words = {}
    repeated: Counter[str] = Counter()
    for item, words in rows:
        if item is None:
            continue
        repeated[item] += 1
        found[item] = words if item not in found else [*(found[item] or []), *(words or [])]
    if not found:
        raise InputError(f"{what} and the catalog have no item in common: '{names[0]}' and '{catalog.items[0]}', say")
    twice = next((item for item, rows_of_it in repeated.items() if rows_of_it > 1), None)
    if twice is not None and "attribute" not in table.column_names:
        raise InputError(f"{what}: item '{twice}' has {repeated[twice]} rows")
    hint = "; a row with an empty attribute says that none holds" if "attribute" in table.column_names else ""
    require_all_items(found, catalog, what, hint)
    return found


def _rows(table: pa.Table, what: str) -> list[Held]:
    """Return the words of each row."""
    forms = [name for name in ("attribute", "attributes") if name in table.column_names]
    if len(forms) == 2:
        raise InputError(f"{what} has both a column 'attribute' and 'attributes': keep one of them")
    if forms == ["attribute"]:
        words = conform(table, {"attribute": "string"}, what).column("attribute").to_pylist()
        return [_cleaned([word]) for word in words]
    if forms == ["attributes"]:
        return _lists(table, what)
    columns = [name for name in table.column_names if name not in PASSED_OVER]
    if not columns:
        raise InputError(
            f"{what} has no attributes: expected a column 'attribute' (long), 'attributes' (a list), "
            f"or a column of 0 and 1 for each (wide), found {', '.join(table.column_names[:8])}"
        )
    return _wide(table, columns, what)


def _lists(table: pa.Table, what: str) -> list[Held]:
    kind = table.schema.field("attributes").type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        cells = table.column("attributes").to_pylist()
        return [None if cell is None else _cleaned(cell.split(SEPARATOR)) for cell in cells]
    lists = conform(table, {"attributes": "strings"}, what).column("attributes").to_pylist()
    return [None if words is None else _cleaned(words) for words in lists]


def _wide(table: pa.Table, columns: Sequence[str], what: str) -> list[Held]:
    held = np.column_stack([_flags(table.column(name), f"{what}, column '{name}'") for name in columns])
    word = np.nonzero(held)[1]
    ends = np.cumsum(held.sum(axis=1))[:-1]
    return [[columns[code] for code in codes] for codes in np.split(word, ends)]


def _flags(column: pa.ChunkedArray, what: str) -> npt.NDArray[np.bool_]:
    """Return a column of true and false, or of 1 and 0, as bool [n]."""
    expected = "expected true and false, or 1 and 0 (for words in text, a column 'attribute' or 'attributes')"
    if column.null_count:
        raise InputError(f"{what}: {column.null_count} of {len(column)} cells are empty; {expected}")
    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"{what}: found {column.type}, e.g. '{column[0]}'; {expected}")
    values: npt.NDArray[np.float64] = column.to_numpy().astype(np.float64)
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise InputError(f"{what}: found {wrong[0]:g}; {expected}")
    return values.astype(bool)


def _cleaned(words: Sequence[str | None]) -> list[str]:
    return [word.strip() for word in words if word and word.strip()]
