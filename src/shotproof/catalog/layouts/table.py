"""Layout of any CSV or Parquet table with a path and a label."""

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
from shotproof.core.storage.places import format_path, url_of
from shotproof.core.tables import conform, require_unique

# Accepted names of each column, in upper or lower case; the first one takes precedence.
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
        """Read the items of the table in the file `root`."""
        title = f"table {root}"
        if not is_regular(root):
            raise InputError(f"{root} is not a file: the layout 'table' expects a CSV or Parquet file")
        table = _rename_columns(read_csv_or_parquet(root, title, is_text=_is_known_name), title)
        table = conform(table, {name: "string" for name in NAMES if name in table.column_names}, title)
        for name in ("item", "path", "split"):
            if name in table.column_names:
                _require_values(table.column(name), f"{title}, column '{name}'")
        columns = {name: table.column(name) for name in table.column_names}
        if "item" not in columns:
            paths = columns["path"].to_pylist()
            columns["item"] = pa.chunked_array([pa.array([_item(path, root.parent) for path in paths], pa.string())])
            require_unique(columns["item"], f"{title}, column 'path'")
        return sorted_catalog(columns, root.parent)


def _is_known_name(column: str) -> bool:
    return any(column.lower() in aliases for aliases in NAMES.values())


def _rename_columns(table: pa.Table, title: str) -> pa.Table:
    """Rename the columns to `path`, `label` and so on, and convert whole numbers in them to text."""
    for canonical, aliases in NAMES.items():
        name = _find_column(canonical, aliases, table.column_names, title)
        if name is not None:
            index = table.column_names.index(name)
            column = table.column(index)
            as_text = column.cast(pa.string()) if pa.types.is_integer(column.type) else column
            table = table.set_column(index, canonical, as_text)
    return table


def _find_column(canonical: str, aliases: Sequence[str], names: Sequence[str], title: str) -> str | None:
    """Return the table's name for a column; None if the table lacks an optional one."""
    matches = [name for name in names if name.lower() in aliases]
    # The canonical name takes precedence over its aliases; two aliases are ambiguous.
    chosen = (
        [name for name in matches if name == canonical]
        or [name for name in matches if name.lower() == canonical]
        or matches
    )
    if len(chosen) > 1:
        raise InputError(
            f"{title}: which of the columns {', '.join(chosen)} is the {canonical}? Rename it to '{canonical}'"
        )
    if not chosen and canonical in ("path", "label"):
        accepted = ", ".join(aliases[1:])
        raise InputError(f"{title} has no column '{canonical}' (nor {accepted}){did_you_mean(canonical, names)}")
    return chosen[0] if chosen else None


def _require_values(column: pa.ChunkedArray, title: str) -> None:
    empty = pc.index(pc.equal(pc.fill_null(column, ""), ""), True).as_py()
    if empty >= 0:
        raise InputError(f"{title} has an empty value (row {empty + 1} of {len(column)})")


def _item(path: str, folder: Path) -> str:
    """Turn a path into an item that is the same on all machines: with `/`, and relative if below the table's folder."""
    if url_of(path):
        return format_path(path)
    location = Path(path)
    if location.is_absolute() and location.is_relative_to(folder.absolute()):
        location = location.relative_to(folder.absolute())
    return posixpath.normpath(location.as_posix())
