from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from shotproof.features.features import Tally
from tests.drawn_images import draw_catalog

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
WEIGHTS = np.random.default_rng(0).normal(size=(5, 3, 1, 1)).astype(np.float32)


def convolution(path: Path, shape: list[Any], outputs: tuple[str, ...] = ("map",), half: bool = False) -> str:
    """A model [b, 3, h, w] -> `map` [b, 5, h, w], a convolution of 1 x 1, and `vector` [b, 5], its maximum."""
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    axes: dict[str, list[Any]] = {"map": [shape[0], 5, *shape[2:]], "vector": [shape[0], 5]}
    nodes = [
        helper.make_node("Conv", ["image", "weights"], ["map"]),
        helper.make_node("ReduceMax", ["map", "axes"], ["vector"], keepdims=0),
    ]
    constants = [
        numpy_helper.from_array(WEIGHTS.astype(np.float16) if half else WEIGHTS, "weights"),
        numpy_helper.from_array(np.array([2, 3]), "axes"),
    ]
    return save(path, nodes, shape, [helper.make_tensor_value_info(o, kind, axes[o]) for o in outputs], constants, kind)


def identity(path: Path, shape: list[Any]) -> str:
    """A model whose output is its input."""
    nodes = [helper.make_node("Identity", ["image"], ["same"])]
    return save(path, nodes, shape, [helper.make_tensor_value_info("same", TensorProto.FLOAT, shape)])


