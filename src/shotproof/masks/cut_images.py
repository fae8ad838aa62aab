"""Masks for a catalog of images: each image is cut once, checked, and left out if its mask is bad."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.item_files import BOX, box_values
from shotproof.core.errors import InputError, InsufficientData, UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord, Maker, Source
from shotproof.core.runtime.progress import duration, timed
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.places import absolute
from shotproof.core.storage.store import Store, Writer, file_digests
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import check_output
from shotproof.masks.cutter import Cutter, cutters
from shotproof.masks.mask_quality import MaskQuality, MaskThresholds
from shotproof.media.box import Box
from shotproof.media.images import IMAGE_EXTENSIONS, image_size, open_image
from shotproof.media.mask_file import fits, read_mask

Output = TypeVar("Output")

logger = logging.getLogger("shotproof")

SIDE = 192  # pixels of the shorter side at which images are cut
MASKS, CATALOG = "masks", "catalog.parquet"
MEASURES = ("area", "box_area", "pieces", "border", "background", "agreement")
PIXEL_BOX = ("box_x", "box_y", "box_width", "box_height")  # columns: pixels of the images that were annotated
UNREADABLE = "image unreadable"
CUB_SIDE = 500  # pixels of the longer side of CUB's images, in which its boxes are
_PER_CHUNK, _PER_SEGMENT = 4, 64
# Part of the keys of cached masks. It is raised when an image gets another mask, or other measures, than before.
_VERSION = 1


@dataclass(frozen=True)
class CutSettings(Checked):
    """Settings of cutting foregrounds out.

    Example:
        >>> CutSettings(cutter="grabcut(iterations=2)").cutter
        'grabcut(iterations=2)'
    """

    cutter: str | Cutter = option("grabcut", "what finds the foreground: grabcut, onnx:FILE or hf:MODEL")
    masks: Path | None = option(None, "folder of masks, named as the items are, in place of a cutter", path=True)
    box_side: int | None = option(
        None,
        "longer side, in pixels, of the images that the boxes were drawn in; by default that of the files (CUB: 500)",
        least=1,
    )
    thresholds: MaskThresholds = field(default_factory=MaskThresholds)

    @property
    def made_cutter(self) -> Cutter | None:
        """Return the cutter; None if there is a folder of masks."""
        return None if self.masks is not None else cutters.make(self.cutter)


@dataclass(frozen=True)
class CutImage:
    """Result for one image.

    png: the mask as PNG; empty if there is none
    quality: None if there is no mask
    failure: why the image is left out; None if it is kept
    box: around the foreground; None if it is unknown
    """

    png: bytes = b""
    quality: MaskQuality | None = None
    failure: str | None = None
    box: Box | None = None

    @property
    def reason(self) -> str:
        """Return why the image is left out, as text that needs no heading: `mask small`."""
        return f"{'' if self.failure == UNREADABLE else 'mask '}{self.failure}"


def cut(
    catalog: Catalog,
    folder: str | Path,
    settings: CutSettings | None = None,
    *,
    labels: Collection[str] | None = None,
    runtime: Runtime | None = None,
) -> Catalog:
    """Find the foreground of each image, and write the masks with a catalog of the images that have a good one.

    The same call resumes interrupted work: masks are cached by the content of the images.

    Args:
        catalog: images; boxes in the columns `box_x`, `box_y`, `box_width`, `box_height` help
        folder: folder for the masks and their catalog
        settings: how foregrounds are found
        labels: classes to cut; the images of others are kept as they are, without a mask. None is all
        runtime: where and how to compute; None is the current runtime

    Returns:
        The catalog that was written. Images without a good mask are left out, and counted and named in its record.

    Raises:
        InputError: the items are not images, or a box is incomplete or not inside its image.
        InsufficientData: no mask is good.

    Example:
        >>> masked = cut(catalog, "masked/", CutSettings("grabcut"))  # doctest: +SKIP
    """
    settings = settings or CutSettings()
    check_output(Path(folder) / CATALOG)
    return write_masks(catalog, find_masks(catalog, settings, labels=labels, runtime=runtime), folder, settings)


def find_masks(
    catalog: Catalog,
    settings: CutSettings,
    *,
    labels: Collection[str] | None = None,
    runtime: Runtime | None = None,
) -> list[CutImage]:
    """Find the foreground of each image, [n]; see `cut`. An image of another class has neither a mask nor a failure."""
    require_images(catalog)
    rows = [
        row for row, label in enumerate(catalog.table.column("label").to_pylist()) if labels is None or label in labels
    ]
    selected = Catalog(catalog.table.take(pa.array(rows, pa.int64())), catalog.root, catalog.record)
    boxes = _boxes(selected, settings)
    if settings.masks is not None:
        cut_results = _read_masks(selected, boxes, settings, resolve(runtime))
    else:
        cut_results = _cut_all(selected, boxes, settings, resolve(runtime))
    results = [CutImage()] * len(catalog)
    for row, result, box in zip(rows, cut_results, boxes, strict=True):
        results[row] = replace(result, box=box)
    return results


def write_masks(catalog: Catalog, results: Sequence[CutImage], folder: str | Path, settings: CutSettings) -> Catalog:
    """Write the good masks, and the catalog of the images that are kept; see `cut`."""
    folder = Path(folder)
    kept_rows = [row for row, result in enumerate(results) if result.failure is None]
    reasons = Counter(result.failure for result in results if result.failure is not None)
    if not any(results[row].png for row in kept_rows):
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        hint = f": name each mask as its image, e.g. {Path(catalog.items[0]).stem}.png" if reasons["missing"] else ""
        raise InsufficientData(f"none of {counted(reasons.total(), 'image')} has a good mask: {counts}{hint}")
    names = [_mask_path(catalog.items[row]) if results[row].png else None for row in kept_rows]
    for row, name in zip(kept_rows, names, strict=True):
        path = folder / (name or "")
        if name is not None and not (path.is_file() and path.read_bytes() == results[row].png):
            with whole_file(path) as temporary:
                temporary.write_bytes(results[row].png)
    masked = _masked(catalog, kept_rows, names, [results[row] for row in kept_rows], folder)
    record = replace(
        _record(catalog, settings),
        dropped={**catalog.record.dropped, **dict(sorted(reasons.items()))},
        skipped=(
            *catalog.record.skipped,
            *(
                {"item": catalog.items[row], "label": label, "reason": result.reason}
                for row, (result, label) in enumerate(
                    zip(results, catalog.table.column("label").to_pylist(), strict=True)
                )
                if result.failure is not None
            ),
        ),
    )
    masked = Catalog(masked.table, folder, record)
    masked.write(folder / CATALOG)
    return masked


def expected_masks(
    catalog: Catalog, folder: Path, settings: CutSettings, *, labels: Collection[str] | None = None
) -> Catalog:
    """Predict the catalog that `cut` will write if every mask is good, without reading any image.

    Raises:
        InputError: the items are not images, the cutter lacks a package, or the folder of masks does not exist.
    """
    require_images(catalog)
    if settings.masks is None:
        cutters.make(settings.cutter).require_extras()
    else:
        require_folder(settings.masks)
    masks = [
        (absolute(folder) / _mask_path(item)).as_posix() if labels is None or label in labels else None
        for item, label in zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True)
    ]
    return Catalog(
        _with_column(catalog.table, MASK, pa.array(masks, pa.string())), catalog.root, _record(catalog, settings)
    )


def cutting_key(cutter: Cutter) -> str:
    """Return everything that a mask and its measures depend on besides the image and its box."""
    return f"{_VERSION} {SIDE} {cutter.fingerprint}"


def require_images(catalog: Catalog) -> None:
    """Raise InputError if the items are not images."""
    if catalog.medium == "sound":
        raise InputError("cut: expected images, found sounds: sounds are taken apart if they are mixtures")


@dataclass(frozen=True)
class _CutOne:
    """Cuts one image in a worker process."""

    cutter: Cutter

    def __call__(self, task: tuple[Path, Box | None]) -> tuple[str, dict[str, Any]] | UnreadableItem:
        path, box = task
        try:
            image = open_image(path, side=2 * SIDE)
        except UnreadableItem as error:
            return error
        scale = SIDE / min(image.size)
        width, height = (max(1, round(length * scale)) for length in image.size)
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
        mask = self.cutter.cut(pixels, box)
        mirrored = self.cutter.cut(np.ascontiguousarray(pixels[:, ::-1]), box and box.mirrored())[:, ::-1]
        return base64.b64encode(_png(mask)).decode(), MaskQuality.of(mask, mirrored, box).to_json()


def _cut_all(catalog: Catalog, boxes: Sequence[Box | None], settings: CutSettings, runtime: Runtime) -> list[CutImage]:
    """Cut all images that the cache lacks."""
    cutter = cutters.make(settings.cutter)
    cutter.require_extras()
    if cutter.needs_boxes and len(catalog) and not any(boxes):
        logger.warning(
            "no boxes (columns %s): foregrounds are cut out of whole images, which is often wrong: look at the contact "
            "sheet",
            ", ".join(PIXEL_BOX),
        )
    digests = file_digests(catalog.paths, runtime, on_error="skip").to_pylist()
    keys = [
        digest and hashlib.sha256(f"{digest} {None if box is None else tuple(box)}".encode()).hexdigest()
        for digest, box in zip(digests, boxes, strict=True)
    ]
    name = hashlib.sha256(cutting_key(cutter).encode()).hexdigest()[:32]
    store = Store(runtime.cache / "masks" / f"{cutter.name}-{name}" if runtime.cache else None)
    cached: dict[str, str] = store.lookup(keys)
    first_rows = {key: row for row, key in reversed(list(enumerate(keys))) if key and key not in cached}
    rows = sorted(first_rows.values())
    work = [(catalog.paths[row], boxes[row]) for row in rows]
    if rows:
        in_cache = f"; the masks of {len(catalog) - len(rows):,} are in the cache" if len(rows) < len(catalog) else ""
        logger.info("cutting the foreground out of %s%s", counted(len(rows), "image"), in_cache)
    with Writer(store, _PER_SEGMENT) as writer:
        outputs = runtime.map(_CutOne(cutter), work, title="cutting images", chunk=_PER_CHUNK)
        for row, result in zip(rows, _with_estimate(outputs, len(work)), strict=True):
            if not isinstance(result, UnreadableItem):
                cached[str(keys[row])] = json.dumps(result)
                writer.add_value(str(keys[row]), cached[str(keys[row])])
    return [_from_cache(cached.get(key or ""), settings.thresholds) for key in keys]


def _with_estimate(outputs: Iterator[Output], total: int) -> Iterator[Output]:
    """Yield outputs, and log how long all will take; time before the first chunk is that of starting processes."""
    yield from itertools.islice(outputs, _PER_CHUNK)
    advance = timed(
        lambda steps: None,
        total - _PER_CHUNK,
        lambda seconds: logger.info("cutting %s: about %s", counted(total, "image"), duration(seconds)),
    )
    for output in outputs:
        advance(1)
        yield output


def _from_cache(text: str | None, thresholds: MaskThresholds) -> CutImage:
    """Return a result; an image without one cannot be read."""
    if text is None:
        return CutImage(failure=UNREADABLE)
    png, measures = json.loads(text)
    quality = MaskQuality(**measures)
    return CutImage(base64.b64decode(png), quality, quality.fails(thresholds))


def require_folder(folder: Path) -> None:
    """Raise InputError if a folder of masks does not exist."""
    if not folder.is_dir():
        raise InputError(f"masks: folder {folder} does not exist")


def _read_masks(
    catalog: Catalog, boxes: Sequence[Box | None], settings: CutSettings, runtime: Runtime
) -> list[CutImage]:
    """Read masks that somebody else made: files in a folder, named as the items are, with any image extension."""
    assert settings.masks is not None
    require_folder(settings.masks)
    files: dict[str, list[Path]] = {}
    for path in mask_files(settings.masks):
        files.setdefault(_without_extension(path.relative_to(settings.masks).as_posix()), []).append(path)
    stems = [_without_extension(Path(item).as_posix()) for item in catalog.items]
    name_counts = Counter(Path(stem).name for stem in stems)
    work = []
    for item, stem, path, box in zip(catalog.items, stems, catalog.paths, boxes, strict=True):
        name = Path(stem).name
        matching = files.get(stem) or (files.get(name, []) if name_counts[name] == 1 else [])
        if len(matching) > 1:
            names = " and ".join(file.relative_to(settings.masks).as_posix() for file in matching)
            raise InputError(f"masks: folder {settings.masks} has several masks for item '{item}', {names}: keep one")
        work.append((path, matching[0] if matching else None, box))
    return list(runtime.map(_ReadOne(settings.thresholds), work, title="reading masks", chunk=_PER_SEGMENT))


def mask_files(folder: Path) -> list[Path]:
    """List the images in a folder of masks, sorted, so that the same folder gives the same masks on any file system."""
    return sorted(path for path in folder.rglob("*") if _has_image_extension(path) and path.is_file())


def _without_extension(name: str) -> str:
    """Remove the extension of an image, which names of items and masks need not have: `bird_v1.2` stays."""
    return name.rpartition(".")[0] if _has_image_extension(Path(name)) else name


def _has_image_extension(path: Path) -> bool:
    """Return whether a name ends as those of images do."""
    return path.suffix.lower().removeprefix(".") in IMAGE_EXTENSIONS


@dataclass(frozen=True)
class _ReadOne:
    """Reads the mask of one image in a worker process."""

    thresholds: MaskThresholds

    def __call__(self, task: tuple[Path, Path | None, Box | None]) -> CutImage:
        path, file, box = task
        if file is None:
            return CutImage(failure="missing")
        try:
            size = image_size(path)
        except UnreadableItem:
            return CutImage(failure=UNREADABLE)
        try:
            mask = read_mask(file)
        except UnreadableItem:
            return CutImage(failure="unreadable")
        height, width = mask.shape
        if not fits((width, height), size):
            return CutImage(failure="of another shape")
        quality = MaskQuality.of(mask, None, box)
        return CutImage(_png(mask), quality, quality.fails(self.thresholds))


def _masked(
    catalog: Catalog,
    kept_rows: Sequence[int],
    names: Sequence[str | None],
    results: Sequence[CutImage],
    folder: Path,
) -> Catalog:
    """Build the catalog of the images that are kept, with their masks, boxes and measures."""
    table = catalog.moved_to(folder).table.take(pa.array(kept_rows, pa.int64()))
    columns: dict[str, pa.Array] = {MASK: pa.array(names, pa.string())}
    for index, name in enumerate(BOX):
        values = [None if result.box is None else round(result.box[index], 6) for result in results]
        if any(value is not None for value in values):
            columns[name] = pa.array(values, pa.float64())
    for name in MEASURES:
        values = [getattr(result.quality, name, None) for result in results]
        columns[f"mask_{name}"] = pa.array(values, pa.float64())
    for name, column in columns.items():
        table = _with_column(table, name, column)
    return Catalog(table, folder, catalog.record)


def _with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """Append a column, in place of one of the same name."""
    return (table.drop_columns([name]) if name in table.column_names else table).append_column(name, column)


def _record(catalog: Catalog, settings: CutSettings) -> CatalogRecord:
    """Return the record of a catalog with masks, without what is left out."""
    return replace(
        catalog.record,
        sources={**catalog.record.sources, "catalog": Source(catalog.digest, catalog.record.name)},
        stated_digest=None,
        notes={**catalog.record.notes, "cutter": _maker(settings)},
    )


def _boxes(catalog: Catalog, settings: CutSettings) -> list[Box | None]:
    """Return the box of each image as shares of its size; None if the catalog has none."""
    pixel_boxes = box_values(catalog, PIXEL_BOX)
    sizes = [None if values is None else _size(path) for path, values in zip(catalog.paths, pixel_boxes, strict=True)]
    side = settings.box_side or _published_side(catalog, [size for size in sizes if size])
    boxes: list[Box | None] = []
    for item, size, values in zip(catalog.items, sizes, pixel_boxes, strict=True):
        if values is None or size is None:
            boxes.append(None)
            continue
        x, y, width, height = values
        scale = 1.0 if side is None else side / max(size)
        full = size[0] * scale, size[1] * scale
        box = Box(x / full[0], y / full[1], (x + width) / full[0], (y + height) / full[1])
        inside = Box(*(float(np.clip(share, 0, 1)) for share in box))
        if not all(-0.02 <= share <= 1.02 for share in box) or not inside.is_inside:
            raise InputError(
                f"catalog: the box of item '{item}' ({x:g}, {y:g}, {width:g} x {height:g}) is not inside its image of "
                f"{size[0]} x {size[1]} pixels: if files were resized since, set box_side to the longer side they had"
            )
        boxes.append(inside)
    return boxes


def _size(path: Path) -> tuple[int, int] | None:
    """Return the width and height of an image; None if it cannot be read."""
    try:
        return image_size(path)
    except UnreadableItem:
        return None


def _published_side(catalog: Catalog, sizes: Sequence[tuple[int, int]]) -> int | None:
    """Return the longer side of the images that published boxes were drawn in; None if it is that of the files.

    The longer side of most of CUB's images is `CUB_SIDE`, and that of the others is shorter. If one of the files has
    this side, the files have not been scaled, so that shorter ones were as short when their boxes were drawn.
    """
    layout = catalog.record.layout
    if layout is None or layout.name != "cub" or CUB_SIDE in map(max, sizes):
        return None
    return CUB_SIDE


def _mask_path(item: str) -> str:
    """Name the file of an item's mask; names of items need not be names of files."""
    return f"{MASKS}/{hashlib.sha256(item.encode()).hexdigest()[:24]}.png"


def _png(mask: np.ndarray[Any, Any]) -> bytes:
    """Encode a mask as a PNG of one bit per pixel."""
    buffer = io.BytesIO()
    Image.fromarray(mask).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _maker(settings: CutSettings) -> dict[str, Any]:
    """Record what made the masks."""
    if settings.masks is not None:
        return {"masks": settings.masks.name}
    return {"cutter": Maker.of(cutters.make(settings.cutter)).spelling}
