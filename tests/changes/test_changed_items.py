from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from shotproof.changes import changed_items
from shotproof.changes.change import SoundChange, changes
from shotproof.changes.changed_items import SIDE, ChangedClip, ChangedImage, MaskedImage
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.layers import ImageLayers
from shotproof.core.bounded_cache import BoundedCache
from shotproof.core.errors import UnreadableItem
from shotproof.media.box import Box
from shotproof.media.clip import RATE, read_clip
from shotproof.media.images import open_image
from shotproof.media.mixture import Mixture
from tests.changes.every_change import IMAGE_CHANGES, SOUND_CHANGES, apply, smooth
from tests.drawn_clips import tone
from tests.drawn_layers import disc


def saved(path: Path, height: int = 40, width: int = 52, seed: int = 0) -> MaskedImage:
    """An image with its mask in files."""
    Image.fromarray(smooth(height, width, seed)).save(path)
    mask = path.with_suffix(".mask.png")
    Image.fromarray(disc(height, width)).save(mask)
    return MaskedImage(path, mask)


@pytest.mark.parametrize("spelling", IMAGE_CHANGES)
def test_a_changed_image_is_the_change_of_its_pixels_and_severity_0_that_of_the_file(
    tmp_path: Path, spelling: str
) -> None:
    source = saved(tmp_path / "a.jpg", 30, 41)
    unchanged = ChangedImage(changes.make(spelling, severity=0), source)
    np.testing.assert_array_equal(np.asarray(open_image(unchanged)), np.asarray(open_image(source.path)))
    changed = ChangedImage(changes.make(spelling, severity=2), source)
    np.testing.assert_array_equal(np.asarray(open_image(changed)), apply(spelling, 2, source.pixels()))


@pytest.mark.parametrize("spelling", SOUND_CHANGES)
def test_a_changed_clip_is_the_change_of_its_samples_and_severity_0_that_of_the_file(
    tmp_path: Path, spelling: str
) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(0, 0.3, 22_050), 22_050)
    unchanged = ChangedClip(changes.make(spelling, severity=0), path)
    np.testing.assert_array_equal(read_clip(unchanged), read_clip(path))
    changed = ChangedClip(changes.make(spelling, severity=2), path)
    np.testing.assert_array_equal(read_clip(changed), apply(spelling, 2, read_clip(path)))
    assert len(read_clip(changed)) == 5 * RATE


def test_mixtures_are_changed_as_what_they_sound_like(tmp_path: Path) -> None:
    for number in range(2):
        soundfile.write(tmp_path / f"{number}.wav", tone(number), RATE)
    mixture = Mixture(tmp_path / "0.wav", tmp_path / "1.wav", -6.0)
    unchanged = ChangedClip(changes.make("band", severity=0), mixture)
    np.testing.assert_array_equal(read_clip(unchanged), read_clip(mixture))
    np.testing.assert_array_equal(
        read_clip(ChangedClip(changes.make("band"), mixture)), apply("band", 3, read_clip(mixture))
    )
    assert ChangedClip(changes.make("band"), mixture).files == mixture.files


def test_large_images_are_changed_at_the_published_size(tmp_path: Path) -> None:
    source = saved(tmp_path / "a.png", 2 * SIDE, 3 * SIDE)
    assert source.pixels().shape == (SIDE, round(1.5 * SIDE), 3)
    assert source.layers().mask.shape == (SIDE, round(1.5 * SIDE))
    assert open_image(ChangedImage(changes.make("blur", severity=0), source)).size == (3 * SIDE, 2 * SIDE)


