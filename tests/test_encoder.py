from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, MissingExtra, UnknownName
from shotproof.features.encoder import (
    Encoder,
    EncodeSettings,
    Tally,
    default_cache,
    encode,
    encoders,
    make_encoder,
)
from shotproof.features.features import Features
from shotproof.worlds.shapes import FACTORS
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog
from tests.test_hf import saved
from tests.test_hf_audio import saved as saved_sounds
from tests.test_onnx import convolution


def spec_of(name: str, folder: Path, items: list[str]) -> str:
    """How a user spells a registered encoder, with a file that it needs made in the folder."""
    if name == "hf":
        saved("resnet", folder / "model")
        return f"hf:{folder / 'model'}"
    if name == "hf-audio":
        saved_sounds("wav2vec2", folder / "model")
        return f"hf-audio:{folder / 'model'}"
    if name == "onnx":
        return convolution(folder / "m.onnx", ["b", 3, 8, 8])
    if name == "file":
        np.savez(folder / "f.npz", items=np.array(items), features=np.eye(len(items)) / 3)
        return f"file:{folder / 'f.npz'}"
    return name


@pytest.mark.parametrize("name", encoders.names())
def test_every_encoder_keeps_the_contract(tmp_path: Path, name: str) -> None:
    draw = draw_clips if getattr(encoders.factory(name), "kind", "image") == "sound" else draw_catalog
    plain = draw(tmp_path / "files", 4)
    table = plain.table
    for factor in FACTORS:
        table = table.append_column(factor, pa.array(["x", "y", "x", "y"]))
    catalog = Catalog(table, plain.root)
    spec = spec_of(name, tmp_path, catalog.items.to_pylist())
    encoder = make_encoder(spec)
    assert encoder.name == spec
    assert encoder.about
    assert "\n" not in encoder.about
    features = encode(catalog, encoder, cache=tmp_path / "cache", workers=0)
    assert features.array.dtype == np.float32
    assert features.table.column("item").to_pylist() == catalog.items.to_pylist()
    assert features.meta["made_by"] == {"encoder": spec, **encoder.parameters()}
    assert features.meta["from"] == {"catalog": catalog.digest}
    features.write(tmp_path / "first.parquet")
    encode(catalog, spec, cache=tmp_path / "cache", workers=0).write(tmp_path / "again.parquet")
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    # An item's feature does not depend on the other items or their order.
    turned = Catalog(catalog.table.take([2, 0]), catalog.root)
    alone = encode(turned, spec, cache=False, workers=0)
    np.testing.assert_allclose(alone.array, features.array[[2, 0]], rtol=1e-5, atol=1e-5)


class Lengths(Encoder):
    """An encoder of a user: the length of the item's name."""

    about = "length of the item's name"
    name = "lengths"

    def __init__(self, power: int = 1) -> None:
        self.power = power

    def parameters(self) -> dict[str, Any]:
        return {"power": self.power}

    def encode(self, catalog: Catalog, settings: EncodeSettings) -> Features:
        return Features.from_array(catalog.items, [[len(item) ** self.power] for item in catalog.items.to_pylist()])


def test_a_user_adds_an_encoder_by_one_registration(tmp_path: Path) -> None:
    encoders.register("lengths", Lengths)
    try:
        features = encode(draw_catalog(tmp_path, 3), "lengths(power=2)")
    finally:
        encoders.unregister("lengths")
    np.testing.assert_array_equal(features.array, [[49], [49], [49]])
    assert features.meta["made_by"] == {"encoder": "lengths(power=2)", "power": 2}


def test_an_encoder_may_be_given_as_an_object(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 2)
    assert encode(catalog, Lengths(power=3)).meta["made_by"] == {"encoder": "lengths", "power": 3}
    with pytest.raises(InputError, match="'lengths' is made already: it takes no option power"):
        encode(catalog, Lengths(), power=3)


def test_a_name_shows_the_options_that_were_given_wherever_they_were_given() -> None:
    assert make_encoder("pixels").name == "pixels"
    assert make_encoder("pixels( size=4 )").name == "pixels(size=4)"
    assert make_encoder("pixels", size=4).name == "pixels(size=4)"
    assert make_encoder("file:some (1).npy").name == "file:some (1).npy"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lite", "unknown encoder 'lite': did you mean 'lite0'"),
        ("pixel(size=4)", "unknown encoder 'pixel': did you mean 'pixels'"),
        ("nothing:here", "unknown encoder 'nothing'"),
        ("pixels(sice=4)", "has no option 'sice': did you mean 'size'"),
        ("pixels(size=os)", "option 'size' is not a literal"),
        ("hf:", "expected something after the colon, e.g. hf:NAME"),
        ("hf", "encoder 'hf': missing a required argument: 'model'"),
        ("lite0:model", "encoder 'lite0': too many positional arguments"),
        ("", "is not a name"),
    ],
)
def test_a_spelling_that_names_no_encoder_is_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_encoder(spec)


def test_unknown_names_are_of_their_own_kind() -> None:
    with pytest.raises(UnknownName):
        make_encoder("lite1")


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
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, spec: str, module: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=rf"pip install shotproof\[{extra}\]"):
        make_encoder(spec)


def test_the_default_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("SHOTPROOF_CACHE", raising=False)
    assert default_cache() == tmp_path / ".cache" / "shotproof"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg" / "shotproof"
    monkeypatch.setenv("SHOTPROOF_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"
    encode(draw_catalog(tmp_path / "images", 2), "pixels", workers=0)
    tally = Tally()
    encode(draw_catalog(tmp_path / "images", 2), "pixels", workers=0, tally=tally, cache=tmp_path / "own")
    assert tally == Tally(encoded=0, reused=2)


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("workers", -1)])
def test_settings_that_make_no_sense_are_refused(name: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{name.replace('_', ' ')} {value}: expected"):
        EncodeSettings(**{name: value})  # type: ignore[arg-type]
