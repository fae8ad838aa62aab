"""eTT: prefix keys and values for every attention layer of a vision transformer, and offsets, tuned on the support."""

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

ATTENTION = "shotproof-prefixed"  # name that our attention function is registered by in transformers
BLOCK = re.compile(r".*\.\d+(?=\.)")  # the block of `layers.3.attention` is `layers.3`
Attend = Callable[..., tuple[Tensor, None]]
PROJECTED = 64  # dimensions of the projection in which class vectors are kept near their initial values
TEMPERATURE, TEACHER_TEMPERATURE, MOMENTUM = 0.1, 0.04, 0.9
EPSILON = 1e-4  # epsilon of AdamW
CLASSES, OFFSETS, FEATURES = "classes", "offsets", "features"


@dataclass(frozen=True)
class AttentionLayer:
    """Attention layer: its module, its block, and the module whose output is added to the residual stream."""

    attention: nn.Module
    block: nn.Module
    summand: nn.Module


class PrefixedTransformer:
    """Vision transformer of the transformers library, whose attention layers can be given prefixes and offsets.

    width: dimensions of a token
    heads: number of heads of each attention layer
    layers: attention layers, in order
    """

    def __init__(self, net: FewShotNetwork, backbone_name: str) -> None:
        """Find the attention layers by passing one item of zeros through the network.

        Args:
            net: network whose backbone has a `tower` of the transformers library
            backbone_name: name of the backbone in messages

        Raises:
            Mismatch: the backbone is not a plain vision transformer of the transformers library.
        """
        self.net, self.tower = net, getattr(net.backbone, "tower", None)
        attention_calls: list[tuple[nn.Module, torch.Size]] = []
        is_plain = True

        def record_call(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
        ) -> tuple[Tensor, None]:
            nonlocal is_plain
            attention_calls.append((module, key.shape))
            is_plain = is_plain and mask is None and options.get("position_bias") is None
            return attention(query, key, value, options.get("scaling"))

        if self.tower is not None:
            with torch.no_grad(), _attention_by(self.tower, record_call):
                net.backbone.vectors(torch.zeros(1, *net.backbone.input_shape, device=next(net.parameters()).device))
        shapes = {shape for _, shape in attention_calls}
        modules = {module: name for name, module in net.backbone.named_modules()}
        blocks = [BLOCK.match(modules[module]) for module, _ in attention_calls]
        # A single shape, with one item, excludes windows and stages. A position bias would lack values for prefixes.
        if len(shapes) != 1 or next(iter(shapes))[0] != 1 or not is_plain or not all(blocks):
            raise Mismatch(
                f"backbone '{backbone_name}' is not a plain vision transformer of the transformers library (hf:NAME)"
            )
        _, self.heads, _, size = shapes.pop()
        self.width = self.heads * size
        self.layers = []
        for (module, _), block in zip(attention_calls, blocks, strict=True):
            assert block is not None
            block_module = net.backbone.get_submodule(block[0])
            # DINOv2 scales the output of attention before adding it.
            self.layers.append(AttentionLayer(module, block_module, getattr(block_module, "layer_scale1", module)))

    def patch_embeddings(self, items: Tensor) -> Tensor:
        """Average the patch embeddings of each item [..., channels, height, width] at the first block: [..., width].

        If there is a class token, patches are weighted by its attention to them in the last layer.
        """
        batch, (height, width) = items.flatten(0, -4), self.net.backbone.map_shape[1:]
        recorded: dict[str, Tensor] = {}

        def enter(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
            recorded["patches"] = (args[0] if args else options["hidden_states"])[:, -height * width :]

        def attend(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
        ) -> tuple[Tensor, None]:
            if module is self.layers[-1].attention and key.shape[2] > height * width:
                scale = options.get("scaling") or key.shape[-1] ** -0.5
                recorded["shares"] = (scale * query[:, :, :1] @ key[:, :, -height * width :].mT).softmax(-1).mean(1)
            return attention(query, key, value, options.get("scaling"))

        hook = self.layers[0].block.register_forward_pre_hook(enter, with_kwargs=True)
        try:
            with _attention_by(self.tower, attend):
                self.net(batch)
        finally:
            hook.remove()
        patches = recorded["patches"].float()
        means = (recorded["shares"].float() @ patches)[:, 0] if "shares" in recorded else patches.mean(1)
        return means.reshape(*items.shape[:-3], -1)

    @contextlib.contextmanager
    def prefixed(self, prefixes: Tensor, offsets: Tensor) -> Iterator[None]:
        """Prepend keys and values to every attention layer, and add offsets to all tokens, while the context is active.

        Args:
            prefixes: keys and values for each layer, [layers, 2, number, width]
            offsets: vectors added in each layer after attention and at the end of the block, [layers, 2, width]
        """
        layer_index = {layer.attention: index for index, layer in enumerate(self.layers)}

        def attend(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
        ) -> tuple[Tensor, None]:
            prefix = prefixes[layer_index[module]].to(key.dtype)
            heads = prefix.view(2, prefix.shape[1], self.heads, self.width // self.heads).transpose(
                1, 2
            )  # [2, heads, number, size]
            keys, values = (by_head.expand(len(key), *by_head.shape) for by_head in heads)
            return attention(query, torch.cat([keys, key], 2), torch.cat([values, value], 2), options.get("scaling"))

        hooks = []
        for layer, (first, last) in zip(self.layers, offsets, strict=True):
            hooks.append(layer.summand.register_forward_hook(_add_offset(first)))
            hooks.append(layer.block.register_forward_hook(_add_offset(last)))
        try:
            with _attention_by(self.tower, attend):
                yield
        finally:
            for hook in hooks:
                hook.remove()


def attention(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> tuple[Tensor, None]:
    """Compute attention as transformers expects: [n, heads, tokens, size] to [n, tokens, heads, size], no weights."""
    attended = functional.scaled_dot_product_attention(query, key, value, scale=scale)
    return attended.transpose(1, 2).contiguous(), None


def _add_offset(offset: Tensor) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0] + offset.to(output[0].dtype), *output[1:])
        return output + offset.to(output.dtype)

    return hook


