from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from shotproof.features.features import Tally
from tests.drawn_images import draw_catalog

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
VISION = {**SMALL, "image_size": 32, "patch_size": 8}
SQUARE = {"height": 32, "width": 32}
CROPPED = {"size": {"shortest_edge": 36}, "crop_size": SQUARE}


pytestmark = pytest.mark.usefixtures("quiet_transformers")


def build(kind: str) -> tuple[Any, Any]:
    """A tiny model with random weights, and its image processor."""
    torch.manual_seed(0)
    t: Any = transformers
    if kind == "vit":
        return t.ViTModel(t.ViTConfig(**VISION)), t.ViTImageProcessorPil(size=SQUARE)
    if kind == "vit-classifier":
        return t.ViTForImageClassification(t.ViTConfig(**VISION)), t.ViTImageProcessorPil(size=SQUARE)
    if kind == "dinov2":
        return t.Dinov2Model(t.Dinov2Config(**VISION)), t.BitImageProcessorPil(**CROPPED)
    if kind == "registers":
        config = t.Dinov2WithRegistersConfig(**VISION, num_register_tokens=3)
        return t.Dinov2WithRegistersModel(config), t.BitImageProcessorPil(**CROPPED)
    if kind == "clip":
        text = {**SMALL, "vocab_size": 60, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
        config = t.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=8)
        return t.CLIPModel(config), t.CLIPImageProcessorPil(**CROPPED)
    if kind == "siglip":
        text = {**SMALL, "vocab_size": 60, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
        config = t.SiglipConfig(text_config=text, vision_config=VISION)
        return t.SiglipModel(config), t.SiglipImageProcessorPil(size=SQUARE)
    if kind == "convnext":
        config = t.ConvNextConfig(hidden_sizes=[4, 6, 8, 10], depths=[1, 1, 1, 1])
        return t.ConvNextModel(config), t.ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.9)
    config = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1])
    return t.ResNetModel(config), t.ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.9)


def saved(kind: str, folder: Path) -> tuple[Any, Any]:
    model, processor = build(kind)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model.eval(), processor


KINDS = ["vit", "vit-classifier", "dinov2", "registers", "clip", "siglip", "convnext", "resnet"]


def direct(kind: str, model: Any, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
    """What each pooling should give, by direct calls."""
    if kind == "vit-classifier":
        hidden = model.vit(pixel_values=pixels).last_hidden_state
        return {"auto": hidden[:, 0], "cls": hidden[:, 0], "mean": hidden[:, 1:].mean(dim=1)}
    output = getattr(model, "vision_model", model)(pixel_values=pixels)
    hidden, pooled = output.last_hidden_state, output.pooler_output
    found = {"auto": pooled.flatten(1), "pooler": pooled.flatten(1)}
    if hidden.ndim == 4:
        return {**found, "mean": hidden.mean(dim=(2, 3))}
    if kind == "siglip":
        return {**found, "mean": hidden.mean(dim=1)}
    extra = 4 if kind == "registers" else 1
    return {**found, "cls": hidden[:, 0], "mean": hidden[:, extra:].mean(dim=1)}


@pytest.mark.parametrize("kind", KINDS)
def test_features_agree_with_a_direct_call(tmp_path: Path, kind: str) -> None:
    model, processor = saved(kind, tmp_path / "model")
    catalog = draw_catalog(tmp_path / "images", 3, width=40, height=50)
    images = [Image.open(path) for path in catalog.paths]
    pixels = torch.from_numpy(np.stack(processor(images=images, return_tensors="np")["pixel_values"]))
    with torch.inference_mode():
        expected = direct(kind, model, pixels)
    for pooling in ("auto", "pooler", "cls", "mean"):
        spec = f"hf:{tmp_path / 'model'}(pooling='{pooling}')"
        if pooling in expected:
            features = encode(catalog, spec, runtime=Runtime(cache=None, workers=1, batch_size=2))
            np.testing.assert_allclose(features.array, expected[pooling].numpy(), rtol=1e-4, atol=1e-5)
        else:
            with pytest.raises(InputError, match=f"pooling '{pooling}'"):
                encode(catalog, spec, runtime=Runtime(cache=None, workers=1))


def test_workers_give_the_same_and_another_pooling_or_model_is_encoded_anew(tmp_path: Path) -> None:
    saved("vit", tmp_path / "model")
    spec, catalog = f"hf:{tmp_path / 'model'}", draw_catalog(tmp_path / "images", 3)
    first = encode(catalog, spec, runtime=Runtime(cache=None, workers=1, batch_size=2))
    cached = Runtime(cache=tmp_path / "cache", workers=2, batch_size=2)
    assert encode(catalog, spec, runtime=cached).digest == first.digest
    tallies = [encode(catalog, one, runtime=cached).tally for one in (spec, f"{spec}(pooling='cls')")]
    build_other = transformers.ViTModel(transformers.ViTConfig(**VISION))
    build_other.save_pretrained(tmp_path / "model")
    tallies.append(encode(catalog, spec, runtime=cached).tally)
    assert tallies == [Tally(0, 3), Tally(3, 0), Tally(3, 0)]


def test_the_same_model_elsewhere_has_the_same_fingerprint(tmp_path: Path) -> None:
    saved("vit-classifier", tmp_path / "a")
    saved("vit-classifier", tmp_path / "b")
    assert encoders.make(f"hf:{tmp_path / 'a'}").fingerprint == encoders.make(f"hf:{tmp_path / 'b'}").fingerprint


def test_a_classifier_whose_settings_name_the_classes_of_imagenet_was_trained_on_it(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 1)
    listed = (resources.files("shotproof.features.pretraining") / "imagenet.txt").read_text("utf-8").splitlines()
    for names, expected in ((listed, "imagenet"), (["owl", "wren"], None)):
        model, processor = build("vit-classifier")
        model.config.id2label = dict(enumerate(names))
        folder = tmp_path / f"model of {len(names)}"
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
        features = encode(catalog, f"hf:{folder}", runtime=Runtime(cache=None, workers=1))
        assert features.record.pretrained_on == expected


@pytest.mark.parametrize("model", ["no-such-model", "no/such-model", "/no/such/folder"])
def test_the_hub_is_not_asked_unless_allowed(model: str) -> None:
    with pytest.raises(InputError, match=r"neither a folder nor .*cache.*hub=True"):
        encoders.make(f"hf:{model}").processor  # noqa: B018


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot load its ImageProcessor"):
        encoders.make(f"hf:{tmp_path}").processor  # noqa: B018


def test_a_model_without_all_its_weights_is_refused(tmp_path: Path) -> None:
    model, _ = saved("vit", tmp_path)
    state = {key: value for key, value in model.state_dict().items() if "layernorm" not in key}
    model.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(InputError, match=r"lacks \d+ of its weights, e\.g\. .*layernorm"):
        encoders.make(f"hf:{tmp_path}").fingerprint  # noqa: B018


def test_a_model_of_texts_is_refused(tmp_path: Path) -> None:
    build("vit")[1].save_pretrained(tmp_path)
    config = transformers.BertConfig(**SMALL, vocab_size=20)
    transformers.BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="is a BertModel, which does not take images"):
        encoders.make(f"hf:{tmp_path}").fingerprint  # noqa: B018


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    model, _ = saved("vit", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot load its Model"):
        encoders.make(f"hf:{tmp_path}").fingerprint  # noqa: B018


def test_an_unknown_pooling_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"encoder 'hf': pooling: expected .* found 'cs': did you mean 'cls'"):
        encoders.make(f"hf:{tmp_path}", pooling="cs")
