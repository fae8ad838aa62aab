"""The dial encoder: its features hold the label and the context in exactly the shares that were dialed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import FACTORS, ShapesWorld
from tests.hash_seeds import run_with_another_hash_seed

CATALOG = ShapesWorld(classes=10, items=200).catalog()


def values(share: float, catalog: Catalog = CATALOG, **options: float) -> npt.NDArray[np.float64]:
    encoder = DialEncoder(share=share, **options)  # type: ignore[arg-type]
    return encode(catalog, encoder, runtime=Runtime(cache=None)).array.astype(np.float64)


def explained(features: npt.NDArray[np.float64], columns: list[str]) -> float:
    """The share of the variance that a linear model on these columns' values explains (adjusted R squared)."""
    indicators = [
        np.array(CATALOG.table.column(column).to_pylist())[:, None]
        == np.unique(CATALOG.table.column(column).to_pylist())
        for column in columns
    ]
    design = np.hstack([np.ones((len(features), 1)), *indicators])
    fitted = design @ np.linalg.lstsq(design, features, rcond=None)[0]
    left = ((features - fitted) ** 2).sum() / (len(features) - np.linalg.matrix_rank(design))
    return float(1 - left / (((features - features.mean(axis=0)) ** 2).sum() / (len(features) - 1)))


def test_without_context_nothing_depends_on_it() -> None:
    # To the bit, not only on average: shuffle every factor among the items, and the features stay.
    shuffled = CATALOG.table
    order = np.random.default_rng(0).permutation(len(CATALOG))
    for factor in FACTORS:
        index = shuffled.column_names.index(factor)
        shuffled = shuffled.set_column(index, factor, shuffled.column(factor).take(order))
    moved = Catalog(shuffled)
    np.testing.assert_array_equal(values(0.0, moved), values(0.0))
    assert not np.array_equal(values(0.2, moved), values(0.2))


def test_with_context_alone_the_label_has_no_say() -> None:
    assert abs(explained(values(1.0), ["label"])) < 0.01
    assert explained(values(1.0), list(FACTORS)) == pytest.approx(1.0)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.7])
def test_the_variances_are_those_that_were_dialed(share: float) -> None:
    features = values(share, dimensions=512)
    total = ((features - features.mean(axis=0)) ** 2).sum(axis=1).mean()
    label = (1 - share) * 0.9  # codes of length 1 vary by 1 - 1/n around the mean of n of them
    context = share * (1 - np.mean([1 / len(names) for names in FACTORS.values()]))
    noise = 4.0 * (1 - share) - share
    assert total == pytest.approx(label + context + noise, rel=0.05)
    assert explained(features, ["label"]) == pytest.approx(label / total, abs=0.03)
    assert explained(features, list(FACTORS)) == pytest.approx(context / total, abs=0.03)


def test_noise_is_that_of_independent_normal_numbers() -> None:
    noise = values(0.0, noise=1e6) / 1e3
    assert noise.mean() == pytest.approx(0, abs=0.002)
    assert noise.var() * 64 == pytest.approx(1, rel=0.02)
    correlations = np.corrcoef(noise)[np.triu_indices(len(noise), 1)]
    assert correlations.std() == pytest.approx(1 / 8, rel=0.02)


def test_a_feature_depends_on_its_own_row_alone() -> None:
    part = Catalog(CATALOG.table.slice(500, 100))
    np.testing.assert_array_equal(values(0.5, part), values(0.5)[500:600])


def test_another_seed_gives_other_features() -> None:
    assert abs(np.corrcoef(values(0.5, seed=0).ravel(), values(0.5, seed=1).ravel())[0, 1]) < 0.05


def test_the_same_features_under_another_hash_seed() -> None:
    script = (
        "from shotproof.features.encoder import encode; from shotproof.worlds.shapes import ShapesWorld; "
        "import sys; sys.stdout.write(encode(ShapesWorld(classes=3, items=4).catalog(), 'dial').digest)"
    )
    here = encode(ShapesWorld(classes=3, items=4).catalog(), "dial")
    assert run_with_another_hash_seed(script) == here.digest


def test_by_name_with_its_share() -> None:
    features = encode(CATALOG, "dial(share=0.3)")
    assert features.name == "dial(share=0.3)"
    np.testing.assert_array_equal(features.array, encode(CATALOG, DialEncoder(share=0.3)).array)


def test_a_catalog_without_factors_is_refused() -> None:
    bare = Catalog(CATALOG.table.drop_columns(["sticker"]))
    with pytest.raises(InputError, match=r"synthetic world, .* has no column 'sticker'"):
        encode(bare, "dial", runtime=Runtime(cache=None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.2}, "share: expected a number from 0 to 1, found 1.2"),
        ({"share": float("nan")}, "share: expected .* found nan"),
        ({"dimensions": 0}, "dimensions: expected a whole number from 1 to 10,000,000, found 0"),
        ({"noise": -1}, "noise: expected a number of at least 0, found -1"),
        ({"factors": ()}, "factors: expected .*one column"),
    ],
)
def test_impossible_dials_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DialEncoder(**options)  # type: ignore[arg-type]
