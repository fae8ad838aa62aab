from __future__ import annotations

import numpy as np
import pytest

from shotproof.changes.blur import _DISK, _disk
from tests.changes.every_change import SEVERITIES, apply, noisy

STYLES = ("defocus", "motion", "zoom")


@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 2.0])
def test_the_disk_of_a_lens_sums_to_one_and_is_as_wide_as_published(scale: float) -> None:
    for radius, softness in _DISK:
        disk = _disk(radius * scale, softness * scale)
        assert disk.sum() == pytest.approx(1)
        assert disk.min() >= 0
        np.testing.assert_allclose(disk, disk[::-1], atol=1e-12)
        np.testing.assert_allclose(disk, disk.T, atol=1e-12)
        if radius * scale >= 3:
            offset = np.arange(len(disk)) - len(disk) // 2
            spread = np.sqrt((disk * (offset[:, None] ** 2 + offset**2)).sum())
            # Of a disk, the root mean square of the distance is the radius over the root of two.
            assert spread * 2**0.5 == pytest.approx(radius * scale, rel=0.1, abs=2 * softness * scale)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("value", [(0, 0, 0), (255, 255, 255), (7, 130, 201)])
def test_images_of_one_color_stay_as_they_are(style: str, value: tuple[int, int, int]) -> None:
    for height, width in ((40, 56), (8, 5), (1, 1)):
        pixels = np.broadcast_to(np.uint8(value), (height, width, 3)).copy()
        for severity in SEVERITIES:
            np.testing.assert_array_equal(apply(f"blur(style='{style}')", severity, pixels), pixels)


@pytest.mark.parametrize("style", STYLES)
def test_blur_takes_detail_and_keeps_the_mean(style: str) -> None:
    pixels = noisy(80, 100)
    deviations = [apply(f"blur(style='{style}')", severity, pixels).std() for severity in SEVERITIES]
    assert all(stronger < weaker for weaker, stronger in zip([pixels.std(), *deviations], deviations, strict=False))
    assert apply(f"blur(style='{style}')", 3, pixels).mean() == pytest.approx(pixels.mean(), abs=3)


def test_motion_smears_along_a_line() -> None:
    """A dot becomes a line: it has two moments, and one of them is far larger."""
    pixels = np.zeros((224, 224, 3), np.uint8)
    pixels[110:114, 110:114] = 255
    line = apply("blur(style='motion')", 4, pixels)[..., 0]
    moments = np.linalg.eigvalsh(np.cov(np.argwhere(line > 5).T))
    assert moments[1] > 4 * moments[0]
