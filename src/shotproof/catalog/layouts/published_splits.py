"""Splits by class as publishers ship them: a JSON file of class lists, as Meta-Dataset has one per data set."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.file_digest import file_sha256
from shotproof.core.files import read_json

logger = logging.getLogger("shotproof")

SPLIT_FILE = "Meta-Dataset's file of the split; None: that file, under its own name, beside the data"
SPLIT_CITATION = "Triantafillou et al., Meta-Dataset: A Dataset of Datasets for Learning to Learn, ICLR 2020 (split)"
NAMES = {"train": "train", "valid": "val", "val": "val", "validation": "val", "test": "test"}


def split_file(root: Path, given: Path | None, name: str) -> Path:
    """The file of a published split: the one that was given, or the one of this name in the data's folder."""
    path = root / name if given is None else given
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: the published split is a file of Meta-Dataset's repository (dataset_conversion, "
            f"{name}): put it beside the data, or give split_file"
        )
    return path


def read_class_lists(path: Path) -> dict[str, str]:
    """{class: split} of a JSON file that lists the classes of `train`, `valid` and `test`; numbers become text."""
    content = read_json(path, str(path))
    if not isinstance(content, dict) or not content or not all(isinstance(one, list) for one in content.values()):
        raise InputError(f"{path}: expected lists of classes under train, valid and test")
    found: dict[str, str] = {}
    for key, classes in content.items():
        if key not in NAMES:
            raise InputError(f"{path}: unknown split '{key}'{did_you_mean(key, NAMES)}")
        for label in map(str, classes):
            if label in found:
                raise InputError(f"{path}: class '{label}' is there twice")
            found[label] = NAMES[key]
    return found


def splits_of(labels: Iterable[str], split_of: Mapping[str, str], path: Path) -> list[str]:
    """The split of each item's label; both must name the same classes."""
    given = list(labels)
    present = set(given)
    for label in sorted(present - split_of.keys()):
        raise InputError(f"{path} does not list the class '{label}'{did_you_mean(label, split_of)}")
    for label in sorted(split_of.keys() - present):
        raise InputError(f"{path} lists the class '{label}', of which there are no items{did_you_mean(label, present)}")
    return [split_of[label] for label in given]


def checked(catalog: Catalog, path: Path | None, test_classes: int | None, test_images: int | None) -> Catalog:
    """The catalog with its split's file in the record; a warning where the test split is not as it was published."""
    test = catalog.table.filter(pc.equal(catalog.table.column("split"), "test"))
    found = (len(pc.unique(test.column("label"))), test.num_rows)
    for number, published, what in zip(found, (test_classes, test_images), ("classes", "images"), strict=True):
        if published is not None and number != published:
            logger.warning("the test split has %s %s, published are %s", f"{number:,}", what, f"{published:,}")
    if path is None:
        return catalog
    return replace(catalog, record=replace(catalog.record, splits={"file": path.name, "sha256": file_sha256(path)}))
