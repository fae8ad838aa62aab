"""Catalog: the table of items, each with its label, its split and, if known, its context."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.errors import InputError, UnknownName, error_prefix, first_line
from shotproof.core.nouns import Medium, counted
from shotproof.core.printable import NO_SECRETS, SECRET
from shotproof.core.records import CatalogRecord
from shotproof.core.storage.files import find_all
from shotproof.core.storage.places import absolute, format_path, resolve_path, store_of, url_of
from shotproof.core.tables import Tabular, conform, digest, find_rows, read_table, require_unique, write_table
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.media.images import IMAGE_EXTENSIONS

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = {"item": "string", "path": "string", "label": "string", "split": "string"}
OPTIONAL = {"context": "string", "source": "string"}
NAME = "name"  # the column with readable names of the classes
MIXTURE_COLUMNS = ("foreground", "background")
MASK = "mask"  # the column with the files of the masks of images
PLATE = "plate"  # the column of mixed images with the item whose background is shown
UNCHANGED, CHANGE = "unchanged_item", "item_change"  # columns of changed items: the item that they are made of, and how


@dataclass(frozen=True, repr=False)
class Catalog(Tabular):
    """Table of items with the columns `item` (unique), `path`, `label`, `split`, and optionally `context` and `source`.

    A relative path is relative to `root`, the folder of the catalog's file. There may be any other columns; those with
    paths are named in the record's `path_columns`.

    Example:
        >>> columns = {"item": ["a", "b"], "path": ["a.png", "b.png"], "label": ["jay", "owl"]}
        >>> Catalog(pa.table({**columns, "split": ["test", "test"]}))
        <Catalog: 2 items of 2 classes, splits test>
    """

    table: pa.Table
    root: Path = field(default_factory=Path)
    record: CatalogRecord = field(default_factory=CatalogRecord)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root))
        required = REQUIRED | {name: kind for name, kind in OPTIONAL.items() if name in self.table.column_names}
        table = conform(self.table, required, "catalog")
        require_unique(table.column("item"), "catalog, column 'item'")
        for name in ("path", "split"):
            if table.column(name).null_count:
                raise InputError(f"catalog, column '{name}' has an empty value")
        reserved = {*REQUIRED, *OPTIONAL, NAME} - {"path"}
        for name in reserved.intersection(self.record.path_columns):
            raise InputError(f"catalog, path_columns: column '{name}' does not hold paths")
        paths = path_columns(table, self.record.path_columns)
        table = conform(table, dict.fromkeys(paths, "string"), "catalog")
        for name in paths:
            if pc.any(pc.match_substring(table.column(name), "\0")).as_py():
                raise InputError(f"catalog, column '{name}': a path contains a NUL character")
            if pc.any(pc.match_substring_regex(table.column(name), SECRET)).as_py():
                raise InputError(f"catalog, column '{name}': {NO_SECRETS}")
        labels = pc.fill_null(table.column("label"), "")
        object.__setattr__(self, "table", table.set_column(table.column_names.index("label"), "label", labels))

    @classmethod
    def read(cls, path: str | Path) -> Catalog:
        """Read catalog.parquet."""
        path = Path(path)
        table, record = read_table(path, "catalog", REQUIRED, CatalogRecord)
        with error_prefix(f"{path}: "):
            return cls(table, path.parent, record)

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame, *, root: str | Path = ".") -> Catalog:
        """Build a catalog from a data frame with the columns `item` and `label`, and optionally others.

        Args:
            frame: one row per item. Without `path`, items have no files, and need none if there are features; without
                `split`, there is a single split
            root: the folder that relative paths start from, which a data frame does not have: `catalog.root` of the
                catalog that it was made from

        Example:
            >>> import pandas as pd
            >>> frame = pd.DataFrame({"item": ["a", "b"], "path": ["a.png", "b.png"], "label": ["jay", "owl"]})
            >>> Catalog.from_pandas(frame, root="birds").paths[1].as_posix()
            'birds/b.png'
        """
        defaults = {"path": frame.get("item"), "split": "all"}
        catalog = super().from_pandas(frame.assign(**{name: defaults[name] for name in defaults if name not in frame}))
        return replace(catalog, root=Path(root))

    def filter(self, keep: pc.Expression | Sequence[bool] | npt.NDArray[np.bool_] | pa.Array) -> Catalog:
        """Select some of the items, as a new catalog: tasks from the whole catalog do not belong to it.

        Args:
            keep: whether to keep each item, [n] of true and false (a list, an array, a column of a data frame), or an
                Arrow expression, which is a condition on columns

        Raises:
            InputError: the number of values is not that of the items, a column does not exist, or no item is kept.

        Example:
            >>> columns = {"item": ["a", "b"], "path": ["a.png", "b.png"], "label": ["jay", "owl"]}
            >>> catalog = Catalog(pa.table({**columns, "split": ["test", "test"]}))
            >>> catalog.filter([False, True]).items
            ['b']
            >>> catalog.filter(pc.field("label") == "jay").items
            ['a']
        """
        try:
            condition = keep if isinstance(keep, pc.Expression) else pa.array(keep, pa.bool_())
            table = self.table.filter(condition)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(
                f"filter: expected {len(self):,} values, each true or false, or a condition on columns: "
                f"{first_line(error)}"
            ) from error
        if not len(table):
            raise InputError(f"filter: none of the {len(self):,} items is kept")
        return Catalog(table, self.root, self.record)

    def write(self, path: str | Path) -> None:
        """Write catalog.parquet, with paths relative to its folder."""
        path = Path(path)
        table = self.moved_to(path.parent).table
        write_table(path, table, "catalog", self.record, self.digest)

    def moved_to(self, folder: str | Path) -> Catalog:
        """Return the same catalog with another root, its relative paths rewritten to start from there."""
        folder = Path(folder)
        return Catalog(self._with_paths_from(folder), folder, self.record)

    def describe(self) -> str:
        """Return the catalog's name, its numbers of items and classes, and its splits."""
        class_count = pc.count_distinct(self.table.column("label")).as_py()
        prefix = f"{self.record.name}, " if self.record.name else ""
        sizes = f"{counted(len(self), 'item')} of {counted(class_count, 'class', 'classes')}"
        return f"{prefix}{sizes}, splits {', '.join(self.splits)}"

    @cached_property
    def digest(self) -> str:
        """Return the digest of all columns but the paths: the same data elsewhere on disk is the same catalog."""
        first = ["item", "label", "split"]
        # Class names from a separate file do not change the data: tasks that were drawn before still belong to it.
        names = [NAME] if self.record.names is not None else []
        return digest(self.table, first + sorted(set(self.table.column_names) - {*first, *names, *self.path_columns}))

    @property
    def path_columns(self) -> list[str]:
        """Return the columns that hold paths: `path`, those that the record names, and those of unwritten mixtures."""
        return path_columns(self.table, self.record.path_columns)

    @cached_property
    def items(self) -> list[str]:
        """Return the items' identifiers, in the order of the table."""
        items: list[str] = self.table.column("item").to_pylist()
        return items

    @cached_property
    def item_column(self) -> pa.Array:
        """Return the items' identifiers as an Arrow array."""
        return self.table.column("item").combine_chunks()

    @cached_property
    def paths(self) -> list[Path]:
        """Return the items' files; relative paths are joined to the root."""
        return [resolve_path(self.root, path) for path in self.table.column("path").to_pylist()]

    @cached_property
    def stamp(self) -> str:
        """Compute a digest of the sizes and times of all files, once: it changes if a file changes, and reads none."""
        columns = [
            self.table.column(name) for name in ("path", *_mixture_columns(self.table), *_mask_columns(self.table))
        ]
        paths = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
        files = find_all([resolve_path(self.root, path) for path in paths.to_pylist() if path])
        # A missing file is no error here; code that needs it raises one.
        stamps = [[-1, -1] if file is None else [file.size, file.modified or 0] for file in files]
        return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:32]

    def with_stamp_of(self, other: Catalog) -> Catalog:
        """Copy the stamp of a catalog of the same files, which are then not listed again, and return this catalog."""
        self.__dict__["stamp"] = other.stamp
        return self

    @cached_property
    def medium(self) -> Medium | None:
        """Return whether the files are images or sounds, by their extensions; None if they are both, or neither."""
        paths = self.table.column("path")
        files = paths.filter(pc.not_equal(paths, ""))
        all_files = len(files) == len(paths)
        has_mixtures = not all_files and "foreground" in self.table.column_names  # sounds that are mixed when read
        if (len(files) or has_mixtures) and (has_mixtures or all_files) and _end_in(files, SOUND_EXTENSIONS):
            return "sound"
        return "image" if len(files) and all_files and _end_in(files, IMAGE_EXTENSIONS) else None

    @cached_property
    def class_names(self) -> dict[str, str]:
        """Return the readable name of each class: from the column `name` if it has one per label, else the label."""
        labels = self.table.column("label")
        names = {label: label for label in pc.unique(labels).to_pylist()}
        if NAME not in self.table.column_names or not pa.types.is_string(self.table.schema.field(NAME).type):
            return names
        pairs = (
            pa.table({"label": labels, NAME: self.table.column(NAME)})
            .group_by(["label", NAME], use_threads=False)
            .aggregate([])
        )
        label_names = [(row["label"], row[NAME]) for row in pairs.to_pylist() if row[NAME]]
        if len({label for label, _ in label_names}) < len(label_names):  # names of items, not of classes
            return names
        return names | dict(label_names)

    @property
    def splits(self) -> list[str]:
        """Return the names of the splits, sorted."""
        return sorted(pc.unique(self.table.column("split")).to_pylist())

    def in_split(self, split: str | None) -> Catalog:
        """Select the items of one split. None means all items, and is an error if there is more than one split."""
        if split is None:
            if len(self.splits) > 1:
                raise InputError(f"the catalog has the splits {', '.join(self.splits)}: choose one")
            return self
        if split not in self.splits:
            raise UnknownName("split", split, self.splits)
        return Catalog(self.table.filter(pc.equal(self.table.column("split"), split)), self.root, self.record)

    def rows_of(self, items: pa.Array | pa.ChunkedArray, title: str) -> npt.NDArray[np.int64]:
        """Return the row of each of these items. An item that the catalog lacks is an error that names it."""
        return find_rows(items, self.item_column, f"{title}: the catalog lacks")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _with_paths_from(self, folder: Path) -> pa.Table:
        """Return the table with its relative paths rewritten to start from another folder."""
        old, new = absolute(self.root), absolute(folder)
        if old == new:
            return self.table
        same_store = store_of(old) == store_of(new)

        def rewrite_parent(parent: str) -> str:
            """Rewrite the part of a path that precedes the file name."""
            if not parent.startswith("/") and not url_of(parent):
                parent = os.path.relpath(old / parent, new) if same_store else (old / parent).as_posix()
            parent = format_path(posixpath.normpath(parent))
            return "" if parent == "." else f"{parent.rstrip('/')}/"

        table = self.table
        for column in self.path_columns:
            # Once per folder: a catalog of ten million items has far fewer folders.
            paths = table.column(column).combine_chunks()
            parents = pc.replace_substring_regex(paths, r"[^/]*$", "").dictionary_encode()
            new_parents = pa.array([rewrite_parent(parent) for parent in parents.dictionary.to_pylist()], pa.string())
            names = pc.replace_substring_regex(paths, r"(?s)^.*/", "")
            joined_paths = pc.binary_join_element_wise(new_parents.take(parents.indices), names, "")
            # An empty path stands for an item without a file, which is mixed when it is read.
            rewritten = pc.if_else(pc.equal(paths, ""), "", joined_paths)
            table = table.set_column(table.column_names.index(column), column, rewritten)
        return table


