"""The table of items: what exists, with its label, its split and, where known, its context."""

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

from shotproof.core.errors import InputError, UnknownName, first_line, placed
from shotproof.core.nouns import Medium, counted
from shotproof.core.printable import NO_SECRETS, SECRET
from shotproof.core.records import CatalogRecord
from shotproof.core.storage.files import find_all
from shotproof.core.storage.places import absolute, joined, shown, store_of, url_of
from shotproof.core.tables import Tabular, conform, digest, find_rows, read_table, require_unique, write_table
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.media.images import IMAGE_EXTENSIONS

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = {"item": "string", "path": "string", "label": "string", "split": "string"}
OPTIONAL = {"context": "string", "source": "string"}
NAME = "name"  # the column with the classes' names for people
MIXTURE_COLUMNS = ("foreground", "background")


@dataclass(frozen=True, repr=False)
class Catalog(Tabular):
    """Items in rows: `item` (unique), `path`, `label`, `split`, optionally `context`, `source`, and any other column.

    A relative path is relative to `root`, the folder of the catalog's file. Other columns that hold paths are named
    in the record's `path_columns`.

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
            raise InputError(f"catalog, path_columns: column '{name}' holds no paths")
        paths = path_columns(table, self.record.path_columns)
        table = conform(table, dict.fromkeys(paths, "string"), "catalog")
        for name in paths:
            if pc.any(pc.match_substring(table.column(name), "\0")).as_py():
                raise InputError(f"catalog, column '{name}': a path has a NUL character")
            if pc.any(pc.match_substring_regex(table.column(name), SECRET)).as_py():
                raise InputError(f"catalog, column '{name}': {NO_SECRETS}")
        labels = pc.fill_null(table.column("label"), "")
        object.__setattr__(self, "table", table.set_column(table.column_names.index("label"), "label", labels))

    @classmethod
    def read(cls, path: str | Path) -> Catalog:
        """Read catalog.parquet."""
        path = Path(path)
        table, record = read_table(path, "catalog", REQUIRED, CatalogRecord)
        with placed(f"{path}: "):
            return cls(table, path.parent, record)

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame, *, root: str | Path = ".") -> Catalog:
        """From a data frame with the columns `item` and `label`, and others that there are.

        Args:
            frame: a row per item. Without `path` items have no files, which those with features do not need; without
                `split` all are of one
            root: the folder that relative paths start from, as a data frame has none: `catalog.root` of the catalog
                that it came from

        Example:
            >>> import pandas as pd
            >>> frame = pd.DataFrame({"item": ["a", "b"], "path": ["a.png", "b.png"], "label": ["jay", "owl"]})
            >>> Catalog.from_pandas(frame, root="birds").paths[1].as_posix()
            'birds/b.png'
        """
        absent = {"path": frame.get("item"), "split": "all"}
        made = super().from_pandas(frame.assign(**{name: absent[name] for name in absent if name not in frame}))
        return replace(made, root=Path(root))

    def filter(self, keep: pc.Expression | Sequence[bool] | npt.NDArray[np.bool_] | pa.Array) -> Catalog:
        """Only some of the items, as a catalog of its own: tasks of the whole are not its tasks.

        Args:
            keep: whether each item is kept, [n] of true and false (a list, an array, a column of a data frame), or a
                condition on columns as Arrow has it

        Raises:
            InputError: it is not of as many rows, names a column that there is not, or keeps nothing.

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
            kept = self.table.filter(condition)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(
                f"filter: expected {len(self):,} values, each true or false, or a condition on columns: "
                f"{first_line(error)}"
            ) from error
        if not len(kept):
            raise InputError(f"filter: none of the {len(self):,} items is kept")
        return Catalog(kept, self.root, self.record)

    def write(self, path: str | Path) -> None:
        """Write catalog.parquet, with the paths made relative to it."""
        path = Path(path)
        table = self.moved_to(path.parent).table
        write_table(path, table, "catalog", self.record, self.digest)

    def moved_to(self, folder: str | Path) -> Catalog:
        """Return the same catalog with another root, its relative paths rewritten to start from there."""
        folder = Path(folder)
        return Catalog(self._with_paths_from(folder), folder, self.record)

    def describe(self) -> str:
        """Return its name, how many items and classes it has, and its splits."""
        classes = pc.count_distinct(self.table.column("label")).as_py()
        named = f"{self.record.name}, " if self.record.name else ""
        sizes = f"{counted(len(self), 'item')} of {counted(classes, 'class', 'classes')}"
        return f"{named}{sizes}, splits {', '.join(self.splits)}"

    @cached_property
    def digest(self) -> str:
        """Return digest of all columns but the paths: the same data elsewhere on disk is the same catalog."""
        first = ["item", "label", "split"]
        # Names that were given beside the data say nothing new of it: tasks that were drawn before stay its tasks.
        names = [NAME] if self.record.names is not None else []
        return digest(self.table, first + sorted(set(self.table.column_names) - {*first, *names, *self.path_columns}))

    @property
    def path_columns(self) -> list[str]:
        """Return the columns that hold paths: `path`, those that the record names, and those of unwritten mixtures."""
        return path_columns(self.table, self.record.path_columns)

    @cached_property
    def items(self) -> list[str]:
        """Return the items' identifiers, in the order of the table."""
        names: list[str] = self.table.column("item").to_pylist()
        return names

    @cached_property
    def item_column(self) -> pa.Array:
        """Return the same as an Arrow array."""
        return self.table.column("item").combine_chunks()

    @cached_property
    def paths(self) -> list[Path]:
        """Return the items' files, each joined to the root where it is relative."""
        return [joined(self.root, path) for path in self.table.column("path").to_pylist()]

    @cached_property
    def stamp(self) -> str:
        """Digest of the sizes and times of all files, taken once: no file is read, and a changed one changes it."""
        columns = [self.table.column(name) for name in ("path", *_mixture_columns(self.table))]
        paths = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
        files = find_all([joined(self.root, path) for path in paths.to_pylist() if path])
        # Whoever needs a file that is missing says so.
        stamps = [[-1, -1] if file is None else [file.size, file.changed or 0] for file in files]
        return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:32]

    def with_stamp_of(self, other: Catalog) -> Catalog:
        """Take the stamp of a catalog of the same files, so that these are not asked for again; returns this one."""
        self.__dict__["stamp"] = other.stamp
        return self

    @cached_property
    def medium(self) -> Medium | None:
        """What its files hold, by how their names end; None where they hold both, or neither."""
        paths = self.table.column("path")
        named = paths.filter(pc.not_equal(paths, ""))
        every = len(named) == len(paths)
        mixed = not every and "foreground" in self.table.column_names  # sounds that are made when they are read
        if (len(named) or mixed) and (mixed or every) and _end_in(named, SOUND_EXTENSIONS):
            return "sound"
        return "image" if len(named) and every and _end_in(named, IMAGE_EXTENSIONS) else None

    @cached_property
    def class_names(self) -> dict[str, str]:
        """What people call each class: by the column `name`, where it has one name per label, else the label itself."""
        labels = self.table.column("label")
        names = {label: label for label in pc.unique(labels).to_pylist()}
        if NAME not in self.table.column_names or not pa.types.is_string(self.table.schema.field(NAME).type):
            return names
        pairs = (
            pa.table({"label": labels, NAME: self.table.column(NAME)})
            .group_by(["label", NAME], use_threads=False)
            .aggregate([])
        )
        known = [(row["label"], row[NAME]) for row in pairs.to_pylist() if row[NAME]]
        if len({label for label, _ in known}) < len(known):  # names of items, not of classes
            return names
        return names | dict(known)

    @property
    def splits(self) -> list[str]:
        """Return the names of the splits, sorted."""
        return sorted(pc.unique(self.table.column("split")).to_pylist())

    def in_split(self, split: str | None) -> Catalog:
        """Only the items of one split; None means all, and is refused where there is more than one."""
        if split is None:
            if len(self.splits) > 1:
                raise InputError(f"the catalog has the splits {', '.join(self.splits)}: choose one")
            return self
        if split not in self.splits:
            raise UnknownName("split", split, self.splits)
        return Catalog(self.table.filter(pc.equal(self.table.column("split"), split)), self.root, self.record)

    def rows_of(self, items: pa.Array | pa.ChunkedArray, what: str) -> npt.NDArray[np.int64]:
        """Return the row of each given item; an item that the catalog lacks is an error that names it."""
        return find_rows(items, self.item_column, f"{what}: the catalog lacks")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _with_paths_from(self, folder: Path) -> pa.Table:
        """Return the table with its relative paths rewritten to start from another folder."""
        old, new = absolute(self.root), absolute(folder)
        if old == new:
            return self.table
        together = store_of(old) == store_of(new)

        def moved(parent: str) -> str:
            """What stands before the name of a file, given what stood there."""
            if not parent.startswith("/") and not url_of(parent):
                parent = os.path.relpath(old / parent, new) if together else (old / parent).as_posix()
            parent = shown(posixpath.normpath(parent))
            return "" if parent == "." else f"{parent.rstrip('/')}/"

        table = self.table
        for column in self.path_columns:
            # Folder by folder: a catalog of ten million items has far fewer of them.
            paths = table.column(column).combine_chunks()
            folders = pc.replace_substring_regex(paths, r"[^/]*$", "").dictionary_encode()
            starts = pa.array([moved(one) for one in folders.dictionary.to_pylist()], pa.string()).take(folders.indices)
            names = pc.replace_substring_regex(paths, r"(?s)^.*/", "")
            # Without a path there is no file: an item that is made when it is read.
            rewritten = pc.if_else(pc.equal(paths, ""), "", pc.binary_join_element_wise(starts, names, ""))
            table = table.set_column(table.column_names.index(column), column, rewritten)
        return table


def path_columns(table: pa.Table, named: Iterable[str]) -> list[str]:
    """List the columns of a catalog that hold paths, each once, whatever its record leaves out.

    Args:
        table: the catalog's
        named: by its record
    """
    names = ("path", *named, *_mixture_columns(table))
    return list(dict.fromkeys(name for name in names if name in table.column_names))


def _mixture_columns(table: pa.Table) -> tuple[str, ...]:
    """The columns of what mixtures are made from when they are read: items with a foreground in place of a path."""
    has_mixtures = "foreground" in table.column_names and pc.any(pc.equal(table.column("path"), "")).as_py()
    return tuple(name for name in MIXTURE_COLUMNS if has_mixtures and name in table.column_names)


def _end_in(paths: pa.ChunkedArray, extensions: Iterable[str]) -> bool:
    """Return whether all paths end in one of the extensions."""
    return bool(pc.all(pc.match_substring_regex(paths, rf"(?i)[^/]\.({'|'.join(extensions)})$"), min_count=0).as_py())
