"""A world where the truth is known: what an encoder that sees only the context, or only the concept, must score."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.worlds.context_world import CLEAN, ContextWorld
from tests.context_data import sample_context

SETS = ("iid", "ood", "hard-ood", "clean")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return ContextWorld(concepts=7, contexts=6, figures=14, size=32).write(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def pictures(catalog: Catalog) -> np.ndarray:
    """[items, 32, 32, 3], from 0 to 1."""
    return np.stack([np.asarray(Image.open(path)) for path in catalog.paths]) / 255


def accuracies(catalog: Catalog, values: np.ndarray) -> dict[str, np.ndarray]:
    """The accuracy of each task of each set, in percent."""
    sets = sample_context(catalog, {"name": "context", "clean_value": CLEAN}, way=4, shot=3, query=6, tasks=150)
    features = Features.from_array(catalog.items, values)
    return {name: evaluate(tasks, features, ["ncc"]).counts("ncc").accuracy_by_task() for name, tasks in sets.items()}


def test_an_encoder_that_sees_only_the_context(catalog: Catalog, pictures: np.ndarray) -> None:
    corners = pictures[:, [0, 1, 2, -3, -2, -1]][:, :, [0, 1, 2, -3, -2, -1]]  # no shape reaches them
    found = accuracies(catalog, corners.mean(axis=(1, 2)))
    means = {name: values.mean() for name, values in found.items()}
    assert means["iid"] > 97
    assert means["hard-ood"] < 2 < 25  # chance
    assert means["hard-ood"] < means["ood"] < means["clean"] + 10 < means["iid"]
    assert abs(means["clean"] - 25) < 2  # a blank plane says nothing: one class of four is always right


def test_an_encoder_that_sees_only_the_concept(catalog: Catalog, pictures: np.ndarray) -> None:
    silhouettes = (pictures.max(axis=3) < 0.35).reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(len(pictures), -1)
    found = accuracies(catalog, silhouettes)
    assert found["iid"].mean() > 50
    for name in ("ood", "hard-ood", "clean"):
        gap = found["iid"] - found[name]
        assert abs(gap.mean()) < 3 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_figures_are_the_same_in_every_context(catalog: Catalog, pictures: np.ndarray) -> None:
    by_figure = pictures.reshape(7 * 14, 7, 32, 32, 3)
    dark = by_figure.max(axis=4) < 0.17  # well within the shape
    assert (dark == dark[:, :1]).all()
    assert dark.any(axis=(2, 3)).all()
    assert len({tuple(picture[0, 0]) for picture in by_figure[0]}) == 7


def test_it_lies_on_disk_as_metacoco_does(catalog: Catalog) -> None:
    read = read_layout(catalog.root, "metacoco").table
    of = dict(zip(catalog.table.column("path").to_pylist(), catalog.table.column("context").to_pylist(), strict=True))
    assert dict(zip(read.column("path").to_pylist(), read.column("context").to_pylist(), strict=True)) == of


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figures": 0}, "figures: expected a whole number from 1 to 10,000,000"),
        ({"contexts": 37}, "from 1 to 36, found 37"),
    ],
)
def test_bad_input(change: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContextWorld(**change)
