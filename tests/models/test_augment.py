from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.models.augment import GRAY, NoAugmentation, RandomCrop, RandomResizedCrop, SpecAugment, augmentations
from shotproof.models.preprocessing import ImagePreprocessing, SoundPreprocessing

SIZE = (8, 8)


def drawn(count: int = 6, side: int = 12) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", augmentations.names())
def test_the_same_generator_gives_the_same_and_items_are_left_alone(name: str) -> None:
    augmentation = augmentations.make(name)
    if augmentation.medium == "sound":
        stored, preprocessing = torch.randn(5, 32, 40, 1).half(), SoundPreprocessing(seconds=1.248, bands=32)
    else:
        stored, preprocessing = drawn().permute(0, 2, 3, 1), ImagePreprocessing(size=8, stored=12)
    before = stored.clone()
    first, again, other = (augmentation(stored, preprocessing, seeded(seed)) for seed in (1, 1, 2))
    assert first.shape == (len(stored), *preprocessing.shape)
    assert first.dtype == torch.float32
    assert torch.equal(first, again)
    assert torch.equal(stored, before)
    assert torch.equal(first, other) == (name == "none")
    if name == "none":
        assert torch.equal(first, preprocessing.prepared(stored))


def test_a_crop_is_a_place_of_the_image_flipped_or_not() -> None:
    values = drawn(60)
    crops = RandomCrop(jitter=0).apply(values, SIZE, seeded())
    places, flips = set(), 0
    for image, crop in zip(values, crops, strict=True):
        found = [
            (top, left, flip)
            for top in range(5)
            for left in range(5)
            for flip in (False, True)
            if torch.equal(
                image[:, top : top + 8, left : left + 8].flip(2) if flip else image[:, top : top + 8, left : left + 8],
                crop,
            )
        ]
        [(top, left, flip)] = found
        places.add((top, left))
        flips += flip
    assert len(places) > 15  # of 25
    assert 15 < flips < 45
    assert torch.equal(RandomCrop(flip=False, jitter=0).apply(values, (12, 12), seeded()), values)


def test_parts_have_at_least_their_area_and_all_of_it_is_the_image() -> None:
    ramp = torch.linspace(0, 255, 33)[1:].expand(200, 3, 32, 32)  # each column has its own value
    parts = RandomResizedCrop(area=0.25, jitter=0, flip=False).apply(ramp, (16, 16), seeded())
    spread = (parts[:, 0, 0, -1] - parts[:, 0, 0, 0]).abs() / 255
    assert spread.max() <= 1
    assert spread.min() > 0.4 * 15 / 16 - 0.05  # a quarter of the area, at most 3:4 narrow
    assert (parts[:, 0, :, 0] - parts[:, 0, :1, 0]).abs().max() < 1e-3  # columns stay columns
    whole = RandomResizedCrop(area=1.0, jitter=0, flip=False).apply(ramp, (32, 32), seeded())
    assert (whole - ramp).abs().mean() < 25  # but for its shape


def test_colors_change_by_known_formulas() -> None:
    values = drawn(4)
    colored = RandomCrop(flip=False, jitter=0.4).apply(values, (12, 12), seeded(3))
    draw = seeded(3)
    for _ in range(2):
        torch.rand(4, generator=draw)  # where the crop begins
    bright, contrast, saturation = (1 + 0.4 * (2 * torch.rand(4, generator=draw).numpy() - 1) for _ in range(3))
    gray = np.array(GRAY)[:, None, None]
    for number, image in enumerate(values.numpy().astype(float)):
        one = np.clip(image * bright[number], 0, 255)
        mean = (one * gray).sum(0).mean()
        one = np.clip(mean + contrast[number] * (one - mean), 0, 255)
        level = (one * gray).sum(0)
        one = np.clip(level + saturation[number] * (one - level), 0, 255)
        np.testing.assert_allclose(colored[number], one, atol=0.01)


def test_hues_turn_and_leave_brightness_and_gray_as_they_are() -> None:
    values = drawn().float() / 4 + 96  # far from the bounds
    whole = RandomResizedCrop(area=1.0, flip=False, jitter=0).apply(values, SIZE, seeded())
    turned = RandomResizedCrop(area=1.0, flip=False, jitter=0, hue=0.5).apply(values, SIZE, seeded())
    weights = torch.tensor(GRAY).view(3, 1, 1)
    torch.testing.assert_close((turned * weights).sum(1), (whole * weights).sum(1), rtol=0, atol=0.1)
    assert (turned - whole).abs().mean() > 5
    gray = torch.full((6, 3, 12, 12), 77.0)
    torch.testing.assert_close(
        RandomResizedCrop(jitter=0, hue=0.5).apply(gray, SIZE, seeded()), gray[..., :8, :8], rtol=0, atol=0.1
    )


def test_a_share_of_the_images_becomes_gray() -> None:
    parts = RandomResizedCrop(jitter=0, gray=0.5).apply(drawn(100), SIZE, seeded())
    is_gray = (parts == parts[:, :1]).flatten(1).all(1)
    assert 30 < is_gray.sum() < 70
    colored = RandomResizedCrop(jitter=0).apply(drawn(100), SIZE, seeded())
    assert torch.equal(parts[~is_gray], colored[~is_gray])
    level = (colored * torch.tensor(GRAY).view(3, 1, 1)).sum(1)
    torch.testing.assert_close(parts[is_gray][:, 0], level[is_gray])


def test_spectrograms_are_rotated_and_masked_with_their_mean() -> None:
    values = torch.arange(20 * 30, dtype=torch.float32).reshape(1, 1, 20, 30).repeat(40, 1, 1, 1)
    rotated = SpecAugment(masks=0).apply(values, (20, 30), seeded())
    assert all(sorted(one[0, 0].tolist()) == sorted(values[0, 0, 0].tolist()) for one in rotated)
    assert len({one[0, 0, 0].item() for one in rotated}) > 10
    masked = SpecAugment(masks=1, bands=5, frames=7, shift=False).apply(values, (20, 30), seeded())
    hidden = masked != values
    assert torch.equal(masked[hidden].unique(), values[0].mean().reshape(1))
    bands, frames = hidden.all(3)[:, 0].sum(1), hidden.all(2)[:, 0].sum(1)
    assert 0 < bands.max() <= 5
    assert 0 < frames.max() <= 7
    # A mask is all of some neighboring bands, or of some neighboring frames.
    rebuilt = hidden.all(3, keepdim=True) | hidden.all(2, keepdim=True)
    assert torch.equal(rebuilt.expand_as(hidden), hidden)
    assert torch.equal(SpecAugment(masks=0, shift=False).apply(values, (20, 30), seeded()), values)


def test_none_is_the_center() -> None:
    assert torch.equal(NoAugmentation().apply(drawn(), SIZE, seeded()), drawn()[:, :, 2:10, 2:10])
