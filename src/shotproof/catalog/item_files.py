"""Sources of the items of a catalog: files, mixtures, and changed items, which are made when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from shotproof.catalog.catalog import CHANGE, MASK, MIXTURE_COLUMNS, UNCHANGED, Catalog
from shotproof.catalog.changed_catalog import LAYERS_HINT, is_changed
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.changes.changed_items import ChangedClip, ChangedImage, MaskedImage
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.plain_values import format_value
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.places import resolve_path
from shotproof.core.storage.store import OnError, file_digests
from shotproof.core.tables import conform
from shotproof.media.box import Box
from shotproof.media.clip import Short, is_sound, read_clip
from shotproof.media.images import is_readable
from shotproof.media.mixture import Mixture, Peak
from shotproof.media.unwritten import ItemFile

MOST_GAIN_DB = 200.0  # range of 32-bit samples, from the quietest to the loudest
BOX = ("box_left", "box_top", "box_right", "box_bottom")  # columns: shares of the width and height

_MIXED_BY = {"peak": get_args(Peak), "short": get_args(Short)}  # columns only if they are not the default


def item_files(catalog: Catalog) -> Sequence[ItemFile]:
    """Return what each item is read from, [n], for `open_image` or `read_clip`.

    Raises:
        InputError: an item has neither a file nor the parts of a mixture, or lacks what its change needs.
    """
    paths = catalog.table.column("path").to_pylist()
    has_changes = is_changed(catalog)
    if all(paths) and not has_changes:
        return catalog.paths
    if not has_changes:
        mixtures = _mixtures(catalog, required=[not path for path in paths])
        return [mixture or path for mixture, path in zip(mixtures, catalog.paths, strict=True)]
    return _ChangedFiles(catalog).files


class _ChangedFiles:
    """Files of a catalog with changed items."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        kinds = {UNCHANGED: "string", CHANGE: "string"}
        table = conform(catalog.table, kinds, "catalog")
        self.rows = {item: row for row, item in enumerate(catalog.items)}
        self.paths = catalog.table.column("path").to_pylist()
        self.spellings = table.column(CHANGE).to_pylist()
        self.unchanged = table.column(UNCHANGED).to_pylist()
        self.is_mixed = catalog.medium != "image" and set(MIXTURE_COLUMNS) <= set(catalog.table.column_names)
        self.mixtures = _mixtures(catalog, [not path for path in self.paths]) if self.is_mixed else []
        self.changes: dict[str, Change] = {}

    @cached_property
    def masks(self) -> list[MaskedImage | None]:
        """Return each image with its mask, [n]; None if it has none."""
        return masked_images(self.catalog)

    @property
    def files(self) -> list[ItemFile]:
        """Return what each item is read from."""
        return [
            self._source(row) if spelling is None else self._changed(row, spelling)
            for row, spelling in enumerate(self.spellings)
        ]

    def _source(self, row: int) -> Path | Mixture:
        """Return the file of an item that is not changed, or its mixture if it has no file."""
        if self.paths[row]:
            return self.catalog.paths[row]
        mixture = self.mixtures[row] if self.is_mixed else None
        if mixture is None:
            raise InputError(f"catalog: item '{self.catalog.items[row]}' has no path")
        return mixture

    def _changed(self, row: int, spelling: str) -> ItemFile:
        """Return a changed item."""
        if spelling not in self.changes:
            self.changes[spelling] = changes.make(spelling)
        change = self.changes[spelling]
        change.require_medium(self.catalog.medium)
        if change.changes_nothing:
            return self._source(row)
        if not isinstance(change, BackgroundChange):
            source = self._source(row)
            is_image = change.media == ("image",)
            return ChangedImage(change, MaskedImage(Path(str(source)))) if is_image else ChangedClip(change, source)
        item = self.unchanged[row] or self.catalog.items[row]
        rows = [row] if change.plates is None else [row, self._row_of_plate(change, item)]
        if self.is_mixed:
            parts = [self.mixtures[part] for part in rows]
            if all(mixture is not None and mixture.background is not None for mixture in parts):
                return ChangedClip(change, *parts)  # type: ignore[arg-type]
        else:
            images = [self.masks[part] for part in rows]
            if all(image is not None for image in images):
                return ChangedImage(change, *images)  # type: ignore[arg-type]
        raise InputError(f"change '{change.name}': item '{item}' or its plate has no foreground: {LAYERS_HINT}")

    def _row_of_plate(self, change: BackgroundChange, item: str) -> int:
        """Return the row of the item whose background is shown."""
        if change.plate is None or change.plate not in self.rows:
            named = "no plate" if change.plate is None else f"the plate '{change.plate}', which is not in the catalog"
            raise InputError(f"change '{change.name}' of item '{item}' has {named}")
        return self.rows[change.plate]


def masked_images(catalog: Catalog) -> list[MaskedImage | None]:
    """Return each image with its mask, [n]; None if it has none.

    Raises:
        InputError: a mask is not named by text, or a box is not inside its image.
    """
    table = catalog.table
    if MASK not in table.column_names:
        return [None] * len(table)
    masks = conform(table, {MASK: "string"}, "catalog").column(MASK).to_pylist()
    boxes = [None if values is None else Box(*values) for values in box_values(catalog, BOX)]
    for item, box in zip(catalog.items, boxes, strict=True):
        if box is not None and not box.is_inside:
            raise InputError(
                f"catalog: the box of item '{item}' ({_spelled(BOX, box)}) is not inside its image: expected "
                f"0 <= {BOX[0]} < {BOX[2]} <= 1 and 0 <= {BOX[1]} < {BOX[3]} <= 1, as shares of the width and height"
            )
    return [
        MaskedImage(path, resolve_path(catalog.root, mask), box) if mask else None
        for path, mask, box in zip(catalog.paths, masks, boxes, strict=True)
    ]


