"""Models of timm; where it is not installed, a stand-in with the few functions of timm's that are used."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from shotproof.core.errors import InputError, MissingExtra
from shotproof.models.backbone import backbones

NAME = "resnet18"


class SmallNet(nn.Module):
    """As models of timm: features before the pool, and the head without a classifier."""

    num_features = 8
    pretrained_cfg = {  # noqa: RUF012 - as timm has it
        "input_size": (3, 32, 32),
        "crop_pct": 0.875,
        "interpolation": "bilinear",
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
        "hf_hub_id": "timm/no-such-model",
    }

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, 8, 1)

    def forward_features(self, items: torch.Tensor) -> torch.Tensor:
        return self.body(items)

    def forward_head(self, maps: torch.Tensor, pre_logits: bool) -> torch.Tensor:
        assert pre_logits
        return maps.mean(dim=(2, 3))


@pytest.fixture(autouse=True)
def timm(monkeypatch: pytest.MonkeyPatch) -> Any:
    if importlib.util.find_spec("timm"):
        import timm

        return timm
    stand_in: Any = ModuleType("timm")

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        if name != NAME:
            raise RuntimeError(f"Unknown model ({name})")
        assert (pretrained, num_classes) == (False, 0)
        return SmallNet()

    stand_in.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", stand_in)
    return stand_in


def saved(timm: Any, path: Path) -> nn.Module:
    model: nn.Module = timm.create_model(NAME, pretrained=False, num_classes=0)
    save_file({**model.state_dict(), "fc.weight": torch.zeros(10, 8)}, path)
    return model.eval()


def test_it_is_timms_model_with_the_weights_of_the_file(timm: Any, tmp_path: Path) -> None:
    model = saved(timm, tmp_path / "model.safetensors")
    backbone = backbones.make(f"timm:{NAME}(weights='{tmp_path / 'model.safetensors'}')")
    preprocessing = backbone.preprocessing("image")
    told: Any = model.pretrained_cfg
    assert preprocessing.shape == tuple(told["input_size"])
    assert preprocessing.to_meta()["stored"] == int(told["input_size"][-1] / told["crop_pct"])
    network = backbone.build((3, 64, 64)).eval()
    items = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        maps: Any = model.forward_features(items)
        torch.testing.assert_close(network.maps(items), maps)
        torch.testing.assert_close(network.vectors(items), model.forward_head(maps, pre_logits=True))
    assert (network.map_shape, network.dim) == (maps.shape[1:], model.num_features)
    network.train()(items).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_what_is_not_there_is_told(timm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="timm has no model 'no-such'"):
        backbones.make("timm:no-such").preprocessing("image")
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"lack \d+ tensors of model 'resnet18', e\.g\. "):
        backbones.make(f"timm:{NAME}(weights='{tmp_path / 'other.safetensors'}')").build((3, 64, 64))
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="cannot read weights"):
        backbones.make(f"timm:{NAME}(weights='{tmp_path / 'broken.safetensors'}')").build((3, 64, 64))
    with pytest.raises(InputError, match=r"neither a folder nor .*cache.*hub=True"):
        backbones.make(f"timm:{NAME}").build((3, 64, 64))
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtra, match=r"backbone 'timm' needs .*pip install shotproof\[timm\]"):
        backbones.make(f"timm:{NAME}").build((3, 64, 64))
