"""Mixing of the images of a catalog by a mapping: the foreground of one image on the background of another."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import MASK, NAME, PLATE, Catalog
from shotproof.catalog.item_files import BOX, masked_images
from shotproof.catalog.usable_masks import UnusableMask, unusable_masks
from shotproof.changes.changed_items import MaskedImage
from shotproof.changes.layers import ImageLayers
from shotproof.core.errors import InputError, InsufficientData, UnreadableItem
from shotproof.core.limits import SEED
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord, Source
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import file_digests
from shotproof.core.storage.whole_files import whole_file
from shotproof.sounds.loudness import Loudness
from shotproof.sounds.mapping import PairMapping, read_mapping
from shotproof.sounds.mix_folder import claim_folder
from shotproof.sounds.recipes import (
    CLEAN,
    Recipe,
    Recordings,
    draw_recipes,
    log_drawn_splits,
    recipe_columns,
    select_mapped,
)

IMAGES, CATALOG = "images", "catalog.parquet"
MIXTURES_PER_CHUNK = 16
_COLUMNS = ("label", "split", "context", "source", "pairing")
_USABLE, _NO_MASK = Loudness(0.0), Loudness(None, "no mask")
_NEEDS_MASKS = (
    "a foreground is cut out by its mask, and no image has one: name masks in a column 'mask', or cut them out "
    "(`shotproof mix CATALOG --cutter grabcut -o FOLDER`, sp.masks.cut, or [masks] in an experiment file)"
)


@dataclass(frozen=True)
class ImageMixSettings(Checked):
    """Settings of mixing images.

    `per_background`: number of images of a foreground to put on backgrounds of each class; None for all. `clean`: add
    the foregrounds alone, on gray, with the context `clean`.
    """

    seed: int = option(0, "decides which images are paired, and splits that the mapping lacks", within=SEED)
    per_background: int | None = option(
        None, "images of a foreground to put on each background; all by default", least=1
    )
    clean: bool = option(False, "add the foregrounds alone, on gray, with the context 'clean'")


def mix_images(
    catalog: Catalog,
    mapping: PairMapping | str | Path,
    folder: str | Path,
    settings: ImageMixSettings | None = None,
    *,
    runtime: Runtime | None = None,
) -> Catalog:
    """Put the foregrounds of images on their backgrounds; see `shotproof.masks.mix.mix`.

    Mixtures are PNG with a shorter side of at most 224 pixels. A background with a mask is filled in where its
    foreground was. The columns with masks are those of the foregrounds, which have not moved.
    """
    settings, folder, runtime = settings or ImageMixSettings(), Path(folder), resolve(runtime)
    mapping = mapping if isinstance(mapping, PairMapping) else read_mapping(mapping)
    used = _select(catalog, mapping)
    masked = masked_images(used)
    digests = file_digests(used.paths, runtime, on_error="skip").to_pylist()
    images = _usable(used, mapping, masked, digests, unusable_masks(used, runtime=runtime))
    recipes = _draw_recipes(images, mapping, settings)
    claim_folder(folder, _claims(images, mapping, settings, masked, digests, runtime))
    log_drawn_splits(used, mapping, settings.seed)
    mixer = ImageMixer(used.paths, masked, folder / IMAGES)
    failures = list(runtime.map(mixer, recipes, title="mixing", chunk=MIXTURES_PER_CHUNK))
    mixed_recipes = [recipe for recipe, failure in zip(recipes, failures, strict=True) if failure is None]
    dropped = Counter(failure for failure in failures if failure is not None)
    if not mixed_recipes:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
        raise InsufficientData(f"no mixture can be made: {counts}")
    mixed = _make_catalog(mixed_recipes, images, catalog, mapping, folder, settings, dict(sorted(dropped.items())))
    mixed.write(folder / CATALOG)
    return mixed


def expected_mixed_images(catalog: Catalog, mapping: PairMapping, folder: Path, settings: ImageMixSettings) -> Catalog:
    """Predict the catalog that `mix_images` will write, without reading any image.

    Raises:
        InputError: the mapping does not fit the catalog, or no image has a mask.
    """
    used = _select(catalog, mapping)
    images = _usable(used, mapping, masked_images(used), [""] * len(used), {})
    recipes = _draw_recipes(images, mapping, settings)
    expected = _make_catalog(recipes, images, catalog, mapping, folder, settings, {})
    # What looks at a file before the mixtures exist looks at the image of the foreground.
    table, fronts = expected.table, used.table.take(pa.array([recipe.foreground for recipe in recipes], pa.int64()))
    for name in ("path", MASK):
        table = table.set_column(table.column_names.index(name), name, fronts.column(name))
    return Catalog(table, used.root, expected.record)


def _select(catalog: Catalog, mapping: PairMapping) -> Catalog:
    """Select the images whose label is in the mapping."""
    used = select_mapped(catalog, mapping)
    if not any(image is not None for image in masked_images(used)):
        raise InputError(_NEEDS_MASKS)
    return used


def _usable(
    used: Catalog,
    mapping: PairMapping,
    masked: Sequence[MaskedImage | None],
    digests: Sequence[str | None],
    unusable: Mapping[str, UnusableMask],
) -> Recordings:
    """Return the images with a problem for those that cannot be used, in place of a loudness.

    Args:
        used: images
        mapping: which of them are foregrounds
        masked: the images with their masks, [n]; None if there is none
        digests: digests of the files, [n]; None if one cannot be read
        unusable: masks that cannot be used, by item
    """
    foregrounds = set(mapping.foregrounds)

    def loudness(item: str, label: str, image: MaskedImage | None, digest: str | None) -> Loudness:
        if digest is None:
            return Loudness(None, "missing or unreadable")
        if item in unusable:
            return Loudness(None, unusable[item].reason.replace(f" {unusable[item].file}", "", 1))
        return _NO_MASK if image is None and label in foregrounds else _USABLE

    labels = used.table.column("label").to_pylist()
    return Recordings(used, [*map(loudness, used.items, labels, masked, digests)])


def _draw_recipes(images: Recordings, mapping: PairMapping, settings: ImageMixSettings) -> list[Recipe]:
    return draw_recipes(images, mapping, dial=1.0, margin_db=0.0, **asdict(settings))


@dataclass(frozen=True)
class ImageMixer:
    """Function object that mixes and writes recipes; sent to workers.

    paths, masked: the images, [n], and those of them that have masks
    """

    paths: Sequence[Path]
    masked: Sequence[MaskedImage | None]
    folder: Path

    def __call__(self, recipe: Recipe) -> str | None:
        """Write a mixture, unless it exists; return why it cannot be made, or None."""
        path = self.folder / f"{recipe.item}.png"
        if path.exists():  # an existing file is complete, and has the same settings
            return None
        try:
            foreground = self._layers(recipe.foreground)
            if recipe.background is None:
                pixels = foreground.only_foreground()
            else:
                pixels = foreground.on_background_of(self._layers(recipe.background))
        except UnreadableItem:
            return "unreadable"
        with whole_file(path) as temporary:
            Image.fromarray(pixels).save(temporary, "PNG")
        return None

    def _layers(self, row: int) -> ImageLayers:
        """Take an image apart; one without a mask is all background."""
        masked = self.masked[row]
        if masked is not None:
            return masked.layers()
        pixels = MaskedImage(self.paths[row]).pixels()
        return ImageLayers(pixels, np.zeros(pixels.shape[:2], bool))


def _make_catalog(
    recipes: Sequence[Recipe],
    images: Recordings,
    catalog: Catalog,
    mapping: PairMapping,
    folder: Path,
    settings: ImageMixSettings,
    dropped: dict[str, int],
) -> Catalog:
    """Build the mixed catalog, with the folder as its root."""
    used = images.catalog
    columns = recipe_columns(recipes, images)
    fronts = pa.array([recipe.foreground for recipe in recipes], pa.int64())
    further = [name for name in (MASK, *BOX, NAME) if name in used.table.column_names]
    moved = used.moved_to(folder).table.select(further).take(fronts)
    plates = [None if recipe.background is None else used.items[recipe.background] for recipe in recipes]
    arrays = {
        "item": pa.array(columns["item"], pa.string()),
        "path": pa.array([f"{IMAGES}/{item}.png" for item in columns["item"]], pa.string()),
        **{name: pa.array(columns[name], pa.string()) for name in _COLUMNS},
        PLATE: pa.array(plates, pa.string()),
        **{name: moved.column(name) for name in further},
    }
    record = CatalogRecord(
        name=catalog.record.name and f"{catalog.record.name}, mixed",
        sources={"catalog": Source(catalog.digest, catalog.record.name), "mapping": Source(mapping.digest)},
        license=catalog.record.license,
        citation=catalog.record.citation,
        clean_value=CLEAN if settings.clean else None,
        mix=asdict(settings),
        skipped=tuple(images.skipped),
        dropped=dropped,
        notes={name: note for name, note in catalog.record.notes.items() if name == "cutter"},
    )
    return Catalog(pa.table(arrays), folder, record)


def _claims(
    images: Recordings,
    mapping: PairMapping,
    settings: ImageMixSettings,
    masked: Sequence[MaskedImage | None],
    digests: Sequence[str | None],
    runtime: Runtime,
) -> dict[str, Any]:
    """Return what the mixtures of a folder are made of: the settings, and the content of images, masks and boxes."""
    rows = [row for row, loudness in enumerate(images.loudness) if loudness.problem is None]
    with_masks = {row: image for row in rows if (image := masked[row]) is not None}
    mask_files = [image.mask for image in with_masks.values() if image.mask is not None]
    mask_digests = dict(zip(with_masks, file_digests(mask_files, runtime).to_pylist(), strict=True))
    boxes = {row: tuple(image.box) for row, image in with_masks.items() if image.box is not None}
    content = sorted(f"{digests[row]} {mask_digests.get(row)} {boxes.get(row)}" for row in rows)
    return {
        "seed": settings.seed,
        "mapping": mapping.digest,
        "images": hashlib.sha256("\n".join(content).encode()).hexdigest()[:32],
    }
