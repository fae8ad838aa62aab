from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import transformers
from onnx import TensorProto, helper, numpy_helper

from shotproof.core.errors import InputError
from shotproof.masks.cutter import cutters
from shotproof.media.box import Box
from tests.drawn_layers import disc
from tests.masks.test_grabcut import overlap, red_disc_on_green_noise


def redness(path: Path, weights: tuple[float, float, float] = (3.0, -3.0, 0.0), outputs: int = 1) -> str:
    """A model [1, 3, 32, 32] -> [1, outputs, 32, 32] that is high where an image is red."""
    kernel = np.repeat(np.array(weights, np.float32).reshape(1, 3, 1, 1), outputs, axis=0)
    image, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 32, 32])
        for name, channels in (("image", 3), ("map", outputs))
    )
    node = helper.make_node("Conv", ["image", "weights"], ["map"])
    graph = helper.make_graph([node], "tiny", [image], [result], [numpy_helper.from_array(kernel, "weights")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return f"onnx:{path}(size=32)"


def test_onnx_cuts_by_its_map(tmp_path: Path) -> None:
    true = disc(96, 128, 0.35)
    cutter = cutters.make(redness(tmp_path / "red.onnx"))
    pixels = red_disc_on_green_noise(true)
    assert overlap(cutter.cut(pixels, None), true) > 0.8
    left_half = cutter.cut(pixels, Box(0, 0, 0.5, 1))
    assert left_half[:, :64].any()
    assert not left_half[:, 64:].any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cutter)).cut(pixels, None), cutter.cut(pixels, None))


def test_the_fingerprint_of_onnx_follows_the_file_and_the_options(tmp_path: Path) -> None:
    spellings = [redness(tmp_path / "a.onnx"), redness(tmp_path / "b.onnx"), redness(tmp_path / "c.onnx", (1, 0, 0))]
    same, copy, other = (cutters.make(spelling).fingerprint for spelling in spellings)
    assert same == copy != other
    assert cutters.make(spellings[0], threshold=0.4).fingerprint != same


@pytest.mark.parametrize("end", [".data", "_data"])
def test_the_fingerprint_of_onnx_follows_weights_beside_the_file(tmp_path: Path, end: str) -> None:
    spelling = redness(tmp_path / "a.onnx")
    fingerprints = {cutters.make(spelling).fingerprint}
    for weights in (b"some", b"other"):
        (tmp_path / f"a.onnx{end}").write_bytes(weights)
        fingerprints.add(cutters.make(spelling).fingerprint)
    assert len(fingerprints) == 3


@pytest.mark.parametrize(
    ("outputs", "size", "message"), [(3, 32, r"expected one map .*got shape \[1, 3"), (1, 48, "such images")]
)
def test_models_of_something_else_are_refused(tmp_path: Path, outputs: int, size: int, message: str) -> None:
    redness(tmp_path / "m.onnx", outputs=outputs)
    with pytest.raises(InputError, match=message):
        cutters.make(f"onnx:{tmp_path / 'm.onnx'}", size=size).cut(np.zeros((20, 20, 3), np.uint8), None)


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cutter 'onnx': file .*m\.onnx does not exist"):
        cutters.make(f"onnx:{tmp_path / 'm.onnx'}").fingerprint  # noqa: B018
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match=r"m\.onnx is not a readable model"):
        cutters.make(f"onnx:{tmp_path / 'm.onnx'}").cut(np.zeros((20, 20, 3), np.uint8), None)


def segformer(folder: Path, seed: int = 0) -> tuple[Any, Any]:
    """A tiny model of three labels with random weights, saved with its processor."""
    torch.manual_seed(seed)
    t: Any = transformers
    config = t.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        num_attention_heads=[1, 2],
        patch_sizes=[3, 3],
        strides=[2, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        id2label={0: "background", 1: "animal", 2: "plant"},
        label2id={"background": 0, "animal": 1, "plant": 2},
    )
    model = t.SegformerForSemanticSegmentation(config)
    processor = t.SegformerImageProcessorPil(size={"height": 32, "width": 32})
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model.eval(), processor


@pytest.mark.usefixtures("quiet_transformers")
def test_hugging_face_cuts_by_its_labels(tmp_path: Path) -> None:
    model, processor = segformer(tmp_path / "model")
    pixels = red_disc_on_green_noise(disc(60, 80))
    with torch.inference_mode():
        logits = model(**processor(pixels, return_tensors="pt")).logits
        logits = torch.nn.functional.interpolate(logits, (60, 80), mode="bilinear", align_corners=False)
    labels = logits[0].argmax(0).numpy()
    assert len(np.unique(labels)) > 1
    spelling = f"hf:{tmp_path / 'model'}"
    np.testing.assert_array_equal(cutters.make(spelling).cut(pixels, None), labels > 0)
    cutter = cutters.make(spelling, classes=("plant",))
    np.testing.assert_array_equal(cutter.cut(pixels, None), labels == 2)
    assert not cutter.cut(pixels, Box(0.5, 0, 1, 1))[:, :40].any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cutter)).cut(pixels, None), labels == 2)
    with pytest.raises(InputError, match=r"has no class 'plants': did you mean 'plant'"):
        cutters.make(spelling, classes=("plants",)).cut(pixels, None)


@pytest.mark.usefixtures("quiet_transformers")
def test_the_fingerprint_of_hugging_face_follows_the_weights(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        segformer(tmp_path / name, seed)
    same, copy, other = (cutters.make(f"hf:{tmp_path / name}").fingerprint for name in "abc")
    assert same == copy != other
    assert cutters.make(f"hf:{tmp_path / 'a'}", classes=("plant",)).fingerprint != same


def test_the_hub_is_not_asked_unless_allowed() -> None:
    with pytest.raises(InputError, match=r"neither a folder nor .*cache.*hub=True"):
        cutters.make("hf:no/such-model").cut(np.zeros((20, 20, 3), np.uint8), None)
