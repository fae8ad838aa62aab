"""Training on sounds: spectrograms of one channel, SpecAugment, and a model that encodes sounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from tests.drawn_clips import draw_clips
from tests.small_networks import SMALL


def test_a_model_is_trained_on_sounds_encodes_them_and_is_adapted_to_them(tmp_path: Path) -> None:
    drawn = draw_clips(tmp_path / "clips", 40, seconds=0.5)
    labels = [f"class{row // 5}" for row in range(40)]
    splits = ["val" if row >= 20 else "train" for row in range(40)]
    table = drawn.table
    for name, values in (("label", labels), ("split", splits)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    catalog, file = Catalog(table, drawn.root), tmp_path / "some.model"
    settings = {**SMALL, "epochs": 1, "size": None, "seconds": 0.5}
    with sp.runtime(cache=tmp_path / "cache", workers=1, progress=False, device="cpu"):
        model = sp.train(catalog, "protonet", output=file, **settings)
        told = model.record.preprocessing
        assert (told["medium"], told["seconds"], told["bands"]) == ("sound", 0.5, 128)
        assert told["mean"] < 0 < told["std"]  # of the decibels of the training sounds
        assert model.weights["backbone.blocks.0.0.weight"].shape == (64, 1, 3, 3)
        vectors, maps = (sp.encode(catalog, f"model:{file}(maps={maps})") for maps in (False, True))
        assert vectors.array.shape == (40, 64)
        np.testing.assert_allclose(vectors.array, maps.array, rtol=1e-3, atol=1e-5)
        tasks = sp.sample(catalog, "random", split="val", way=3, shot=2, query=3, tasks=4)
        methods = ["finetune(steps=0)", "finetune(steps=1, rate=0.01)"]
        adapted = sp.evaluate(tasks, catalog=catalog, model=model, methods=methods)
        head = sp.evaluate(tasks, vectors, "cosine(rows='raw')")
        right = head.counts("cosine(rows='raw')").accuracy_by_task()
        assert (adapted.counts(methods[0]).accuracy_by_task() == right).all()
        unchanged = sp.train(catalog, "protonet", augment="none", **settings)
        assert unchanged.digest != model.digest
        with pytest.raises(InputError, match="augmentation 'crop' is for images, but the items are sounds"):
            sp.train(catalog, "protonet", augment="crop", **settings)
        with pytest.raises(InputError, match=r"backbone 'lite0' needs images, .*sounds"):
            sp.train(catalog, "protonet", **{**settings, "backbone": "lite0"})
