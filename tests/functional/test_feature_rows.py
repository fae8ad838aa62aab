from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.functional.feature_rows import PowerTransform
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw

VALUES = torch.tensor([-4.0, 0.0, 4.0, 9.0], dtype=torch.float64)


def test_positive_features_are_raised_to_the_power() -> None:
    for negatives in ("signed", "relu", "refuse"):
        found = PowerTransform(0.5, negatives)(VALUES[1:])  # type: ignore[arg-type]
        torch.testing.assert_close(found, (VALUES[1:] + 1e-6).sqrt())


def test_negative_features_are_mirrored_or_cut_or_refused() -> None:
    assert PowerTransform(0.5)(VALUES)[0].item() == pytest.approx(-2, abs=1e-6)
    assert PowerTransform(0.5, "relu")(VALUES)[0].item() == pytest.approx(1e-3)
    with pytest.raises(InputError, match="a feature is negative; choose negatives='signed'"):
        PowerTransform(0.5, "refuse")(VALUES)
    with pytest.raises(InputError, match="a feature is negative"):
        make_method("pt-map(negatives='refuse')").scores(*draw())


@pytest.mark.parametrize("name", ["pt-map", "proto-lp", "ecpe"])
def test_bad_options_are_explained(name: str) -> None:
    with pytest.raises(
        InputError, match="negatives: expected signed or relu or refuse, found 'sined': did you mean 'signed'"
    ):
        make_method(f"{name}(negatives='sined')")
    with pytest.raises(InputError, match="power: expected a number above 0, found 0"):
        make_method(f"{name}(power=0)")
    with pytest.raises(InputError, match="rate: expected a number from 0 to 1, found 2"):
        make_method(f"{name}(rate=2)")
