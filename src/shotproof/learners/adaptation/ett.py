"""eTT: further keys and values for every attention of a vision transformer, and offsets, tuned on the support."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.core.options import option
from shotproof.functional import task_draws
from shotproof.learners.adaptation import descent
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

ATTENTION = "shotproof-prefixed"  # what transformers calls ours
BLOCK = re.compile(r".*\.\d+(?=\.)")  # of `layers.3.attention`, the block is `layers.3`
Attend = Callable[..., tuple[Tensor, None]]
PROJECTED = 64  # dimensions in which classes are held to where they began
TEMPERATURE, TEACHER_TEMPERATURE, MOMENTUM = 0.1, 0.04, 0.9
EPSILON = 1e-4  # of AdamW
CLASSES, OFFSETS, FEATURES = "classes", "offsets", "features"


@dataclass(frozen=True)
class AttentionLayer:
    """One attention of a transformer: its module, the block that it is in, and what gives its share of the sum."""

    attention: nn.Module
    block: nn.Module
    summand: nn.Module


class PrefixedTransformer:
    """The attention layers of a backbone of transformers, in their order, and how to change what they compute.

    width: the dimensions of a token
    heads: of each attention
    layers: all of them
    """

    def __init__(self, net: FewShotNetwork, named: str) -> None:
        """Look at the layers by one item of zeros.

        Args:
            net: whose backbone has a `tower` of transformers
            named: the backbone in messages

        Raises:
            Mismatch: the backbone is no plain vision transformer of transformers.
        """
        self.net, self.tower = net, getattr(net.backbone, "tower", None)
        calls: list[tuple[nn.Module, torch.Size]] = []
        plain = True

        def look(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **given: Any
        ) -> tuple[Tensor, None]:
            nonlocal plain
            calls.append((module, key.shape))
            plain = plain and mask is None and given.get("position_bias") is None
            return attention(query, key, value, given.get("scaling"))

        if self.tower is not None:
            with torch.no_grad(), _attention_by(self.tower, look):
                net.backbone.vectors(torch.zeros(1, *net.backbone.input_shape, device=next(net.parameters()).device))
        shapes = {shape for _, shape in calls}
        modules = {module: name for name, module in net.backbone.named_modules()}
        blocks = [BLOCK.match(modules[module]) for module, _ in calls]
        # One shape, of one item: no windows, no stages. No bias: further keys would have none.
        if len(shapes) != 1 or next(iter(shapes))[0] != 1 or not plain or not all(blocks):
            raise Mismatch(f"backbone '{named}' is no plain vision transformer of transformers (hf:NAME)")
        _, self.heads, _, size = shapes.pop()
        self.width = self.heads * size
        self.layers = []
        for (module, _), block in zip(calls, blocks, strict=True):
            assert block is not None
            within = net.backbone.get_submodule(block[0])
            # DINOv2 scales what attention gives before it is added.
            self.layers.append(AttentionLayer(module, within, getattr(within, "layer_scale1", module)))

    def patch_embeddings(self, items: Tensor) -> Tensor:
        """The mean of the patches of each item [..., channels, height, width] as they enter the blocks, [..., width].

        Where there is a class token, each patch counts by how much of the last attention that token gives to it.
        """
        batch, (height, width) = items.flatten(0, -4), self.net.backbone.map_shape[1:]
        seen: dict[str, Tensor] = {}

        def enter(module: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
            seen["patches"] = (args[0] if args else given["hidden_states"])[:, -height * width :]

        def attend(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **given: Any
        ) -> tuple[Tensor, None]:
            if module is self.layers[-1].attention and key.shape[2] > height * width:
                scale = given.get("scaling") or key.shape[-1] ** -0.5
                seen["shares"] = (scale * query[:, :, :1] @ key[:, :, -height * width :].mT).softmax(-1).mean(1)
            return attention(query, key, value, given.get("scaling"))

        hook = self.layers[0].block.register_forward_pre_hook(enter, with_kwargs=True)
        try:
            with _attention_by(self.tower, attend):
                self.net(batch)
        finally:
            hook.remove()
        patches = seen["patches"].float()
        means = (seen["shares"].float() @ patches)[:, 0] if "shares" in seen else patches.mean(1)
        return means.reshape(*items.shape[:-3], -1)

    @contextlib.contextmanager
    def changed(self, prefixes: Tensor, offsets: Tensor) -> Iterator[None]:
        """Within it, layers see further keys and values, and add vectors to all tokens after attention and after all.

        Args:
            prefixes: keys and values for each layer, [layers, 2, number, width]
            offsets: for each layer, after attention and at the end of the block, [layers, 2, width]
        """
        place = {layer.attention: index for index, layer in enumerate(self.layers)}

        def attend(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **given: Any
        ) -> tuple[Tensor, None]:
            own = prefixes[place[module]].to(key.dtype)
            heads = own.view(2, own.shape[1], self.heads, self.width // self.heads).transpose(
                1, 2
            )  # [2, heads, number, size]
            keys, values = (one.expand(len(key), *one.shape) for one in heads)
            return attention(query, torch.cat([keys, key], 2), torch.cat([values, value], 2), given.get("scaling"))

        hooks = []
        for layer, (first, last) in zip(self.layers, offsets, strict=True):
            hooks.append(layer.summand.register_forward_hook(_adds(first)))
            hooks.append(layer.block.register_forward_hook(_adds(last)))
        try:
            with _attention_by(self.tower, attend):
                yield
        finally:
            for hook in hooks:
                hook.remove()


def attention(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> tuple[Tensor, None]:
    """As transformers wants it: [n, heads, tokens, size] to [n, tokens, heads, size], and no weights."""
    given = functional.scaled_dot_product_attention(query, key, value, scale=scale)
    return given.transpose(1, 2).contiguous(), None


def _adds(offset: Tensor) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, given: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0] + offset.to(output[0].dtype), *output[1:])
        return output + offset.to(output.dtype)

    return hook


@contextlib.contextmanager
def _attention_by(tower: Any, attend: Attend) -> Iterator[None]:
    """Within it, all attention of a model of transformers that can be replaced is computed by this function."""
    from transformers import AttentionInterface

    before = tower.config._attn_implementation
    AttentionInterface.register(ATTENTION, attend)
    tower.config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        tower.config._attn_implementation = before


@dataclass(frozen=True)
class Ett(Adaptation):
    """Score: cosines with class means after steps of AdamW on prefixes and adapters alone.

    Each class has a vector, first the mean of its patches as they enter the first block, each patch by how much the
    class token attends to it in the last one. Two layers with a tanh between make of it one key and one value for every
    attention. Each block adds an offset, first zero, after attention and at its end; features go through a linear map,
    first the identity. The loss is the cross-entropy of the support under its own class means, logits are cosines
    times 10, and `pull` times a cross-entropy in the manner of DINO that holds the vectors of classes to where they
    began. The linear map learns at the `rate`, all else at half of it.
    """

    about = "prefixes and offsets in every block of a vision transformer, tuned on the support"
    paper = "Xu et al., Exploring Efficient Few-shot Adaptation for Vision Transformers, 2022"
    example = "ett(rate=0.0005)"
    rates = (5e-4, 1e-3, 5e-3)

    steps: int = option(40, "steps of AdamW", least=0)
    rate: float = option(1e-3, "learning rate of the map of features, twice that of all else", above=0)
    pull: float = option(0.1, "weight of what holds the vectors of classes to where they began", least=0)

    def require_model(self, model: Model) -> None:
        """Refuse networks other than vision transformers of transformers."""
        try:
            PrefixedTransformer(model.network(), str(model.backbone))
        except Mismatch as error:
            raise error.placed(f"method '{self.spelling}': ") from error

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The network's own weights stay."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        transformer, plain = PrefixedTransformer(net, str(model.backbone)), descent.vectors_of(net)
        layers, width = len(transformer.layers), transformer.width

        def call(own: Weights, items: Tensor) -> Tensor:
            hidden = _linear(own, "first", own[CLASSES]).tanh()
            prefixes = _linear(own, "second", hidden).view(-1, layers, 2, width)
            with transformer.changed(prefixes.permute(1, 2, 0, 3), own[OFFSETS]):
                return plain({}, items) @ own[FEATURES].T

        on_support = descent.support_loss(call)

        def loss(own: Weights, support: Tensor, target: Tensor, teacher: Tensor) -> Tensor:
            told = (_projected(own, own[CLASSES]) / TEMPERATURE).log_softmax(-1)
            return on_support(own, support, target) - self.pull * (teacher * told).sum(-1).mean()

        start, target = self._classes(transformer, tasks), tasks.target
        own = self._adapters(start, layers, net.backbone.dim, tasks.seeds)

        def inputs() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
            center = start.new_zeros(len(tasks), 1, PROJECTED)
            for _ in range(self.steps):
                teacher = ((_projected(own, start) - center) / TEACHER_TEMPERATURE).softmax(-1)
                yield tasks.support, target, teacher
                center = MOMENTUM * center + (1 - MOMENTUM) * teacher.mean(1, keepdim=True)

        others = [each for name, each in own.items() if name != FEATURES]
        groups = [{"params": [own[FEATURES]], "lr": self.rate}, {"params": others, "lr": self.rate / 2}]
        descent.descend(net, loss, own, torch.optim.AdamW(groups, eps=EPSILON), inputs())
        return descent.prototype_scores(net, call, own, tasks)

    @staticmethod
    def _classes(transformer: PrefixedTransformer, tasks: DecodedTasks) -> Tensor:
        """The mean patch of each class, [B, way, width]."""
        target = tasks.target
        return target.mT @ transformer.patch_embeddings(tasks.support) / target.sum(1).clamp(min=1)[..., None]

    @staticmethod
    def _adapters(classes: Tensor, layers: int, features: int, seeds: Tensor) -> Weights:
        """What each task tunes; layers are drawn by its seed as PyTorch draws those of a linear one."""
        tasks, _, width = classes.shape

        def drawn(number: int, outputs: int, inputs: int) -> Tensor:
            random = task_draws.uniform(task_draws.bits(*task_draws.entries(seeds, number, outputs, inputs)))
            return (2 * random - 1).to(classes.dtype)

        shapes = {"first": (width // 2, width), "second": (layers * 2 * width, width // 2)}
        shapes["projection"] = (PROJECTED, width)
        own = {CLASSES: classes.clone(), OFFSETS: classes.new_zeros(tasks, layers, 2, width)}
        for number, (name, (outputs, inputs)) in enumerate(shapes.items()):
            both = drawn(number, outputs, inputs + 1) / math.sqrt(inputs)
            own[f"{name}.weight"], own[f"{name}.bias"] = both[..., :-1].contiguous(), both[..., -1:].mT.contiguous()
        identity = torch.eye(features, device=classes.device, dtype=classes.dtype)
        own[FEATURES] = identity.expand(tasks, -1, -1).clone()
        return own


def _linear(own: Weights, name: str, rows: Tensor) -> Tensor:
    """A linear layer on rows [..., number, inputs], of one task or of many."""
    return rows @ own[f"{name}.weight"].mT + own[f"{name}.bias"]


def _projected(own: Weights, classes: Tensor) -> Tensor:
    return _linear(own, "projection", functional.normalize(classes, dim=-1))
