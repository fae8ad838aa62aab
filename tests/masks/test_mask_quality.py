from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shotproof.masks.mask_quality import MaskQuality, MaskThresholds
from shotproof.media.box import Box
from tests.drawn_layers import disc

GOOD = MaskQuality(area=0.3, box_area=0.6, pieces=1, border=0.0, background=0.5, agreement=0.9)


def test_measures_by_hand() -> None:
    mask = np.zeros((10, 20), bool)
    mask[0:5, 0:4] = True  # 20 pixels; 5 + 4 of the 60 of the border, whose corner is counted twice
    mask[8, 10:14] = True
    mirrored = mask.copy()
    mirrored[8] = False
    quality = MaskQuality.of(mask, mirrored, Box(0, 0, 0.5, 0.5))
    assert quality.area == pytest.approx(24 / 200)
    assert quality.box_area == pytest.approx(20 / 50)
    assert quality.pieces == 2
    assert quality.border == pytest.approx(9 / 60)
    assert quality.agreement == pytest.approx(20 / 24)
    assert MaskQuality(**quality.to_json()).pieces == 2


def test_specks_are_no_pieces_and_an_empty_mask_has_none() -> None:
    mask = disc(60, 60)
    mask[1, 1] = True
    assert MaskQuality.of(mask, mask, None).pieces == 1
    empty = np.zeros((6, 6), bool)
    assert MaskQuality.of(empty, empty, None) == MaskQuality(0.0, None, 0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"agreement": None}, None),
        ({"box_area": None}, None),
        ({"area": 0.0}, "empty"),
        ({"area": 1.0, "border": 1.0}, "full"),
        ({"area": 0.01}, "small"),
        ({"area": 0.95}, "large"),
        ({"box_area": 0.1}, "fills little of its box"),
        ({"pieces": 4}, "in pieces"),
        ({"border": 0.6}, "at the border"),
        ({"background": 0.04}, "hides the background"),
        ({"agreement": 0.5}, "unstable"),
    ],
)
def test_each_threshold_has_a_reason(changed: dict[str, float], reason: str | None) -> None:
    assert replace(GOOD, **changed).fails(MaskThresholds()) == reason
    lenient = MaskThresholds(0, 1, 0, 100, 1, 0, 0)
    assert replace(GOOD, **changed).fails(lenient) == (reason if reason in ("empty", "full") else None)


def test_measures_in_words_leave_out_what_is_unknown() -> None:
    assert GOOD.words == "area 30%, box 60%, 1 piece, border 0%, background 50%, agreement 0.90"
    assert (
        replace(GOOD, box_area=None, agreement=None, pieces=2).words == "area 30%, 2 pieces, border 0%, background 50%"
    )


def test_the_background_is_what_lies_outside_of_the_hole() -> None:
    mask = np.zeros((100, 200), bool)
    mask[40:60, 80:120] = True
    # Widened by 6% of the shorter side.
    assert MaskQuality.of(mask, None, None).background == pytest.approx(1 - 32 * 52 / 20_000)
    assert MaskQuality.of(mask, None, Box(0.0, 0.0, 1.0, 1.0)).background == 0
    assert MaskQuality.of(np.kron(mask, np.ones((8, 8), bool)), None, None).background == pytest.approx(0.917, abs=0.01)
    # A thin diagonal leaves nothing of the rectangle around it.
    diagonal = np.eye(100, dtype=bool)
    quality = MaskQuality.of(diagonal, None, None)
    assert quality.background == 0
    assert replace(quality, area=0.1).fails(MaskThresholds()) == "hides the background"


def test_a_mask_that_was_not_cut_has_no_agreement() -> None:
    assert MaskQuality.of(disc(60, 60), None, None).agreement is None