@contextlib.contextmanager
def _attention_by(tower: Any, attend: Attend) -> Iterator[None]:
    """Compute all replaceable attention of a transformers model by `attend` while the context is active."""
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

    Each class has a vector, initially the mean of its patch embeddings before the first block, weighted by the class
    token's attention in the last one. Two linear layers with a tanh between them map it to a key and a value for every
    attention layer. Each block adds an offset, initially zero, after attention and at its end; features pass through a
    linear map, initially the identity. The loss is the cross-entropy of the support by its own class means, with logits
    of 10 times cosines, plus `pull` times a DINO-style cross-entropy that keeps class vectors near their initial
    values. The linear map learns at `rate`, everything else at half of it.
    """

    about = "prefixes and offsets in every block of a vision transformer, tuned on the support set"
    paper = "Xu et al., Exploring Efficient Few-shot Adaptation for Vision Transformers, 2022"
    example = "ett(rate=0.0005)"
    rates = (5e-4, 1e-3, 5e-3)

    steps: int = option(40, "steps of AdamW", least=0)
    rate: float = option(1e-3, "learning rate of the linear map on features, twice that of everything else", above=0)
    pull: float = option(0.1, "weight of the loss that keeps class vectors near their initial values", least=0)

    def require_model(self, model: Model) -> None:
        """Raise Mismatch unless the backbone is a vision transformer of the transformers library."""
        try:
            PrefixedTransformer(model.network(), str(model.backbone))
        except Mismatch as error:
            raise error.with_prefix(f"method '{self.spelling}': ") from error

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Tune prefixes, offsets and the linear map only; the network's own weights stay as they are."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        transformer, embed = PrefixedTransformer(net, str(model.backbone)), descent.embedding_function(net)
        layers, width = len(transformer.layers), transformer.width

        def adapted_embed(weights: Weights, items: Tensor) -> Tensor:
            hidden = _linear(weights, "first", weights[CLASSES]).tanh()
            prefixes = _linear(weights, "second", hidden).view(-1, layers, 2, width)
            with transformer.prefixed(prefixes.permute(1, 2, 0, 3), weights[OFFSETS]):
                return embed({}, items) @ weights[FEATURES].T

        support_loss = descent.support_loss(adapted_embed)

        def loss(weights: Weights, support: Tensor, target: Tensor, teacher: Tensor) -> Tensor:
            log_probabilities = (_project(weights, weights[CLASSES]) / TEMPERATURE).log_softmax(-1)
            return support_loss(weights, support, target) - self.pull * (teacher * log_probabilities).sum(-1).mean()

        initial_classes, target = self._mean_patches(transformer, tasks), tasks.target
        weights = self._initial_weights(initial_classes, layers, net.backbone.dim, tasks.seeds)

        def inputs() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
            center = initial_classes.new_zeros(len(tasks), 1, PROJECTED)
            for _ in range(self.steps):
                teacher = ((_project(weights, initial_classes) - center) / TEACHER_TEMPERATURE).softmax(-1)
                yield tasks.support, target, teacher
                center = MOMENTUM * center + (1 - MOMENTUM) * teacher.mean(1, keepdim=True)

        other_weights = [weight for name, weight in weights.items() if name != FEATURES]
        groups = [{"params": [weights[FEATURES]], "lr": self.rate}, {"params": other_weights, "lr": self.rate / 2}]
        descent.descend(net, loss, weights, torch.optim.AdamW(groups, eps=EPSILON), inputs())
        return descent.prototype_scores(net, adapted_embed, weights, tasks)

    @staticmethod
    def _mean_patches(transformer: PrefixedTransformer, tasks: DecodedTasks) -> Tensor:
        """Return the mean patch embedding of each class, [B, way, width]."""
        target = tasks.target
        return target.mT @ transformer.patch_embeddings(tasks.support) / target.sum(1).clamp(min=1)[..., None]

    @staticmethod
    def _initial_weights(classes: Tensor, layers: int, features: int, seeds: Tensor) -> Weights:
        """Return the initial weights of each task; linear layers are drawn by its seed as PyTorch draws them."""
        tasks, _, width = classes.shape

        def draw(number: int, outputs: int, inputs: int) -> Tensor:
            random = task_draws.uniform(task_draws.bits(*task_draws.entries(seeds, number, outputs, inputs)))
            return (2 * random - 1).to(classes.dtype)

        shapes = {"first": (width // 2, width), "second": (layers * 2 * width, width // 2)}
        shapes["projection"] = (PROJECTED, width)
        weights = {CLASSES: classes.clone(), OFFSETS: classes.new_zeros(tasks, layers, 2, width)}
        for number, (name, (outputs, inputs)) in enumerate(shapes.items()):
            layer = draw(number, outputs, inputs + 1) / math.sqrt(inputs)
            weights[f"{name}.weight"], weights[f"{name}.bias"] = (
                layer[..., :-1].contiguous(),
                layer[..., -1:].mT.contiguous(),
            )
        identity = torch.eye(features, device=classes.device, dtype=classes.dtype)
        weights[FEATURES] = identity.expand(tasks, -1, -1).clone()
        return weights


def _linear(weights: Weights, name: str, rows: Tensor) -> Tensor:
    """Apply a linear layer to rows [..., number, inputs], of one task or of many."""
    return rows @ weights[f"{name}.weight"].mT + weights[f"{name}.bias"]


def _project(weights: Weights, classes: Tensor) -> Tensor:
    return _linear(weights, "projection", functional.normalize(classes, dim=-1))
