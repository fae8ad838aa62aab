"""Published data sets as declarations: where their items lie, and what paths or listings say of them."""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import file_origin, splits_of
from shotproof.catalog.layout import Layout, require_files, sorted_catalog
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.catalog.layouts.item_paths import item_paths
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import option
from shotproof.core.storage.files import is_folder, is_regular, read_json
from shotproof.core.tables import conform

logger = logging.getLogger("shotproof")

Columns = dict[str, Any]
SPLITS = ("train", "val", "test")
SPLIT_NAMES = {"train": "train", "valid": "val", "val": "val", "validation": "val", "test": "test"}
SPLIT_FILE = "Meta-Dataset's file of the split; None: that file, under its own name, beside the data"
SPLIT_CITATION = "Triantafillou et al., Meta-Dataset: A Dataset of Datasets for Learning to Learn, ICLR 2020 (split)"


@dataclass(frozen=True)
class Paths:
    """Items whose paths say what they are.

    pattern: of the path of an item below its folder, a regular expression; each named group becomes a column
    expected: how such a path looks, for messages
    folders: where the items lie; the first one that exists, or the first one if none does
    values: for a column, what each text in a path stands for
    """

    pattern: str
    expected: str
    folders: tuple[str, ...] = ("",)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def read(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the columns, and notes for the record."""
        folder = next((name for name in self.folders if is_folder(root / name)), self.folders[0])
        paths, ignored, _ = item_paths(root / folder)
        pattern = re.compile(self.pattern, re.DOTALL)
        rows = []
        for path in paths:
            match = pattern.fullmatch(path)
            if match is None:
                raise InputError(f"{root / folder}: '{path}': expected {self.expected}")
            rows.append(match)
        columns: Columns = {"item": [f"{folder}/{path}" if folder else path for path in paths]}
        for name in pattern.groupindex:
            values = self.values.get(name)
            columns[name] = [row[name] if values is None else values[row[name]] for row in rows]
        return columns, {"ignored_files": ignored}


def class_folders(folder: str = "") -> Paths:
    """Declare that a folder has one folder per class."""
    return Paths(r"(?P<label>[^/]+)/.+", "CLASS/ITEM, a folder for each class", (folder,))


@dataclass(frozen=True)
class Listing:
    """Items that CSV files list, one per line.

    file: the path of the CSV file; may name a column of `each` in braces
    path: of an item, with columns of the file and of `each` in braces
    columns: for each of our columns, the column of the file
    each: a column that the files differ in, and its values, one per file
    """

    file: str
    path: str
    columns: Mapping[str, str]
    each: tuple[str, Sequence[str]] | None = None

    def read(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the columns, and notes for the record."""
        differing, values = self.each or ("", ("",))
        in_path = {name for _, name, _, _ in string.Formatter().parse(self.path) if name} - {differing}
        columns: Columns = {name: [] for name in ("item", *self.columns, *([differing] if differing else []))}
        for value in values:
            listing = root / self.file.format(**{differing: value})
            rows = _listed(listing, sorted({*in_path, *self.columns.values()}))
            items = [self.path.format(**{differing: value}, **row) for row in rows]
            require_files(root, items, listing, first_line=2)
            columns["item"] += items
            for ours, theirs in self.columns.items():
                columns[ours] += [row[theirs] for row in rows]
            if differing:
                columns[differing] += [value] * len(rows)
        return columns, {}


def _listed(path: Path, names: Sequence[str]) -> list[dict[str, str]]:
    """Read the named columns of a CSV file as text; none may have an empty value."""
    table = read_csv(path, str(path), is_text=lambda name: True)
    table = conform(table, dict.fromkeys(names, "string"), str(path)).select(list(names))
    for name in names:
        empty = pc.index(table.column(name), "").as_py()
        if empty >= 0:
            raise InputError(f"{path}, line {empty + 2}: empty {name}")
    rows: list[dict[str, str]] = table.to_pylist()
    return rows


@dataclass(frozen=True)
class PublishedLayout(Layout):
    """The layout of a published data set, as a declaration; a subclass has code only for what cannot be declared.

    items: where the items lie, and their columns
    splits: the splits of the data set, all of which must be there; a single one is the split of all items
    test_size: classes and images of the published test split; a warning tells if there are others
    """

    items: ClassVar[Paths | Listing]
    splits: ClassVar[tuple[str, ...]] = ()
    test_size: ClassVar[tuple[int | None, int | None]] = (None, None)

    def read(self, root: Path) -> Catalog:
        """Read the items as declared."""
        columns, notes = self.columns(root)
        return self._catalog(columns, notes, root)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the columns of the catalog, and notes for its record."""
        return self.items.read(root)

    def _catalog(self, columns: Columns, notes: Mapping[str, Any], root: Path) -> Catalog:
        if len(self.splits) == 1:
            columns["split"] = [*self.splits] * len(columns["item"])
        catalog = sorted_catalog(columns, root, **notes)
        for split in sorted(set(self.splits) ^ set(catalog.splits) if self.splits else ()):
            known = catalog.splits if split in self.splits else self.splits
            raise InputError(
                f"{root}: expected the folders {', '.join(self.splits)}, see '{split}'{did_you_mean(split, known)}"
            )
        test = catalog.table.filter(pc.equal(catalog.table.column("split"), "test"))
        present = (len(pc.unique(test.column("label"))), test.num_rows)
        for number, published, what in zip(present, self.test_size, ("classes", "images"), strict=True):
            if published is not None and number != published:
                logger.warning("the test split has %s %s, published are %s", f"{number:,}", what, f"{published:,}")
        return catalog


@dataclass(frozen=True)
class SplitFileLayout(PublishedLayout):
    """The layout of a published data set whose classes a file of Meta-Dataset divides.

    split_name: of that file
    """

    split_name: ClassVar[str]

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """Read the items as declared, with the split of the file."""
        path = root / self.split_name if self.split_file is None else self.split_file
        if not is_regular(path):
            raise InputError(
                f"{path} does not exist: the published split is a file of Meta-Dataset's repository "
                f"(dataset_conversion, {self.split_name}): put it beside the data, or give split_file"
            )
        columns, notes = self.columns(root)
        catalog = self._catalog(columns | self.split_columns(path, columns["label"]), notes, root)
        return replace(catalog, record=replace(catalog.record, splits=file_origin(path)))

    def split_columns(self, path: Path, labels: Sequence[str]) -> Columns:
        """Read what the file says of each item, by its label: `split`, and perhaps other columns."""
        return {"split": splits_of(labels, read_class_lists(path), path)}


def read_class_lists(path: Path) -> dict[str, str]:
    """{class: split} of a JSON file that lists the classes of `train`, `valid` and `test`; numbers become text."""
    content = read_json(path, str(path))
    if not isinstance(content, dict) or not content or not all(isinstance(one, list) for one in content.values()):
        raise InputError(f"{path}: expected lists of classes under train, valid and test")
    split_of: dict[str, str] = {}
    for key, classes in content.items():
        if key not in SPLIT_NAMES:
            raise InputError(f"{path}: unknown split '{key}'{did_you_mean(key, SPLIT_NAMES)}")
        for label in map(str, classes):
            if label in split_of:
                raise InputError(f"{path}: class '{label}' is there twice")
            split_of[label] = SPLIT_NAMES[key]
    return split_of
