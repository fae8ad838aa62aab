"""Methods on texts, from a tiny model of two towers that the test saves, through the file to the counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features import features as features_module
from shotproof.features.encoder import encode
from shotproof.features.encoders.two_tower import TwoTower, TwoTowerAudio
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.tasks.sampler import sample
from shotproof.worlds.context_world import ContextWorld
from shotproof.worlds.sounds import SoundsWorld
from tests.features.encoders.test_hf_audio import saved as save_sounds
from tests.features.encoders.test_two_tower import save, tokenizer_of

PLAIN = Runtime(cache=None, workers=1, progress=False)
TEMPLATES = ("a photo of a {}", "{}")
EVERY = ["zero-shot", "tip-adapter", "tip-adapter-f", "text-probe"]

pytestmark = pytest.mark.usefixtures("quiet_transformers")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return ContextWorld(concepts=4, contexts=2, figures=4, size=32).write(tmp_path_factory.mktemp("world"))


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_zero_shot_counts_are_those_of_direct_calls(catalog: Catalog, tmp_path: Path) -> None:
    model, processor, tokenizer = save("clip", tmp_path / "model")
    features = encode(catalog, TwoTower(str(tmp_path / "model"), templates=TEMPLATES), runtime=PLAIN)
    features.write(tmp_path / "features.parquet")
    read = Features.read(tmp_path / "features.parquet")
    assert read.digest == features.digest
    assert "templates=('a photo of a {}', '{}')" in read.name
    split = catalog.splits[-1]
    tasks = sample(catalog, "random", split=split, way=2, shot=1, query=2, tasks=10)
    results = evaluate(tasks, read, EVERY, runtime=PLAIN)
    assert results.methods == EVERY

    def image(item: str) -> Any:
        pixels = processor(images=Image.open(catalog.root / f"{item}.png"), return_tensors="pt")
        return unit(model.get_image_features(**pixels).pooler_output.numpy())[0]

    def text(label: str) -> Any:
        name = label.replace("_", " ")
        tokens = [tokenizer([template.replace("{}", name)], return_tensors="pt") for template in TEMPLATES]
        return np.mean([unit(model.get_text_features(**token).pooler_output.numpy())[0] for token in tokens], axis=0)

    expected = []
    with torch.inference_mode():
        for start, end in zip(tasks.starts, tasks.starts[1:], strict=False):
            rows = tasks.table.slice(start, end - start).to_pylist()
            words = unit(np.stack([text(row["label"]) for row in rows]))
            for row in rows:
                answers = [int(np.argmax(words @ image(item))) for item in row["query"]]
                expected.append(sum(answer == row["slot"] for answer in answers))
    counted = results.rows_of("zero-shot").column("n_correct").to_pylist()
    assert counted == expected
    assert 0 < sum(counted) < 40


def test_without_templates_the_features_are_as_before(catalog: Catalog, tmp_path: Path) -> None:
    save("clip", tmp_path)
    plain = encode(catalog, TwoTower(str(tmp_path)), runtime=PLAIN)
    with_texts = encode(catalog, TwoTower(str(tmp_path), templates="a {}"), runtime=PLAIN)
    assert plain.texts is None
    assert plain.table.column_names == ["item", "feature"]
    assert np.array_equal(plain.array, with_texts.array)
    assert plain.digest != with_texts.digest
    tasks = sample(catalog, "random", split=catalog.splits[-1], way=2, shot=1, query=2, tasks=3)
    with pytest.raises(InputError, match=r"method 'zero-shot' needs the texts .* two-tower:NAME\(templates="):
        evaluate(tasks, plain, "zero-shot", runtime=PLAIN)
    with pytest.raises(InputError, match="without transforms"):
        evaluate(tasks, transform(with_texts, "l2"), "zero-shot", runtime=PLAIN)
    with pytest.raises(InputError, match=r"template 'a photo': expected \{\}"):
        TwoTower(str(tmp_path), templates="a photo")


def test_sounds_have_texts_too(tmp_path: Path) -> None:
    model, extractor = save_sounds("clap", tmp_path / "model")
    catalog = SoundsWorld(foregrounds=3, backgrounds=1, items=4).write(tmp_path / "world")
    labels = catalog.table.column("label").to_pylist()
    tokenizer = tokenizer_of(4, sorted({word for label in labels for word in label.replace("_", " ").split()}))
    tokenizer.save_pretrained(tmp_path / "model")
    features = encode(catalog, TwoTowerAudio(str(tmp_path / "model"), templates="a {}", seconds=1.0), runtime=PLAIN)
    assert features.texts is not None
    assert len(np.unique(features.texts.round(4), axis=0)) == len(set(labels))
    with torch.inference_mode():
        for label, text in zip(labels, features.texts, strict=True):
            tokens = tokenizer([f"a {label.replace('_', ' ')}"], return_tensors="pt")
            expected = model.get_text_features(**tokens).pooler_output[0]
            np.testing.assert_allclose(text, expected, atol=1e-5)
        from shotproof.media.clip import read_clip

        clip = read_clip(catalog.paths[0], 8_000, 1.0)
        heard = extractor(clip, sampling_rate=8_000, return_tensors="pt")["input_features"]
        expected = model.get_audio_features(input_features=heard).pooler_output[0]
    np.testing.assert_allclose(features.array[0], expected, atol=1e-4)
    save("clip", tmp_path / "clip")
    with pytest.raises(InputError, match=r"does not have towers for sounds and for texts: expected .* CLAP"):
        TwoTowerAudio(str(tmp_path / "clip")).encode_words(["cat"])


def test_texts_of_ones_own(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = sorted(set(catalog.table.column("label").to_pylist()))
    images = Features.from_array(catalog.items, np.random.default_rng(0).normal(size=(len(catalog), 4)))
    words = Features.from_array(labels, np.eye(4)[: len(labels)], name="mine")
    joined = images.with_texts(catalog, words)
    assert joined.texts is not None
    assert [labels[int(row.argmax())] for row in joined.texts] == catalog.table.column("label").to_pylist()
    assert joined.record.source("texts") == words.digest
    assert joined.with_texts(catalog, words).digest == joined.digest
    joined.write(tmp_path / "f.parquet")
    monkeypatch.setattr(features_module, "is_large", lambda path: True)
    mapped = Features.read(tmp_path / "f.parquet")
    assert np.array_equal(mapped.texts, joined.texts)  # type: ignore[arg-type]
    assert mapped.digest == joined.digest
    with pytest.raises(Mismatch, match="the features have 4 dimensions and the texts 3"):
        images.with_texts(catalog, Features.from_array(labels, np.eye(3)[np.zeros(len(labels), int)]))
    with pytest.raises(InputError, match=f"the texts lack the class '{labels[0]}'"):
        images.with_texts(catalog, Features.from_array(labels[1:], np.ones((len(labels) - 1, 4))))
    with pytest.raises(InputError, match=r"are local maps: .*one vector"):
        Features.from_array(catalog.items, np.ones((len(catalog), 4, 1, 1))).with_texts(catalog, words)
    broken = joined.table.set_column(
        2, "class_text", pa.FixedSizeListArray.from_arrays(pa.array(np.full(4 * len(catalog), np.nan, np.float32)), 4)
    )
    tasks = sample(catalog, "random", split=catalog.splits[-1], way=2, shot=1, query=2, tasks=3)
    with pytest.raises(InputError, match="not finite"):
        evaluate(tasks, Features(broken), "zero-shot", runtime=PLAIN)