def save(
    path: Path,
    nodes: list[Any],
    shape: list[Any],
    outputs: list[Any],
    constants: Any = (),
    kind: int = TensorProto.FLOAT,
) -> str:
    image = helper.make_tensor_value_info("image", kind, shape)
    graph = helper.make_graph(nodes, "tiny", [image], outputs, initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return f"onnx:{path}"


def prepared(catalog: Catalog, height: int, width: int) -> npt.NDArray[np.float64]:
    """The images as the defaults want them, [n, height, width, 3]."""
    images = [Image.open(path).resize((width, height), Image.Resampling.BICUBIC) for path in catalog.paths]
    return (np.stack([np.asarray(image) for image in images]) / 255 - MEAN) / STD


def mapped(images: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What `convolution` makes of them, [n, height, width, 5]."""
    return images @ WEIGHTS[:, :, 0, 0].T.astype(np.float64)


@pytest.mark.parametrize("batch", ["b", 1, 2], ids=["free batch", "batch of 1", "batch of 2"])
def test_a_map_is_averaged(tmp_path: Path, batch: str | int) -> None:
    catalog = draw_catalog(tmp_path / "images", 5)
    spec = convolution(tmp_path / "m.onnx", [batch, 3, 6, 8])
    features = encode(catalog, spec, runtime=Runtime(cache=None, workers=1, batch_size=3))
    np.testing.assert_allclose(features.array, mapped(prepared(catalog, 6, 8)).mean(axis=(1, 2)), atol=1e-5)


def test_the_first_output_of_two_axes_is_preferred_and_another_can_be_named(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    spec = convolution(tmp_path / "m.onnx", ["b", 3, 6, 8], outputs=("map", "vector"))
    maps = mapped(prepared(catalog, 6, 8))
    by_default = encode(catalog, spec, runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(by_default.array, maps.max(axis=(1, 2)), atol=1e-5)
    named = encode(catalog, encoders.make(spec, output="map"), runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(named.array, maps.mean(axis=(1, 2)), atol=1e-5)


def test_channels_may_come_last(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 2)
    features = encode(catalog, identity(tmp_path / "m.onnx", ["b", 4, 7, 3]), runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(features.array, prepared(catalog, 4, 7).mean(axis=(1, 2)), atol=1e-5)


def test_half_precision(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 2)
    spec = convolution(tmp_path / "m.onnx", ["b", 3, 4, 4], outputs=("vector",), half=True)
    features = encode(catalog, spec, runtime=Runtime(cache=None, workers=1))
    assert features.array.dtype == np.float32
    np.testing.assert_allclose(features.array, mapped(prepared(catalog, 4, 4)).max(axis=(1, 2)), rtol=0.01, atol=0.02)


def test_options_override_the_file_beside_the_model_which_overrides_the_defaults(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 2)
    spec = identity(tmp_path / "m.onnx", ["b", "c", "h", "w"])
    (tmp_path / "m.onnx.toml").write_text('layout = "nchw"\nsize = [2, 3]\nmean = 127\nscale = 1\nstd = [1, 2, 4]\n')
    images = [Image.open(path) for path in catalog.paths]
    small = np.stack([np.asarray(image.resize((3, 2), Image.Resampling.BICUBIC)) for image in images]).astype(float)
    stated = encode(catalog, spec, runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(stated.array, ((small - 127) / [1, 2, 4]).mean(axis=(1, 2)), rtol=1e-5)
    overridden = encode(catalog, encoders.make(spec, std=2.0), runtime=Runtime(cache=None, workers=1))
    np.testing.assert_allclose(overridden.array, ((small - 127) / 2).mean(axis=(1, 2)), rtol=1e-5)
    assert overridden.record.encoder is not None
    assert overridden.record.encoder.spelling == "onnx:m.onnx(std=2)"
    used = "[[2, 3], 1.0, [127.0, 127.0, 127.0], [2.0, 2.0, 2.0], 'nchw', 'same']"
    assert (overridden.record.fingerprint or "").endswith(used)


def test_a_free_size_is_224(tmp_path: Path) -> None:
    spec = identity(tmp_path / "m.onnx", ["b", 3, "h", "w"])
    assert encoders.make(spec).preprocessing.size == [224, 224]


def test_workers_give_the_same_and_another_size_or_model_is_encoded_anew(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    spec = convolution(tmp_path / "m.onnx", ["b", 3, "h", "w"])
    first = encode(catalog, encoders.make(spec, size=8), runtime=Runtime(cache=None, workers=1, batch_size=2))
    cached = Runtime(cache=tmp_path / "cache", workers=2, batch_size=2)
    assert encode(catalog, encoders.make(spec, size=8), runtime=cached).digest == first.digest
    tallies = [encode(catalog, encoders.make(spec, size=size), runtime=cached).tally for size in (8, 6)]
    convolution(tmp_path / "m.onnx", ["b", 3, "h", "w"], outputs=("map", "vector"))
    tallies.append(encode(catalog, encoders.make(spec, size=8, output="map"), runtime=cached).tally)
    assert tallies == [Tally(0, 3), Tally(3, 0), Tally(3, 0)]


def test_weights_beside_the_file_are_part_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    spec = convolution(path, ["b", 3, 4, 4])
    fingerprints = {encoders.make(spec).fingerprint}
    for factor in (1, 2):
        model = onnx.load(path)
        weights = numpy_helper.from_array(WEIGHTS * factor, "weights")
        model.graph.initializer[0].CopyFrom(weights)
        onnx.save(model, path, save_as_external_data=True, location="m.onnx.data", size_threshold=64)
        fingerprints.add(encoders.make(spec).fingerprint)
    assert len(fingerprints) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, r"size: expected a whole number from 1 to 8,192 or 2 whole numbers .* found 0"),
        ({"size": (8, 8, 8)}, r"size: .* found \(8, 8, 8\)"),
        ({"size": 8.5}, "size: .* found 8.5"),
        ({"mean": (1, 2)}, r"mean: expected a number or 3 numbers .*found \(1, 2\)"),
        ({"std": (1, 0, 1)}, r"std: expected a number above 0 .* found \(1, 0, 1\)"),
        ({"scale": "x"}, "scale: .* found 'x'"),
        ({"layout": "chwn"}, "layout: expected nchw or nhwc or tf or ft or None, found 'chwn': did you mean 'nchw'"),
        ({"output": "mop"}, r"unknown output of model .*'mop': did you mean 'map'"),
        ({"sise": 8}, "has no option 'sise': did you mean 'size'"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    spec = convolution(tmp_path / "m.onnx", ["b", 3, "h", "w"])
    with pytest.raises(InputError, match=message):
        encoders.make(spec, **options).fingerprint  # noqa: B018


def test_a_size_that_the_model_does_not_take_is_refused(tmp_path: Path) -> None:
    spec = convolution(tmp_path / "m.onnx", ["b", 3, 6, 8])
    with pytest.raises(InputError, match=r"cannot be run on \[2, 3, 9, 9\]"):
        encode(
            draw_catalog(tmp_path / "images", 2), encoders.make(spec, size=9), runtime=Runtime(cache=None, workers=1)
        )


@pytest.mark.parametrize(("shape", "message"), [([2], "expected one input of floats"), (["b"] * 4, "give layout")])
def test_a_model_of_something_else_is_refused(tmp_path: Path, shape: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoders.make(identity(tmp_path / "m.onnx", shape)).fingerprint  # noqa: B018


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.onnx does not exist"):
        encoders.make(f"onnx:{tmp_path / 'm.onnx'}").fingerprint  # noqa: B018
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    with pytest.raises(InputError, match=r"m\.onnx cannot be read as ONNX"):
        encoders.make(f"onnx:{tmp_path / 'm.onnx'}").fingerprint  # noqa: B018


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size = ", "TOML"),
        ("sise = 8", "did you mean 'size'"),
        ("size = 0", r"m\.onnx\.toml: size: expected"),
    ],
)
def test_a_broken_file_beside_the_model_is_refused(tmp_path: Path, text: str, message: str) -> None:
    spec = convolution(tmp_path / "m.onnx", ["b", 3, "h", "w"])
    (tmp_path / "m.onnx.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        encoders.make(spec).fingerprint  # noqa: B018


@pytest.mark.parametrize("place", ["../weights.bin", "{folder}/weights.bin", "link.bin"])
def test_weights_outside_of_the_models_folder_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    convolution(folder / "tiny.onnx", ["b", 3, 4, 4])
    model = onnx.load(folder / "tiny.onnx")
    weights = model.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=place.format(folder=tmp_path))
    (folder / "tiny.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="cannot be read as ONNX"):
        encode(draw_catalog(tmp_path / "images", 1), f"onnx:{folder / 'tiny.onnx'}", runtime=Runtime(cache=None))
