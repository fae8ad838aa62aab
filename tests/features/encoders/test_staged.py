from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.core.records import Maker, ModelRecord, plain
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoders.lite0 import load_network
from shotproof.features.features import Tally
from shotproof.models.model import Model
from shotproof.models.objective import objectives
from shotproof.models.preprocessing import ImagePreprocessing
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog
from tests.features.encoders.test_hf import saved as saved_images
from tests.features.encoders.test_hf_audio import saved as saved_sounds
from tests.small_networks import BACKBONE, SIDE, network_of

pytestmark = pytest.mark.usefixtures("quiet_transformers")
PLAIN = Runtime(cache=None, workers=1, batch_size=2)


def hooked(encoder: Any, catalog: Any, modules: list[Any]) -> list[torch.Tensor]:
    """What each of these modules gives when the encoder's whole network runs on all items."""
    found: list[torch.Tensor] = []
    hooks = [
        module.register_forward_hook(lambda _module, _given, given: found.append(_tensor(given))) for module in modules
    ]
    batch = torch.from_numpy(np.stack([encoder.load(path) for path in encoder.files(catalog)]))
    with torch.inference_mode():
        encoder.forward(batch)
    for hook in hooks:
        hook.remove()
    return found


def _tensor(given: Any) -> torch.Tensor:
    return given[0] if isinstance(given, tuple) else given


def blocks_of_the_package(catalog: Any) -> list[torch.Tensor]:
    """The map of each block of EfficientNet-Lite0, as its own package computes it."""
    network, found = load_network().eval(), []
    for block in network._blocks:
        block.register_forward_hook(lambda _module, _given, given: found.append(given))
    pixels = [np.asarray(Image.open(path).convert("RGB").resize((224, 224))) for path in catalog.paths]
    with torch.inference_mode():
        network.extract_features((torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float() - 127) / 128)
    return found


def test_every_block_of_lite0_in_one_pass(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3, width=40, height=30)
    stages = sp.analysis.encode_stages(catalog, "lite0", runtime=PLAIN)
    expected = blocks_of_the_package(catalog)
    assert len(stages) == len(expected) + 1 == 17
    for number, (stage, maps) in enumerate(zip(stages, expected, strict=False), 1):
        np.testing.assert_allclose(stage.array, maps.mean(dim=(2, 3)), rtol=1e-3, atol=1e-4)
        assert stage.name == f"lite0(stage={number})"
    np.testing.assert_allclose(stages[-1].array, sp.encode(catalog, "lite0", runtime=PLAIN).array, rtol=1e-4, atol=1e-5)
    assert [stage.tally for stage in stages] == [Tally(3, 0)] + 16 * [Tally(0, 3)]


@pytest.mark.parametrize(("kind", "blocks"), [("registers", "layer"), ("convnext", "stages"), ("clip", "layers")])
def test_blocks_of_vision_models(tmp_path: Path, kind: str, blocks: str) -> None:
    saved_images(kind, tmp_path / "model")
    catalog = draw_catalog(tmp_path / "images", 5, width=40, height=50)
    encoder = sp.encoders.make(f"hf:{tmp_path / 'model'}")
    modules = list(next(part for name, part in encoder.network.named_modules() if name.rpartition(".")[2] == blocks))
    outputs = hooked(encoder, catalog, modules)
    stages = sp.analysis.encode_stages(catalog, encoder, runtime=Runtime(cache=None, workers=1, batch_size=1))
    assert len(stages) == len(modules)
    with torch.inference_mode():
        for stage, hidden in zip(stages, outputs, strict=True):
            last = stage is stages[-1] and kind == "registers"
            hidden = encoder.network.layernorm(hidden) if last else hidden  # the last stage is after the final norm
            expected = hidden.mean(dim=(2, 3)) if hidden.ndim == 4 else hidden[:, 0]
            np.testing.assert_allclose(stage.array, expected, rtol=1e-4, atol=1e-5)


