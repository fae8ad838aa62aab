"""Sources of the items of a catalog: files, mixtures, and changed items, which are made when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from shotproof.catalog.catalog import CHANGE, MASK, MIXTURE_COLUMNS, UNCHANGED, Catalog
from shotproof.catalog.changed_catalog import LAYERS_HINT
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.changes.changed_items import ChangedClip, ChangedImage, MaskedImage
from shotproof.core.errors import InputError
from shotproof.core.plain_values import format_value
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.places import resolve_path
from shotproof.core.storage.store import OnError, file_digests
from shotproof.core.tables import conform
from shotproof.media.clip import Short
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
    has_changes = CHANGE in catalog.table.column_names
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
        self.is_mixed = set(MIXTURE_COLUMNS) <= set(catalog.table.column_names)
        self.mixtures = _mixtures(catalog, [not path for path in self.paths]) if self.is_mixed else []
        self.masks = masked_images(catalog)
        self.changes: dict[str, Change] = {}

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
        change = self.changes.setdefault(spelling, changes.make(spelling))
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
    """Return each image with its mask, [n]; None if it has none."""
    table = catalog.table
    if MASK not in table.column_names:
        return [None] * len(table)
    masks = conform(table, {MASK: "string"}, "catalog").column(MASK).to_pylist()
    boxes: list[Any] = [None] * len(table)
    if set(BOX) <= set(table.column_names):
        columns = [conform(table, {name: "number"}, "catalog").column(name).to_pylist() for name in BOX]
        boxes = [None if None in box else box for box in zip(*columns, strict=True)]
    return [
        MaskedImage(path, resolve_path(catalog.root, mask), box) if mask else None
        for path, mask, box in zip(catalog.paths, masks, boxes, strict=True)
    ]


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
