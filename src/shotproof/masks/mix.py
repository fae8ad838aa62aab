"""Mixing of a catalog by a mapping, whatever it holds: sounds by their loudness, images by their masks."""

from __future__ import annotations

from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.masks.mix_images import ImageMixSettings, expected_mixed_images, mix_images
from shotproof.sounds import mix as mixed_sounds
from shotproof.sounds.mapping import PairMapping
from shotproof.sounds.mix import MixSettings


def mix(
    catalog: Catalog,
    mapping: PairMapping | str | Path,
    folder: str | Path,
    settings: MixSettings | ImageMixSettings | None = None,
    *,
    runtime: Runtime | None = None,
) -> Catalog:
    """Mix the foregrounds of a catalog with their backgrounds. The same call resumes interrupted work.

    Args:
        catalog: recordings, or images of which the foregrounds have masks (`sp.masks.cut`), of both classes
        mapping: mapping of foregrounds to backgrounds: a TOML or CSV file, or the name of a shipped one
        folder: folder for the mixtures and their catalog
        settings: `sp.sounds.MixSettings` for sounds, `sp.masks.ImageMixSettings` for images
        runtime: runtime settings

    Returns:
        The catalog that was written, with the background of each item as its `context`. Recordings without a loudness
        (silent, too short, unreadable) and foregrounds without a mask are left out, and listed in its record's
        `skipped`.

    Raises:
        InputError: the mapping does not fit the catalog, the settings are those of the other medium, or the folder
            holds other mixtures.
        InsufficientData: no mixture can be made, or passes the thresholds.

    Example:
        >>> import tempfile
        >>> from shotproof.worlds.sounds import SoundsWorld
        >>> world = SoundsWorld(foregrounds=1, backgrounds=1, items=1)
        >>> recordings = world.write(tempfile.mkdtemp())
        >>> settings = MixSettings(on_the_fly=True, embedding=None)
        >>> mix(recordings, world.mapping(), tempfile.mkdtemp(), settings).table.column("context").to_pylist()
        ['rumble']
    """
    if _holds_images(catalog, settings):
        assert not isinstance(settings, MixSettings)
        return mix_images(catalog, mapping, folder, settings, runtime=runtime)
    assert not isinstance(settings, ImageMixSettings)
    return mixed_sounds.mix(catalog, mapping, folder, settings, runtime=runtime)


def expected_mixtures(
    catalog: Catalog, mapping: PairMapping, folder: Path, settings: MixSettings | ImageMixSettings
) -> Catalog:
    """Predict the catalog that `mix` will write, without reading any item, if nothing is left out.

    Raises:
        InputError: the mapping does not fit the catalog, or the settings are those of the other medium.
    """
    if _holds_images(catalog, settings):
        assert not isinstance(settings, MixSettings)
        return expected_mixed_images(catalog, mapping, folder, settings)
    assert not isinstance(settings, ImageMixSettings)
    return mixed_sounds.expected_mixtures(catalog, mapping, folder, settings)


def _holds_images(catalog: Catalog, settings: MixSettings | ImageMixSettings | None) -> bool:
    """Return whether to mix images. Settings of the other medium are an error."""
    if catalog.medium == "image":
        if isinstance(settings, MixSettings):
            raise InputError(
                "mix: the catalog holds images, which have no loudness: expected sp.masks.ImageMixSettings (seed, "
                "per_background, clean), found MixSettings"
            )
        return True
    if isinstance(settings, ImageMixSettings):
        raise InputError("mix: the catalog does not hold images: expected sp.sounds.MixSettings for sounds")
    return False
