"""eTT of all tasks at once against plain PyTorch, task by task on modules that are written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.learners.adaptation.ett import Ett, PrefixedTransformer
from tests.features.encoders.test_hf import SQUARE, VISION, saved
from tests.learners.adaptation.test_adaptation import close, made, model_for, scores_of, tasks_for
from tests.learners.adaptation.test_with_steps import cosines
from tests.small_networks import WAY, pretrained_model

STEPS, WIDTH, HEADS = 3, 16, 2
pytestmark = pytest.mark.usefixtures("quiet_transformers")


class Adapters(nn.Module):
    """What one task tunes, with the tiny transformer's only block written out."""

    def __init__(self, tower: Any, start: dict[str, Tensor], task: int) -> None:
        super().__init__()
        given = {name: each[task].clone() for name, each in start.items()}
        self.block, self.tower = [tower.layers[0]], [tower]  # lists: their weights are not tuned
        self.classes, self.offsets = nn.Parameter(given["classes"]), nn.Parameter(given["offsets"])
        self.features = nn.Parameter(given["features"])
        self.first, self.second = nn.Linear(WIDTH, WIDTH // 2), nn.Linear(WIDTH // 2, 2 * WIDTH)
        self.projection = nn.Linear(WIDTH, 64)
        for name in ("first", "second", "projection"):
            layer = getattr(self, name)
            layer.weight = nn.Parameter(given[f"{name}.weight"])
            layer.bias = nn.Parameter(given[f"{name}.bias"][0])

    def forward(self, items: Tensor) -> Tensor:
        tower, block = self.tower[0], self.block[0]
        tokens = tower.embeddings(items)
        tokens = tokens + self.attention(block.attention, block.layernorm_before(tokens)) + self.offsets[0, 0]
        tokens = tokens + block.mlp(block.layernorm_after(tokens)) + self.offsets[0, 1]
        return tower.pooler(tower.layernorm(tokens)) @ self.features.T

    def attention(self, own: Any, tokens: Tensor) -> Tensor:
        prefix = self.second(torch.tanh(self.first(self.classes))).view(WAY, 2, WIDTH)
        keys = torch.cat([prefix[:, 0].expand(len(tokens), -1, -1), own.k_proj(tokens)], 1)
        values = torch.cat([prefix[:, 1].expand(len(tokens), -1, -1), own.v_proj(tokens)], 1)
        size, outputs = WIDTH // HEADS, []
        for head in range(HEADS):
            columns = slice(head * size, (head + 1) * size)
            weights = own.q_proj(tokens)[..., columns] @ keys[..., columns].mT / size**0.5
            outputs.append(weights.softmax(-1) @ values[..., columns])
        return own.o_proj(torch.cat(outputs, -1))


def first_classes(tower: Any, support: Tensor, target: Tensor) -> Tensor:
    """The mean patch of each class, each patch by the attention of the class token."""
    tower.set_attn_implementation("eager")
    weights = tower(pixel_values=support, output_attentions=True).attentions[-1][:, :, 0, 1:]
    shares = weights / weights.sum(-1, keepdim=True)
    patches = (shares.mean(1)[..., None] * tower.embeddings(support)[:, 1:]).sum(1)
    return target.T @ patches / target.sum(0)[:, None]


def test_ett_is_adamw_on_what_is_beside_the_transformer_of_each_task() -> None:
    tasks, expected, net = tasks_for("ett"), [], model_for("ett").network().requires_grad_(False)
    tower: Any = net.backbone.tower
    starts = torch.stack([first_classes(tower, tasks.support[task], tasks.target[task]) for task in range(2)])
    drawn = Ett._initial_weights(starts, 1, WIDTH, tasks.seeds)
    for task in range(2):
        own, target, initial = Adapters(tower, drawn, task), tasks.target[task], starts[task]
        rest = [each for name, each in own.named_parameters() if name != "features"]
        groups: list[dict[str, Any]] = [{"params": [own.features], "lr": 0.02}, {"params": rest, "lr": 0.01}]
        optimizer, center = torch.optim.AdamW(groups, eps=1e-4), torch.zeros(64)
        for _ in range(STEPS):
            vectors = own(tasks.support[task])
            loss = functional.cross_entropy(cosines(vectors, target, vectors), tasks.labels[task])
            teacher = own.projection(functional.normalize(initial, dim=1)).detach()
            teacher = ((teacher - center) / 0.04).softmax(1)
            student = own.projection(functional.normalize(own.classes, dim=1)) / 0.1
            loss = loss + 0.1 * functional.cross_entropy(student, teacher)
            center = 0.9 * center + 0.1 * teacher.mean(0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        expected.append(cosines(own(tasks.support[task]), target, own(tasks.query[task])).detach())
    close(scores_of(made("ett", STEPS, rate=0.02), tasks), torch.stack(expected))


def test_layers_are_drawn_as_those_of_a_linear_one() -> None:
    own = Ett._initial_weights(torch.zeros(2, WAY, 64), 3, 8, torch.tensor([5, 6]))
    for name, inputs in (("first", 64), ("second", 32), ("projection", 64)):
        for part in ("weight", "bias"):
            values = own[f"{name}.{part}"] * inputs**0.5
            assert 0.8 < values.abs().max() <= 1
            assert not torch.equal(values[0], values[1])
    assert own["second.weight"].shape == (2, 3 * 2 * 64, 32)
    assert not own["offsets"].any()
    assert torch.equal(own["features"][1], torch.eye(8))


@pytest.mark.parametrize("kind", ["registers", "clip", "siglip"])
def test_other_vision_transformers_are_adapted_and_left_as_they_were(kind: str, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    model, tasks = pretrained_model(f"hf:{tmp_path}"), tasks_for("ett")
    net, method = model.network(), made("ett")
    method.require_model(model)
    with torch.no_grad():
        before = net(tasks.query)
        transformer = PrefixedTransformer(net, kind)
        nothing = torch.zeros(1, 2, 0, WIDTH), torch.zeros(1, 2, WIDTH)
        with transformer.prefixed(*nothing):
            close(net(tasks.query), before)
        with transformer.prefixed(nothing[0], torch.full((1, 2, WIDTH), 0.1).cumsum(-1)):
            assert not torch.allclose(net(tasks.query), before, atol=1e-3)
        scores = method.adapted_scores(model, net, tasks)
        assert torch.equal(net(tasks.query), before)
    assert scores.isfinite().all()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


@pytest.mark.parametrize("kind", ["convnext", "beit"])
def test_networks_of_transformers_that_are_no_plain_vision_transformers_are_refused(kind: str, tmp_path: Path) -> None:
    if kind == "beit":  # its attention has a bias for each pair of positions
        parts: Any = transformers
        parts.BeitModel(parts.BeitConfig(**VISION, use_relative_position_bias=True)).save_pretrained(tmp_path)
        parts.ViTImageProcessorPil(size=SQUARE).save_pretrained(tmp_path)
    else:
        saved(kind, tmp_path)
    with pytest.raises(Mismatch, match=rf"method 'ett\(steps=2\)': backbone 'hf:{tmp_path.name}' is not a plain"):
        made("ett").require_model(pretrained_model(f"hf:{tmp_path}"))


def test_networks_of_convolutions_are_refused() -> None:
    with pytest.raises(Mismatch, match=r"method 'ett\(steps=2\)': backbone 'conv64f\(.*\)' is not a plain"):
        made("ett").require_model(model_for("finetune"))
