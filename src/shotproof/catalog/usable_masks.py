"""Check of the masks of a catalog before tasks are drawn: one that cannot be used leaves its image out."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_files, masked_images
from shotproof.changes.change import BackgroundChange
from shotproof.changes.changed_items import ChangedImage, MaskedImage
from shotproof.core.errors import UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import OnError
from shotproof.media.images import image_size
from shotproof.media.mask_file import read_usable_mask

logger = logging.getLogger("shotproof")

FILES_PER_CHUNK = 64
MAX_LISTED = 10
# How to draw tasks that do not show images with such masks.
DRAW_WITHOUT = (
    "draw the tasks from a catalog without their images (`shotproof mix CATALOG --masks FOLDER -o masked/` leaves them "
    "out)"
)


@dataclass(frozen=True)
class UnusableMask:
    """Mask that cannot be used: its file, and why, as a sentence."""

    file: Path
    reason: str


def unusable_masks(catalog: Catalog, *, runtime: Runtime | None = None) -> dict[str, UnusableMask]:
    """Find the masks that cannot be used: missing, unreadable, of another shape than the image, empty or full.

    Masks are decoded; of images only the headers are read. An image that cannot be read is not reported here.

    Args:
        catalog: images, of which some or all have masks
        runtime: runtime settings

    Returns:
        The unusable masks by item, in the order of the catalog.

    Raises:
        InputError: the catalog does not name masks by text, or a box is not inside its image.
    """
    masked = [(item, image) for item, image in zip(catalog.items, masked_images(catalog), strict=True) if image]
    reasons = resolve(runtime).map(
        _problem, [image for _, image in masked], title="checking masks", chunk=FILES_PER_CHUNK
    )
    return {
        item: UnusableMask(image.mask, reason)
        for (item, image), reason in zip(masked, reasons, strict=True)
        if reason is not None and image.mask is not None
    }


def with_usable_masks(catalog: Catalog, on_error: OnError = "raise", *, runtime: Runtime | None = None) -> Catalog:
    """Return the catalog without the images whose masks cannot be used; images without a mask stay.

    Args:
        catalog: images, of which some or all have masks
        on_error: whether to raise an error that names the masks, or to leave the images out with a warning (`skip`)
        runtime: runtime settings

    Raises:
        UnreadableItem: a mask cannot be used, and `on_error` is `raise`; or no image is left.
    """
    unusable = unusable_masks(catalog, runtime=runtime)
    if not unusable:
        return catalog
    count = f"{counted(len(unusable), 'mask')} of {len(catalog):,} images cannot be used"
    listed = _listed(mask.reason for mask in unusable.values())
    if on_error == "raise" or len(unusable) == len(catalog):
        raise UnreadableItem(
            f"{count}: {listed}; repair them, or leave their images out with --skip-bad (in an experiment file: "
            'on_error = "skip" in [features]; in Python: sp.Study(..., on_error="skip"))'
        )
    logger.warning("%s, and the images are left out: %s", count, listed)
    kept = np.array([item not in unusable for item in catalog.items])
    return Catalog(catalog.table.filter(pa.array(kept)), catalog.root, catalog.record)


def unusable_changes(catalog: Catalog, *, runtime: Runtime | None = None) -> dict[str, str]:
    """Find the changed items that cannot be made because the mask of their image, or of their plate's, cannot be used.

    Args:
        catalog: items and changed items
        runtime: runtime settings

    Returns:
        The reasons by changed item, each a sentence that names the mask.
    """
    parts = {
        item: [image for image in (file.source, file.plate) if image is not None]
        for item, file in zip(catalog.items, item_files(catalog), strict=True)
        if isinstance(file, ChangedImage) and isinstance(file.change, BackgroundChange)
    }
    images = list(dict.fromkeys(image for of_item in parts.values() for image in of_item))
    problems = resolve(runtime).map(_problem, images, title="checking masks", chunk=FILES_PER_CHUNK)
    reasons = {image: reason for image, reason in zip(images, problems, strict=True) if reason is not None}
    return {
        item: next(reasons[image] for image in of_item if image in reasons)
        for item, of_item in parts.items()
        if not reasons.keys().isdisjoint(of_item)
    }


def require_usable_changes(catalog: Catalog, *, runtime: Runtime | None = None) -> None:
    """Raise UnreadableItem if changed items cannot be made because of masks, and name all of these."""
    reasons = unusable_changes(catalog, runtime=runtime)
    if reasons:
        masks = set(reasons.values())
        raise UnreadableItem(
            f"{counted(len(masks), 'mask')} cannot be used, and {counted(len(reasons), 'changed item')} not be made: "
            f"{_listed(reasons.values())}; repair them, or {DRAW_WITHOUT}"
        )


def _listed(reasons: Iterable[str]) -> str:
    """List the distinct reasons, at most `MAX_LISTED`, and the number of others."""
    distinct = list(dict.fromkeys(reasons))
    more = f" and {len(distinct) - MAX_LISTED:,} more" if len(distinct) > MAX_LISTED else ""
    return f"{', '.join(distinct[:MAX_LISTED])}{more}"


def _problem(image: MaskedImage) -> str | None:
    """Return why the mask of an image cannot be used; None if it can be, or if the image itself cannot be read."""
    assert image.mask is not None
    try:
        image_size(image.path)
    except UnreadableItem:
        return None
    try:
        read_usable_mask(image.mask, image.path)
    except UnreadableItem as error:
        return str(error)
    return None