@pytest.mark.parametrize("spelling", ["blur", "only-background", "mixed-same(plate='b')"])
def test_encoders_that_ask_for_more_pixels_get_them(tmp_path: Path, spelling: str) -> None:
    source = saved(tmp_path / "a.png", 2 * SIDE, 3 * SIDE)
    plate = saved(tmp_path / "b.png", 2 * SIDE, 2 * SIDE, 1) if "plate" in spelling else None
    image = ChangedImage(changes.make(spelling), source, plate)
    sizes = {side: open_image(image, side=side).size[::-1] for side in (None, 8, SIDE, 384, 1000)}
    assert sizes == {None: (224, 336), 8: (224, 336), SIDE: (224, 336), 384: (384, 576), 1000: (448, 672)}
    small = ChangedImage(changes.make(spelling), saved(tmp_path / "c.png"), plate)
    assert open_image(small, side=384).size == (52, 40)


def test_boxes_do_not_depend_on_how_they_are_held(tmp_path: Path) -> None:
    """Digests are keys of caches, whatever type has the numbers."""
    source = MaskedImage(tmp_path / "a.png", tmp_path / "mask.png", Box(0.0, 0.0, 0.5, 0.5))
    image = ChangedImage(changes.make("only-foreground"), source)
    plain = replace(source, box=(0.0, 0.0, 0.5, 0.5))  # type: ignore[arg-type]
    assert image.digest(["1", "2"]) == replace(image, source=plain).digest(["1", "2"])


def test_a_mask_may_have_another_size_but_no_other_shape(tmp_path: Path) -> None:
    source = saved(tmp_path / "a.png", 40, 60)
    assert source.mask is not None
    Image.fromarray(disc(80, 120)).save(source.mask)
    iou = (source.layers().mask & disc(40, 60)).sum() / (source.layers().mask | disc(40, 60)).sum()
    assert iou > 0.95
    Image.fromarray(disc(60, 40)).save(source.mask)
    with pytest.raises(UnreadableItem, match=r"a\.mask\.png has 40 x 60 pixels, .*not the shape of .*a\.png"):
        source.layers()


@pytest.mark.parametrize(("value", "problem"), [(0, "is empty"), (255, "is full: .*no background")])
def test_masks_that_tell_nothing_are_refused_where_layers_are_needed(tmp_path: Path, value: int, problem: str) -> None:
    item, plate = saved(tmp_path / "a.png"), saved(tmp_path / "b.png", seed=1)
    assert plate.mask is not None
    Image.new("L", (52, 40), value).save(plate.mask)
    for image in (
        ChangedImage(changes.make("only-foreground"), plate),
        ChangedImage(changes.make("only-background"), plate),
        ChangedImage(changes.make("mixed-same(plate='b')"), item, plate),
    ):
        with pytest.raises(UnreadableItem, match=rf"b\.mask\.png {problem}"):
            open_image(image)
        assert image.misfits == [plate.mask]
    open_image(ChangedImage(changes.make("blur"), plate))


def test_layers_in_memory_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache: BoundedCache[Any, ImageLayers] = BoundedCache(3 * 50 * 60 * 7, lambda layers: layers.nbytes)
    monkeypatch.setattr(changed_items, "_cached_layers", cache)
    sources = [saved(tmp_path / f"{number}.png", 50, 60, number) for number in range(5)]
    layers = [source.layers() for source in sources]
    assert cache.nbytes == 3 * 50 * 60 * 7
    assert [source.layers() is before for source, before in zip(sources[2:], layers[2:], strict=True)] == [True] * 3
    assert sources[0].layers() is not layers[0]
    large = saved(tmp_path / "large.png", 120, 120)
    assert large.layers() is not large.layers()


@pytest.mark.parametrize("spelling", SOUND_CHANGES)
@pytest.mark.parametrize(("rate", "seconds"), [(32_000, 10.0), (44_100, 0.5), (4_000, None), (1_000, 2.0)])
def test_clips_are_changed_at_the_rate_and_length_of_unchanged_ones(
    tmp_path: Path, spelling: str, rate: int, seconds: float | None
) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(0, 7.0, 44_100), 44_100)
    unchanged = read_clip(path, rate, seconds)
    change = changes.make(spelling, severity=2)
    assert isinstance(change, SoundChange)
    changed = read_clip(ChangedClip(change, path), rate, seconds)
    assert changed.shape == unchanged.shape
    np.testing.assert_array_equal(changed, change.apply(unchanged, ItemDraws(unchanged, change.name), rate))
    assert np.isfinite(changed).all()
    nothing = ChangedClip(changes.make(spelling, severity=0), path)
    np.testing.assert_array_equal(read_clip(nothing, rate, seconds), unchanged)