def path_columns(table: pa.Table, recorded: Iterable[str]) -> list[str]:
    """List the columns of a catalog that hold paths, each once, including those that its record leaves out.

    Args:
        table: the catalog's table
        recorded: the path columns that its record names
    """
    names = ("path", *recorded, *_mixture_columns(table), *_mask_columns(table))
    return list(dict.fromkeys(name for name in names if name in table.column_names))


def _mixture_columns(table: pa.Table) -> tuple[str, ...]:
    """List the columns with the parts of mixtures, which are items with a foreground in place of a path."""
    has_mixtures = "foreground" in table.column_names and pc.any(pc.equal(table.column("path"), "")).as_py()
    return tuple(name for name in MIXTURE_COLUMNS if has_mixtures and name in table.column_names)


def _mask_columns(table: pa.Table) -> tuple[str, ...]:
    """List the column with the files of masks, if there is one."""
    if MASK not in table.column_names:
        return ()
    kind = table.schema.field(MASK).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return (MASK,) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ()


def _end_in(paths: pa.ChunkedArray, extensions: Iterable[str]) -> bool:
    """Return whether all paths end with one of the extensions."""
    return bool(pc.all(pc.match_substring_regex(paths, rf"(?i)[^/]\.({'|'.join(extensions)})$"), min_count=0).as_py())
