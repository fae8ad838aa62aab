"""A vision transformer whose attention sees further keys and values, and whose blocks add vectors to their tokens."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch

if TYPE_CHECKING:
    from shotproof.models.network import FewShotNetwork

ATTENTION = "shotproof-prefixed"  # what transformers calls ours
BLOCK = re.compile(r".*\.\d+(?=\.)")  # of `layers.3.attention`, the block is `layers.3`
Attend = Callable[..., tuple[Tensor, None]]


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
