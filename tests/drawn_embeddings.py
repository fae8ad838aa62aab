"""A catalog with contexts, and embeddings of its images and words that tests draw for themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.features.features import Features

CONCEPTS, CONTEXTS = ("cat", "dog", "hot_air_balloon"), ("grass", "snow")


@pytest.fixture
def catalog() -> Catalog:
    rng = np.random.default_rng(1)
    columns = {
        "item": [f"i{n:02d}" for n in range(60)],
        "path": [f"i{n:02d}.png" for n in range(60)],
        "label": rng.choice(CONCEPTS, 60).tolist(),
        "split": ["all"] * 60,
        "context": [None if n % 7 == 0 else str(rng.choice(CONTEXTS)) for n in range(60)],
    }
    return Catalog(pa.table(columns))


@pytest.fixture
def embedded(catalog: Catalog) -> tuple[Features, Features]:
    rng = np.random.default_rng(2)
    images = Features.from_array(catalog.items[::-1], rng.normal(size=(60, 5)).astype(np.float32))
    texts = Features.from_array([*CONTEXTS, *CONCEPTS], rng.normal(size=(5, 5)).astype(np.float32))
    return images, texts
