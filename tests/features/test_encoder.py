from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, MissingExtra, UnknownName
from shotproof.core.options import option
from shotproof.core.records import Maker, Source
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoder import Encoder, encode, encoders
from shotproof.features.features import Features, Tally
from shotproof.worlds.shapes import FACTORS
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog
from tests.features.encoders.test_hf import saved
from tests.features.encoders.test_hf_audio import saved as saved_sounds
from tests.features.encoders.test_onnx import convolution
from tests.small_networks import pretrained_model


def spec_of(name: str, folder: Path, items: list[str]) -> str:
    """How a user spells a registered encoder, with a file that it needs made in the folder."""
    if name in ("hf", "two-tower"):
        saved("resnet" if name == "hf" else "clip", folder / "model")
        return f"{name}:{folder / 'model'}"
    if name in ("hf-audio", "two-tower-audio"):
        saved_sounds("wav2vec2" if name == "hf-audio" else "clap", folder / "model")
        return f"{name}:{folder / 'model'}(seconds=2)"
    if name == "model":
        pretrained_model().write(folder / "m.model")
        return f"model:{folder / 'm.model'}"
    if name == "onnx":
        return convolution(folder / "m.onnx", ["b", 3, 8, 8])
    if name == "file":
        np.savez(folder / "f.npz", items=np.array(items), features=np.eye(len(items)) / 3)
        return f"file:{folder / 'f.npz'}"
    return name


@pytest.mark.parametrize("name", encoders.names())
def test_every_encoder_keeps_the_contract(tmp_path: Path, name: str) -> None:
    draw = draw_clips if getattr(encoders.get(name), "medium", "image") == "sound" else draw_catalog
    plain = draw(tmp_path / "files", 4)
    table = plain.table
    for factor in FACTORS:
        table = table.append_column(factor, pa.array(["x", "y", "x", "y"]))
    catalog = Catalog(table, plain.root)
    spec = spec_of(name, tmp_path, catalog.items)
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    features = encode(catalog, spec, runtime=runtime)
    assert features.array.dtype == np.float32
    assert features.table.column("item").to_pylist() == catalog.items
    assert features.record.encoder == Maker.of(encoders.make(spec))
    assert features.record.sources["catalog"] == Source(catalog.digest)
    assert str(tmp_path) not in str(features.record.to_meta())
    features.write(tmp_path / "first.parquet")
    encode(catalog, spec, runtime=runtime).write(tmp_path / "again.parquet")
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    # An item's feature does not depend on the other items or their order.
    turned = Catalog(catalog.table.take([2, 0]), catalog.root)
    alone = encode(turned, spec, runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(alone.array, features.array[[2, 0]], rtol=1e-5, atol=1e-5)


@dataclass(frozen=True)
class Lengths(Encoder):
    """An encoder of a user: the length of the item's name."""

    about = "length of the item's name"

    power: int = option(1, "the exponent")

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        return Features.from_array(catalog.items, [[len(item) ** self.power] for item in catalog.items])


def test_a_user_adds_an_encoder_by_one_registration(tmp_path: Path) -> None:
    encoders.register("lengths", Lengths)
    try:
        features = encode(draw_catalog(tmp_path, 3), "lengths(power=2)")
    finally:
        encoders.unregister("lengths")
    np.testing.assert_array_equal(features.array, [[49], [49], [49]])
    assert features.record.encoder == Maker("lengths", "lengths(power=2)", {"power": 2})


def test_an_encoder_may_be_given_as_an_object_or_a_table(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 2)
    assert encode(catalog, Lengths(power=3)).name == "Lengths(power=3)"
    runtime = Runtime(cache=None)
    assert encode(catalog, {"name": "pixels", "size": 2}, runtime=runtime).name == "pixels(size=2)"


def test_a_spelling_shows_the_options_that_are_not_the_defaults() -> None:
    assert encoders.make("pixels").spelling == "pixels"
    assert encoders.make("pixels( size=4 )").spelling == "pixels(size=4)"
    assert encoders.make("pixels", size=8).spelling == "pixels"
    assert encoders.make("file:some (1).npy").spelling == "file:some (1).npy"
    assert encoders.make("hf:a/b(hub=True)").spelling == "hf:a/b"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lite", "unknown encoder 'lite': did you mean 'lite0'"),
        ("pixel(size=4)", "unknown encoder 'pixel': did you mean 'pixels'"),
        ("nothing:here", "unknown encoder 'nothing'"),
        ("pixels(sice=4)", "has no option 'sice': did you mean 'size'"),
        ("pixels(size=os)", "option 'size' is not a literal"),
        ("hf:", "expected something after the colon, e.g. hf:NAME"),
        ("hf", "encoder 'hf' needs model: e.g. hf:"),
        ("lite0:model", "'lite0' takes no argument"),
        ("", "is not a name"),
    ],
)
def test_a_spelling_that_names_no_encoder_is_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoders.make(spec)


def test_unknown_names_are_of_their_own_kind() -> None:
    with pytest.raises(UnknownName):
        encoders.make("lite1")


@pytest.mark.parametrize(
    ("spec", "module", "extra"),
    [
        ("lite0", "efficientnet_lite_pytorch", "lite"),
        ("hf:x", "transformers", "hf"),
        ("hf-audio:x", "transformers", "hf"),
        ("onnx:x", "onnxruntime", "onnx"),
        ("birdnet", "ai_edge_litert.interpreter", "birdnet"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: str, module: str, extra: str
) -> None:
    draw = draw_clips if getattr(type(encoders.make(spec)), "medium", "") == "sound" else draw_catalog
    catalog = draw(tmp_path, 1)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=rf"pip install shotproof\[{extra}\]"):
        encode(catalog, spec)


def test_features_are_kept_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOTPROOF_CACHE", str(tmp_path / "own"))
    catalog = draw_catalog(tmp_path / "images", 2)
    assert encode(catalog, "pixels").tally == Tally(encoded=2, reused=0)
    assert encode(catalog, "pixels", runtime=Runtime(cache=tmp_path / "own")).tally == Tally(encoded=0, reused=2)
    with Runtime(cache=tmp_path / "other"):
        assert encode(catalog, "pixels").tally == Tally(encoded=2, reused=0)