def box_values(catalog: Catalog, names: Sequence[str]) -> list[tuple[float, ...] | None]:
    """Return the four numbers that tell the box of each item, [n]; None if it has none.

    Args:
        catalog: images
        names: the four columns, of which a catalog has all or none

    Raises:
        InputError: some of the columns or values are missing, or a value is not a finite number.
    """
    lacking = [name for name in names if name not in catalog.table.column_names]
    if len(lacking) == len(names):
        return [None] * len(catalog)
    if lacking:
        found = [name for name in names if name not in lacking]
        raise InputError(f"catalog: a box needs four columns; it has {', '.join(found)} and lacks {', '.join(lacking)}")
    table = conform(catalog.table, dict.fromkeys(names, "number"), "catalog")
    boxes: list[tuple[float, ...] | None] = []
    columns = (table.column(name).to_pylist() for name in names)
    for item, values in zip(catalog.items, zip(*columns, strict=True), strict=True):
        if all(value is None for value in values):
            boxes.append(None)
        elif all(value is not None and math.isfinite(value) for value in values):
            boxes.append(values)
        else:
            raise InputError(
                f"catalog: the box of item '{item}' ({_spelled(names, values)}) is not four finite numbers: for an "
                f"image without a box, expected four empty values"
            )
    return boxes


def _spelled(names: Sequence[str], values: Sequence[float | None]) -> str:
    """Spell the numbers of a box: `box_x 3, box_y empty, ...`."""
    return ", ".join(
        f"{name} {'empty' if value is None else format(value, 'g')}" for name, value in zip(names, values, strict=True)
    )


def _mixtures(catalog: Catalog, required: Sequence[bool]) -> list[Mixture | None]:
    """Return the mixture that each item is, or would be without its file; None if it has no foreground."""
    further = [name for name in _MIXED_BY if name in catalog.table.column_names]
    kinds = {"foreground": "string", "background": "string", "gain_db": "number", **dict.fromkeys(further, "string")}
    rows = conform(catalog.table, kinds, "catalog").select(list(kinds)).to_pylist()
    for row, is_required in zip(rows, required, strict=True):
        if is_required and not row["foreground"]:
            raise InputError("catalog: columns 'path' and 'foreground' are both empty in a row: expected one of them")
        if row["gain_db"] is not None and not row["gain_db"] <= MOST_GAIN_DB:
            raise InputError(
                f"catalog, column 'gain_db': expected at most {MOST_GAIN_DB:g} dB, found {format_value(row['gain_db'])}"
            )
        for name in further:
            if row[name] not in _MIXED_BY[name]:
                expected = " or ".join(_MIXED_BY[name])
                raise InputError(f"catalog, column '{name}': expected {expected}, found {format_value(row[name])}")
    return [_mixture(catalog.root, row, further) if row["foreground"] else None for row in rows]


def _mixture(root: Path, row: Mapping[str, Any], further: Sequence[str]) -> Mixture:
    """Return the mixture of a catalog's row."""
    return Mixture(
        resolve_path(root, row["foreground"]),
        None if row["background"] is None else resolve_path(root, row["background"]),
        0.0 if row["gain_db"] is None else row["gain_db"],
        **{name: row[name] for name in further},
    )


def item_digests(files: Sequence[ItemFile], runtime: Runtime, on_error: OnError = "raise") -> pa.Array:
    """Return a digest of the content of each item, [n]: that of its file, or of everything that it is made of.

    With `on_error` skip, it is null if a file cannot be read.
    """
    paths = sorted({path for file in files for path in ([file] if isinstance(file, Path) else file.files)})
    digests: dict[Path, str | None] = dict(zip(paths, file_digests(paths, runtime, on_error).to_pylist(), strict=True))

    def digest(file: ItemFile) -> str | None:
        if isinstance(file, Path):
            return digests[file]
        parts = [digests[path] for path in file.files]
        return None if None in parts else file.digest([part for part in parts if part is not None])

    return pa.array([digest(file) for file in files], pa.string())


def unreadable_files(catalog: Catalog, items: Sequence[str]) -> list[Path]:
    """Find the files because of which items cannot be read, each once: images and sounds, masks, parts of mixtures.

    Args:
        catalog: catalog of the items
        items: names of items that cannot be read
    """
    sources = dict(zip(catalog.items, item_files(catalog), strict=True))
    bad: dict[Path, bool] = {}
    found: dict[Path, None] = {}
    for item in items:
        source = sources[item]
        files = [source] if isinstance(source, Path) else source.files
        for file in files:
            if file not in bad:
                bad[file] = not _can_be_read(file)
        failed = [file for file in files if bad[file]]
        if not failed and isinstance(source, ChangedImage):
            failed = source.misfits
        found |= dict.fromkeys(failed or files)
    return list(found)


def _can_be_read(file: Path) -> bool:
    """Return whether an image or a sound can be decoded."""
    if not is_sound(file):
        return is_readable(file)
    try:
        read_clip(file)
    except UnreadableItem:
        return False
    return True