def test_high_frequencies_stay_if_they_are_not_changed(tmp_path: Path) -> None:
    time = np.arange(44_100) / 44_100
    soundfile.write(tmp_path / "a.wav", 0.5 * np.sin(2 * np.pi * 12_000 * time), 44_100)
    changed = read_clip(ChangedClip(changes.make("gain(severity=1)"), tmp_path / "a.wav"), 44_100, 1.0)
    spectrum = np.abs(np.fft.rfft(changed))
    assert np.argmax(spectrum) == 12_000
    assert spectrum.max() > 1_000


def test_files_that_have_changed_are_read_again(tmp_path: Path) -> None:
    """Layers are kept in memory, but not for longer than their files."""
    item, plate = saved(tmp_path / "a.png"), saved(tmp_path / "b.png", seed=1)
    image = ChangedImage(changes.make("mixed-same(plate='b')"), item, plate)
    before = np.asarray(open_image(image))
    np.testing.assert_array_equal(np.asarray(open_image(image)), before)
    saved(tmp_path / "b.png", seed=2)
    other = np.asarray(open_image(image))
    assert (other != before).any()
    assert item.mask is not None
    item.mask.unlink()
    with pytest.raises(UnreadableItem, match=r"a\.mask\.png"):
        open_image(image)


def test_digests_follow_content_and_change(tmp_path: Path) -> None:
    """Those of files are given; what a plate is called and what decided on it is no content."""
    source = MaskedImage(tmp_path / "a.png", tmp_path / "mask.png")
    images = [
        *(ChangedImage(changes.make(spelling, severity=3), source) for spelling in IMAGE_CHANGES),
        *(ChangedImage(changes.make(f"blur(severity={severity})"), source) for severity in (1, 2)),
        ChangedImage(changes.make("only-background"), source),
        ChangedImage(changes.make("only-foreground"), source),
        ChangedImage(changes.make("only-foreground"), replace(source, box=Box(0.0, 0.0, 0.5, 0.5))),
    ]
    digests = [image.digest(["d1", "d2"]) for image in images]
    assert len(set(digests)) == len(digests)
    elsewhere = MaskedImage(tmp_path / "b" / "c.png", tmp_path / "other.png")
    assert replace(images[0], source=elsewhere).digest(["d1", "d2"]) == digests[0]
    assert images[0].digest(["d1", "d3"]) != digests[0]
    plates = [ChangedImage(changes.make(f"mixed-same(plate='{n}', seed={n})"), source, source) for n in (1, 2)]
    assert plates[0].digest(["1", "2", "3", "4"]) == plates[1].digest(["1", "2", "3", "4"])
    assert plates[0].digest(["1", "2", "3", "4"]) != plates[0].digest(["1", "2", "3", "5"])
    assert plates[0].files == [*source.files, *source.files]


def test_digests_of_sounds_follow_the_mixture(tmp_path: Path) -> None:
    mixture = Mixture(tmp_path / "a.wav", tmp_path / "b.wav", -3.0)
    clips = [
        ChangedClip(changes.make("gain"), mixture),
        ChangedClip(changes.make("gain"), replace(mixture, gain_db=-4.0)),
        ChangedClip(changes.make("gain"), replace(mixture, peak="always")),
        ChangedClip(changes.make("gain(style='louder')"), mixture),
        ChangedClip(changes.make("only-background"), mixture),
        ChangedClip(changes.make("mixed-same(plate='x')"), mixture, mixture),
        ChangedClip(changes.make("mixed-same(plate='x')"), mixture, replace(mixture, gain_db=-4.0)),
    ]
    assert len({clip.digest(["1", "2"]) for clip in clips}) == len(clips)
