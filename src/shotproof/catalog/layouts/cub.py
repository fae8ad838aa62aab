"""Caltech-UCSD Birds 200-2011 in its official layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, require_files, sorted_catalog
from shotproof.core.errors import InputError
from shotproof.core.files import read_text

ID, FLAG, NUMBER, TEXT = "a whole number", "0 or 1", "a number", "a name"
_PATTERNS = {ID: r"^[0-9]{1,9}$", FLAG: r"^[01]$", NUMBER: r"^-?[0-9]{1,9}(\.[0-9]+)?$", TEXT: r"^\S(.*\S)?$"}
_TYPES = {ID: pa.int64(), FLAG: pa.int64(), NUMBER: pa.float64(), TEXT: pa.string()}


@dataclass(frozen=True)
class CubLayout(Layout):
    """`images.txt` and its companions; boxes and the visibility of the 15 parts become columns.

    Columns: `box_x`, `box_y`, `box_width`, `box_height` (pixels of the original images), and one bool column per part,
    such as `left wing visible`. Labels are the class folders' names; splits come from `train_test_split.txt`.
    """

    dataset = "CUB-200-2011"
    about = "the official CUB_200_2011 folder, with boxes and part visibility"
    license = "non-commercial research and education"
    citation = "Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, CNS-TR-2011-001, Caltech, 2011"

    def read(self, root: Path) -> Catalog:
        """The items that `images.txt` lists."""
        images = Records(root / "images.txt", {"image": ID, "path": TEXT})
        images.refuse_repeated("image")
        items = [f"images/{path}" for path in images.texts("path")]
        require_files(root, items, images.path, first_line=1)
        columns = {"item": items, "label": _labels(root, images), "split": _splits(root, images)}
        return sorted_catalog({**columns, **_boxes(root, images), **_visible_parts(root, images)}, root)


class Records:
    """A text file of CUB: one line per record, fields separated by one space, no header; errors name the line."""

    def __init__(self, path: Path, fields: Mapping[str, str]) -> None:
        self.path = path
        self.table = _read_fields(path, list(fields))
        for name, kind in fields.items():
            column = self.table.column(name)
            bad = pc.index(pc.match_substring_regex(column, _PATTERNS[kind]), False).as_py()
            if bad >= 0:
                raise self.error(bad, f"expected {kind} for the {name}, found '{column[bad].as_py()}'")
            self.table = self.table.set_column(self.table.column_names.index(name), name, column.cast(_TYPES[kind]))

    def texts(self, name: str) -> list[str]:
        """One field of every record."""
        values: list[str] = self.table.column(name).to_pylist()
        return values

    def numbers(self, name: str) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """One field of every record."""
        values: npt.NDArray[np.int64] | npt.NDArray[np.float64] = self.table.column(name).to_numpy()
        return values

    def error(self, record: int, message: str) -> InputError:
        """An error that names the record's line."""
        return InputError(f"{self.path}, line {record + 1}: {message}")

    def refuse_repeated(self, *names: str) -> None:
        """Refuse two records with the same values in these fields."""
        keys = np.stack([self.numbers(name) for name in names])
        _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        repeated = np.flatnonzero(first[which.ravel()] != np.arange(self.table.num_rows))
        if len(repeated):
            key = ", ".join(f"{name} {self.numbers(name)[repeated[0]]}" for name in names)
            raise self.error(int(repeated[0]), f"{key} occurs twice")

    def rows_in(self, name: str, other: Records) -> npt.NDArray[np.int64]:
        """For each record, the row in `other` with the same value of a field; every value must be there."""
        rows = pc.index_in(self.table.column(name), value_set=other.table.column(name))
        unknown = pc.index(pc.is_null(rows), True).as_py()
        if unknown >= 0:
            value = self.numbers(name)[unknown]
            raise self.error(unknown, f"{name} {value} is not in {other.path.name}")
        found: npt.NDArray[np.int64] = rows.to_numpy().astype(np.int64)
        return found

    def require_all(self, covered: Any, images: Records) -> None:
        """Refuse a file that lacks an image; `covered` [images] says for each whether it is complete."""
        if not covered.all():
            missing = int(np.argmin(covered))
            raise InputError(f"{self.path} lacks records of image {images.numbers('image')[missing]}")


def _read_fields(path: Path, names: Sequence[str]) -> pa.Table:
    """The fields as text, [lines] per column; only the last one may contain spaces."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: expected the official CUB_200_2011 folder")
    lines = read_text(path, str(path)).removesuffix("\n").split("\n")
    fields = pc.split_pattern(pa.array(lines, pa.string()), " ", max_splits=len(names) - 1)
    wrong = pc.index(pc.equal(pc.list_value_length(fields), len(names)), False).as_py()
    if wrong >= 0:
        expected = f"{len(names)} fields ({', '.join(names)})"
        raise InputError(f"{path}, line {wrong + 1}: expected {expected}, found '{lines[wrong]}'")
    return pa.table({name: pc.list_element(fields, index) for index, name in enumerate(names)})


def _read_of_images(path: Path, fields: Mapping[str, str], images: Records) -> tuple[Records, npt.NDArray[np.int64]]:
    """A file with one record per image, and for each image the row of its record."""
    records = Records(path, {"image": ID, **fields})
    records.refuse_repeated("image")
    image_rows = records.rows_in("image", images)
    row_of = np.full(images.table.num_rows, -1)
    row_of[image_rows] = np.arange(len(image_rows))
    records.require_all(row_of >= 0, images)
    return records, row_of


def _labels(root: Path, images: Records) -> list[str]:
    """Each image's class name, which must be the name of its folder."""
    classes = Records(root / "classes.txt", {"class": ID, "name": TEXT})
    classes.refuse_repeated("class")
    records, row_of = _read_of_images(root / "image_class_labels.txt", {"class": ID}, images)
    names = classes.texts("name")
    labels = [names[row] for row in records.rows_in("class", classes)[row_of]]
    for label, path, row in zip(labels, images.texts("path"), row_of, strict=True):
        if path.split("/")[0] != label:
            raise records.error(int(row), f"the class is {label}, but images.txt has the path {path}")
    return labels


def _splits(root: Path, images: Records) -> list[str]:
    records, row_of = _read_of_images(root / "train_test_split.txt", {"is_training_image": FLAG}, images)
    return ["train" if flag else "test" for flag in records.numbers("is_training_image")[row_of]]


def _boxes(root: Path, images: Records) -> dict[str, pa.Array]:
    names = ["box_x", "box_y", "box_width", "box_height"]
    records, row_of = _read_of_images(root / "bounding_boxes.txt", dict.fromkeys(names, NUMBER), images)
    return {name: pa.array(records.numbers(name)[row_of]) for name in names}


def _visible_parts(root: Path, images: Records) -> dict[str, pa.Array]:
    """One bool column per part."""
    parts = Records(root / "parts" / "parts.txt", {"part": ID, "name": TEXT})
    parts.refuse_repeated("part")
    records = Records(
        root / "parts" / "part_locs.txt", {"image": ID, "part": ID, "x": NUMBER, "y": NUMBER, "visible": FLAG}
    )
    records.refuse_repeated("image", "part")
    state = np.full((images.table.num_rows, parts.table.num_rows), -1)  # [images, parts]: 0, 1, or no record
    state[records.rows_in("image", images), records.rows_in("part", parts)] = records.numbers("visible")
    records.require_all((state >= 0).all(axis=1), images)
    names = [f"{name.replace('_', ' ')} visible" for name in parts.texts("name")]
    return {name: pa.array(state[:, column] == 1) for column, name in enumerate(names)}
