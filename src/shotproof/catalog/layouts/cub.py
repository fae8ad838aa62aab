"""Layout of the official folder of Caltech-UCSD Birds 200-2011."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.layout import require_files
from shotproof.catalog.layouts.published import Columns, PublishedLayout
from shotproof.core.errors import InputError
from shotproof.core.storage.files import is_regular, read_text

BOX = ("box_x", "box_y", "box_width", "box_height")
ID, FLAG, NUMBER, TEXT = "a whole number", "0 or 1", "a number", "a name"
_PATTERNS = {ID: r"^[0-9]{1,9}$", FLAG: r"^[01]$", NUMBER: r"^-?[0-9]{1,9}(\.[0-9]+)?$", TEXT: r"^\S(.*\S)?$"}
_TYPES = {ID: pa.int64(), FLAG: pa.int64(), NUMBER: pa.float64(), TEXT: pa.string()}


class CubLayout(PublishedLayout):
    """`images.txt` and its companion files; boxes and the visibility of the 15 parts become columns.

    Columns: `box_x`, `box_y`, `box_width`, `box_height` (pixels of the original images), and one bool column per part,
    such as `left wing visible`. Labels are the names of the class folders; splits come from `train_test_split.txt`.
    """

    dataset = "CUB-200-2011"
    about = "the official CUB_200_2011 folder, with boxes and part visibility"
    license = "non-commercial research and education"
    citation = "Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, CNS-TR-2011-001, Caltech, 2011"

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the items that `images.txt` lists."""
        return cub_columns(root), {}


class Records:
    """Text file with one record per line, fields separated by one space, and no header; errors name the line.

    Args:
        folder: description of the folder that should contain the file, for the error if it does not exist
        path: path of the file
        fields: kind of each field, by its name; only the last field may contain spaces
        keys: number of leading fields that form the key, which is unique
    """

    def __init__(self, folder: str, path: Path, fields: Mapping[str, str], keys: int = 1) -> None:
        if not is_regular(path):
            raise InputError(f"{path} does not exist: expected {folder}")
        self.path, self.keys = path, list(fields)[:keys]
        lines = read_text(path, str(path)).removesuffix("\n").split("\n")
        texts = pc.split_pattern(pa.array(lines, pa.string()), " ", max_splits=len(fields) - 1)
        invalid_row = pc.index(pc.equal(pc.list_value_length(texts), len(fields)), False).as_py()
        if invalid_row >= 0:
            raise self.error(
                invalid_row, f"expected {len(fields)} fields ({', '.join(fields)}), found '{lines[invalid_row]}'"
            )
        self.columns: dict[str, list[Any]] = {}
        for index, (name, kind) in enumerate(fields.items()):
            column = pc.list_element(texts, index)
            invalid_row = pc.index(pc.match_substring_regex(column, _PATTERNS[kind]), False).as_py()
            if invalid_row >= 0:
                raise self.error(invalid_row, f"expected {kind} for the {name}, found '{column[invalid_row].as_py()}'")
            self.columns[name] = column.cast(_TYPES[kind]).to_pylist()
        self.row_of: dict[tuple[Any, ...], int] = {}
        for row, key in enumerate(zip(*(self.columns[name] for name in self.keys), strict=True)):
            if self.row_of.setdefault(key, row) != row:
                raise self.error(row, f"{self._format_key(key)} occurs twice")

    def error(self, row: int, message: str) -> InputError:
        """Build an error that names the record's line."""
        return InputError(f"{self.path}, line {row + 1}: {message}")

    def check_known(self, name: str, others: Records) -> None:
        """Check that each value of a field is a key of the other records."""
        for row, value in enumerate(self.columns[name]):
            if (value,) not in others.row_of:
                raise self.error(row, f"{name} {value} is not in {others.path.name}")

    def of(self, name: str, *key: Any) -> Any:
        """Return a field of the record with this key. A missing record is an error."""
        if key not in self.row_of:
            raise InputError(f"{self.path} lacks records of {self._format_key(key[:1])}")
        return self.columns[name][self.row_of[key]]

    def _format_key(self, key: tuple[Any, ...]) -> str:
        return ", ".join(f"{name} {value}" for name, value in zip(self.keys, key, strict=False))


def cub_columns(root: Path) -> Columns:
    """Read the columns of the catalog from all files of the folder."""
    read = partial(Records, "the official CUB_200_2011 folder")
    images = read(root / "images.txt", {"image": ID, "path": TEXT})
    numbers, paths = images.columns["image"], images.columns["path"]
    columns: Columns = {"item": [f"images/{path}" for path in paths]}
    require_files(root, columns["item"], images.path, first_line=1)

    classes = read(root / "classes.txt", {"class": ID, "name": TEXT})
    labels = read(root / "image_class_labels.txt", {"image": ID, "class": ID})
    splits = read(root / "train_test_split.txt", {"image": ID, "is_training_image": FLAG})
    boxes = read(root / "bounding_boxes.txt", {"image": ID, **dict.fromkeys(BOX, NUMBER)})
    parts = read(root / "parts" / "parts.txt", {"part": ID, "name": TEXT})
    locations = read(
        root / "parts" / "part_locs.txt", {"image": ID, "part": ID, "x": NUMBER, "y": NUMBER, "visible": FLAG}, keys=2
    )
    for records in (labels, splits, boxes, locations):
        records.check_known("image", images)
    labels.check_known("class", classes)
    locations.check_known("part", parts)

    columns["label"] = [classes.of("name", labels.of("class", number)) for number in numbers]
    for number, label, path in zip(numbers, columns["label"], paths, strict=True):
        if path.split("/")[0] != label:  # each class has its own folder
            row = labels.row_of[(number,)]
            raise labels.error(row, f"the class is {label}, but images.txt has the path {path}")
    columns["split"] = ["train" if splits.of("is_training_image", number) else "test" for number in numbers]
    columns |= {name: [boxes.of(name, number) for number in numbers] for name in BOX}
    for (part,), name in zip(parts.row_of, parts.columns["name"], strict=True):
        visible = [locations.of("visible", number, part) == 1 for number in numbers]
        columns[f"{name.replace('_', ' ')} visible"] = visible
    return columns
