"""Any CSV or Parquet table with a path and a label."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.csv_file import read_csv_or_parquet
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.storage.files import is_regular
from shotproof.core.storage.places import shown, url_of
from shotproof.core.tables import conform, require_unique

# What a column may be called, in any case; the first name wins over the others.
NAMES = {
    "item": ("item",),
    "path": ("path", "file", "filename", "filepath", "image", "sound", "audio"),
    "label": ("label", "class", "target"),
    "split": ("split",),
    "context": ("context",),
    "source": ("source",),
}


@dataclass(frozen=True)
class TableLayout(Layout):
    """A table with `path` and `label`, optionally `item`, `split`, `context`, `source`, and any other column.

    Relative paths start from the table's folder. Without `item`, the path is the item; without `split`, the
    split is `all`.
    """

    about = "a CSV or Parquet table with the columns path and label"

    def read(self, root: Path) -> Catalog:
        """Return the items of the table in the file `root`."""
        what = f"table {root}"
        if not is_regular(root):
            raise InputError(f"{root} is not a file: the layout 'table' expects a CSV or Parquet file")
        table = _with_our_names(read_csv_or_parquet(root, what, is_text=_has_our_name), what)
        table = conform(table, {name: "string" for name in NAMES if name in table.column_names}, what)
        for name in ("item", "path", "split"):
            if name in table.column_names:
                _refuse_empty(table.column(name), f"{what}, column '{name}'")
        columns = {name: table.column(name) for name in table.column_names}
        if "item" not in columns:
            paths = columns["path"].to_pylist()
            columns["item"] = pa.chunked_array([pa.array([_item(path, root.parent) for path in paths], pa.string())])
            require_unique(columns["item"], f"{what}, column 'path'")
        return sorted_catalog(columns, root.parent)


def _has_our_name(column: str) -> bool:
    return any(column.lower() in aliases for aliases in NAMES.values())


def _with_our_names(table: pa.Table, what: str) -> pa.Table:
    """Return the table with its columns renamed to `path`, `label` and so on, and with whole numbers there as text."""
    for ours, aliases in NAMES.items():
        name = _column_for(ours, aliases, table.column_names, what)
        if name is not None:
            index = table.column_names.index(name)
            column = table.column(index)
            as_text = column.cast(pa.string()) if pa.types.is_integer(column.type) else column
            table = table.set_column(index, ours, as_text)
    return table


def _column_for(ours: str, aliases: Sequence[str], names: Sequence[str], what: str) -> str | None:
    """Return the column that is meant by one of our names; None where an optional one is not there."""
    found = [name for name in names if name.lower() in aliases]
    # Our own name wins over its aliases; two aliases leave the meaning open.
    chosen = [name for name in found if name == ours] or [name for name in found if name.lower() == ours] or found
    if len(chosen) > 1:
        raise InputError(f"{what}: which of the columns {', '.join(chosen)} is the {ours}? Rename it to '{ours}'")
    if not chosen and ours in ("path", "label"):
        accepted = ", ".join(aliases[1:])
        raise InputError(f"{what} has no column '{ours}' (nor {accepted}){did_you_mean(ours, names)}")
    return chosen[0] if chosen else None


def _refuse_empty(column: pa.ChunkedArray, what: str) -> None:
    empty = pc.index(pc.equal(pc.fill_null(column, ""), ""), True).as_py()
    if empty >= 0:
        raise InputError(f"{what} has an empty value (row {empty + 1} of {len(column)})")


def _item(path: str, folder: Path) -> str:
    """Return a path as it is on every machine: from the table's folder where it lies below it, with `/`."""
    if url_of(path):
        return shown(path)
    place = Path(path)
    if place.is_absolute() and place.is_relative_to(folder.absolute()):
        place = place.relative_to(folder.absolute())
    return posixpath.normpath(place.as_posix())
