"""Base classes of the layouts of published data sets, which declare how paths or listings describe the items."""

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
from shotproof.catalog.class_files import file_origin, look_up_splits
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
SPLIT_FILE = "Meta-Dataset's file with the split; None: the file of that name in the data's folder"
SPLIT_CITATION = "Triantafillou et al., Meta-Dataset: A Dataset of Datasets for Learning to Learn, ICLR 2020 (split)"


@dataclass(frozen=True)
class Paths:
    """Items that are described by their paths.

    pattern: regular expression for the path of an item below its folder; each named group becomes a column
    expected: description of such a path, for messages
    folders: folders of the items; the first one that exists is used
    values: for a column, the value of each text in a path
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
    """Declare a folder with one folder per class."""
    return Paths(r"(?P<label>[^/]+)/.+", "CLASS/ITEM, a folder for each class", (folder,))


@dataclass(frozen=True)
class Listing:
    """Items that are listed in CSV files, one per line.

    file: path of the CSV file; may contain the column of `each` in braces
    path: path of an item, with columns of the file and of `each` in braces
    columns: for each column of the catalog, the column of the file
    each: column that distinguishes the files, and its values, one per file
    """

    file: str
    path: str
    columns: Mapping[str, str]
    each: tuple[str, Sequence[str]] | None = None

    def read(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the columns, and notes for the record."""
        file_column, values = self.each or ("", ("",))
        in_path = {name for _, name, _, _ in string.Formatter().parse(self.path) if name} - {file_column}
        columns: Columns = {name: [] for name in ("item", *self.columns, *([file_column] if file_column else []))}
        for value in values:
            listing = root / self.file.format(**{file_column: value})
            rows = _read_listing(listing, sorted({*in_path, *self.columns.values()}))
            items = [self.path.format(**{file_column: value}, **row) for row in rows]
            require_files(root, items, listing, first_line=2)
            columns["item"] += items
            for name, listing_name in self.columns.items():
                columns[name] += [row[listing_name] for row in rows]
            if file_column:
                columns[file_column] += [value] * len(rows)
        return columns, {}


def _read_listing(path: Path, names: Sequence[str]) -> list[dict[str, str]]:
    """Read columns of a CSV file as text. An empty value is an error."""
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
    """Layout of a published data set, as a declaration; subclasses add code only for what cannot be declared.

    items: locations of the items, and their columns
    splits: splits of the data set, which must all be present; a single one is the split of all items
    test_size: numbers of classes and images in the published test split; a warning is logged if they differ
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
            problem = f"but '{split}' is missing" if split in self.splits else f"found '{split}'"
            hint = did_you_mean(split, catalog.splits if split in self.splits else self.splits)
            raise InputError(f"{root}: expected the folders {', '.join(self.splits)}, {problem}{hint}")
        test = catalog.table.filter(pc.equal(catalog.table.column("split"), "test"))
        counts = (len(pc.unique(test.column("label"))), test.num_rows)
        for count, published, kind in zip(counts, self.test_size, ("classes", "images"), strict=True):
            if published is not None and count != published:
                logger.warning(
                    "the test split has %s %s; as published, it has %s", f"{count:,}", kind, f"{published:,}"
                )
        return catalog


@dataclass(frozen=True)
class SplitFileLayout(PublishedLayout):
    """Layout of a published data set whose classes are split by a file of Meta-Dataset.

    split_name: name of that file
    """

    split_name: ClassVar[str]

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """Read the items as declared, with the split of the file."""
        path = root / self.split_name if self.split_file is None else self.split_file
        if not is_regular(path):
            raise InputError(
                f"{path} does not exist: the published split is a file of Meta-Dataset's repository "
                f"(dataset_conversion, {self.split_name}): copy it to the data's folder, or set split_file"
            )
        columns, notes = self.columns(root)
        catalog = self._catalog(columns | self.split_columns(path, columns["label"]), notes, root)
        return replace(catalog, record=replace(catalog.record, splits=file_origin(path)))

    def split_columns(self, path: Path, labels: Sequence[str]) -> Columns:
        """Read the columns that the file has for each item, by its label: `split`, and possibly others."""
        return {"split": look_up_splits(labels, read_class_lists(path), path)}


def read_class_lists(path: Path) -> dict[str, str]:
    """Read {class: split} from a JSON file that lists the classes of `train`, `valid` and `test`, numbers as text."""
    content = read_json(path, str(path))
    if not isinstance(content, dict) or not content or not all(isinstance(entry, list) for entry in content.values()):
        raise InputError(f"{path}: expected lists of classes under train, valid and test")
    split_by_label: dict[str, str] = {}
    for key, classes in content.items():
        if key not in SPLIT_NAMES:
            raise InputError(f"{path}: unknown split '{key}'{did_you_mean(key, SPLIT_NAMES)}")
        for label in map(str, classes):
            if label in split_by_label:
                raise InputError(f"{path}: class '{label}' occurs twice")
            split_by_label[label] = SPLIT_NAMES[key]
    return split_by_label