def test_blocks_of_sound_models(tmp_path: Path) -> None:
    saved_sounds("wav2vec2", tmp_path / "model")
    catalog = draw_clips(tmp_path / "clips", 3, seconds=0.5, rate=16_000)
    encoder = sp.encoders.make(f"hf-audio:{tmp_path / 'model'}(seconds=0.5)")
    outputs = hooked(encoder, catalog, [*encoder.network.encoder.layers])
    stages = sp.analysis.encode_stages(catalog, encoder, runtime=PLAIN)
    assert len(stages) == len(outputs)
    np.testing.assert_allclose(stages[0].array, outputs[0].mean(dim=1), rtol=1e-4, atol=1e-5)


def test_blocks_of_a_trained_model_and_the_classes_it_has_seen(tmp_path: Path) -> None:
    net, preprocessing = network_of(objectives.make("protonet")).eval(), ImagePreprocessing(size=SIDE, stored=SIDE)
    record = ModelRecord(
        backbone=Maker.of(sp.backbones.make(BACKBONE)),
        objective=Maker.of(objectives.make("protonet")),
        preprocessing=plain(preprocessing.to_meta()),
        seen=("owl", "wren"),
    )
    Model.of(net, record).write(tmp_path / "some.model")
    catalog = draw_catalog(tmp_path / "images", 3, width=20, height=20)
    stages = sp.analysis.encode_stages(catalog, f"model:{tmp_path / 'some.model'}", runtime=PLAIN)
    items = preprocessing.prepared(torch.from_numpy(np.stack([preprocessing.load(path) for path in catalog.paths])))
    assert len(stages) == 4
    with torch.inference_mode():
        for stage, block in zip(stages, net.backbone.blocks, strict=True):
            items = block(items)
            np.testing.assert_allclose(stage.array, items.mean(dim=(2, 3)), rtol=1e-3, atol=1e-4)
            assert stage.record.trained_on == ("owl", "wren")
    # Sounds that are to be mixed cannot be read yet: blocks are counted without any file.
    for path in catalog.paths:
        Path(path).unlink()
    encoder = sp.encoders.make(f"model:{tmp_path / 'some.model'}")
    assert encoder.count_stages(catalog) == 4
    # Weights that were loaded in inference mode fail on a GPU once they are moved there.
    assert not any(parameter.is_inference() for parameter in encoder.network.parameters())


def test_one_stage_is_that_of_all_and_the_cache_serves_the_others(tmp_path: Path) -> None:
    saved_images("convnext", tmp_path / "model")
    catalog = draw_catalog(tmp_path / "images", 4)
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    second = sp.encode(catalog, f"hf:{tmp_path / 'model'}(stage=2)", runtime=runtime)
    assert second.tally == Tally(4, 0)
    stages = sp.analysis.encode_stages(catalog, f"hf:{tmp_path / 'model'}", runtime=runtime)
    assert [stage.tally for stage in stages] == 4 * [Tally(0, 4)]
    assert [stage.array.shape[1] for stage in stages] == [4, 6, 8, 10]
    assert stages[1].digest == second.digest
    assert stages[1].record == second.record
    assert stages[1].name.endswith("(stage=2)")
    without = sp.encode(catalog, f"hf:{tmp_path / 'model'}", runtime=runtime)
    assert without.tally == Tally(4, 0)  # another thing, made by itself


def test_what_has_no_stages_is_refused(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 2)
    with pytest.raises(InputError, match=r"encoder 'pixels' has no stages: .* lite0, hf:NAME"):
        sp.analysis.encode_stages(catalog, "pixels")
    with pytest.raises(InputError, match="leave stage out"):
        sp.analysis.encode_stages(catalog, "lite0(stage=3)")
    with pytest.raises(InputError, match="either stage or maps"):
        sp.encoders.make("lite0(stage=3, maps=True)")
    saved_images("convnext", tmp_path / "model")
    with pytest.raises(InputError, match=r"encoder 'hf' has 4 stages, found stage 5: expected 1 to 4"):
        sp.encode(catalog, f"hf:{tmp_path / 'model'}(stage=5)", runtime=PLAIN)
    with pytest.raises(InputError, match="its stages have no pooler"):
        sp.encode(catalog, f"hf:{tmp_path / 'model'}(stage=1, pooling='pooler')", runtime=PLAIN)
