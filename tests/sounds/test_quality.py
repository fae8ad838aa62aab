from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.sounds.quality import Thresholds, cosine_similarities, measure_separation, quality_by

SECOND = 16_000


def noise(level: float, seconds: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (level * rng.choice([-1.0, 1.0], round(seconds * SECOND))).astype(np.float32)  # the same power everywhere


def test_a_background_is_heard_where_nothing_masks_it() -> None:
    front = np.concatenate([noise(0.5), np.zeros(SECOND, dtype=np.float32)])  # sounds in the first half only
    quiet = measure_separation(front, noise(0.01, 2.0))  # 34 dB below
    assert quiet.audible == 0.5
    assert quiet.overwhelmed == 0
    assert quiet.margin_db == pytest.approx(20 * np.log10(0.5 / 0.01), abs=1e-3)
    assert measure_separation(front, noise(0.2, 2.0)).audible == 1
    assert measure_separation(front, noise(0.0005, 2.0)).audible == 0  # too quiet to be heard at all


def test_a_background_overwhelms_where_it_is_the_stronger() -> None:
    front = noise(0.1, 2.0)
    back = np.concatenate([noise(0.2), noise(0.05)])
    assert measure_separation(front, back).overwhelmed == 0.5
    without = measure_separation(front, np.zeros_like(front))
    assert (without.audible, without.overwhelmed, without.margin_db) == (0, 0, None)


def test_thresholds_name_the_measure_that_fails() -> None:
    drowned = measure_separation(noise(0.1), noise(0.3))
    assert drowned.fails(Thresholds()) is None
    assert drowned.fails(Thresholds(max_overwhelmed=0.9)) == "overwhelming"
    masked = measure_separation(noise(0.5), noise(0.01))
    assert masked.fails(Thresholds(min_audible=0.1, max_overwhelmed=0.9)) == "inaudible"
    with pytest.raises(InputError, match="min_audible: expected a number from 0 to 1 or None, found 2"):
        Thresholds(min_audible=2)


def test_alike_is_the_cosine_of_standardized_features() -> None:
    features = np.random.default_rng(1).normal(5, [1, 3, 10, 0], (20, 4)).astype(np.float32)
    expected = cosine_similarity(StandardScaler().fit_transform(features[:, :3]))
    fronts, backs = [0, 4, 7], [1, 4, 19]
    np.testing.assert_allclose(cosine_similarities(features, fronts, backs), expected[fronts, backs], atol=1e-5)


def test_the_table_gives_means_by_class() -> None:
    columns = {
        "item": ["a", "b", "c"],
        "path": ["a", "b", "c"],
        "label": ["x", "x", "y"],
        "split": ["test"] * 3,
        "peak_scale": [1.0, 0.5, 1.0],
        "margin_db": [6.0, 10.0, None],
        "audible": [0.5, 1.0, None],
        "overwhelmed": [0.0, 0.5, None],
    }
    assert quality_by(Catalog(pa.table(columns), Path()), "label") == [
        {"label": "x", "sounds": 2, "peak_scaled": 0.5, "margin_db": 8.0, "audible": 0.75, "overwhelmed": 0.25},
        {"label": "y", "sounds": 1, "peak_scaled": 0.0, "margin_db": None, "audible": None, "overwhelmed": None},
    ]
