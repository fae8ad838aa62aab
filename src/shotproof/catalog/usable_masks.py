"""Check of the masks of a catalog before tasks are drawn: one that cannot be used leaves its image out."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import masked_images
from shotproof.changes.changed_items import MaskedImage
from shotproof.core.errors import UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import OnError
from shotproof.media.images import image_size
from shotproof.media.mask_file import read_usable_mask

logger = logging.getLogger("shotproof")

FILES_PER_CHUNK = 64
MAX_LISTED = 10


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
    reasons = list(dict.fromkeys(mask.reason for mask in unusable.values()))
    more = f" and {len(reasons) - MAX_LISTED:,} more" if len(reasons) > MAX_LISTED else ""
    listed = f"{', '.join(reasons[:MAX_LISTED])}{more}"
    if on_error == "raise" or len(unusable) == len(catalog):
        raise UnreadableItem(
            f"{count}: {listed}; repair them, or leave their images out with --skip-bad (in an experiment file: "
            'on_error = "skip" in [features])'
        )
    logger.warning("%s, and the images are left out: %s", count, listed)
    kept = np.array([item not in unusable for item in catalog.items])
    return Catalog(catalog.table.filter(pa.array(kept)), catalog.root, catalog.record)


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
