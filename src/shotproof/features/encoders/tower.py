"""Towers of transformers' models: loading one tower of a model, its digest, and pooling of its output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from shotproof.core.clients.hugging_face import load_part
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    import torch

POOLINGS = ("auto", "cls", "mean", "pooler")
CLASS_TOKENS = {"cls_token", "class_embedding"}  # names of these parameters in transformers' models
EXTRA_TOKENS = CLASS_TOKENS | {"distillation_token", "register_tokens"}
# Models that are large apart from the tower: the names of its settings and of its weights.
LARGE_MODELS = {"qwen2_audio": ("audio_config", "audio_tower")}
TRAINING_ONLY = {"masked_spec_embed"}  # weights that a checkpoint may lack, because evaluation does not use them


def load_tower(model: str, part: str, inputs: Collection[str], item_kind: str, *, hub: bool) -> Any:
    """Load a model in float32 and evaluation mode, or only its tower `part`, which takes one of `inputs`."""
    settings = {"use_safetensors": True, "output_loading_info": True, **_tower_settings(model, hub)}
    network, report = load_part("AutoModel", model, hub=hub, **settings)
    if getattr(network.config, "is_encoder_decoder", False):
        part = "encoder"  # the decoder generates texts
    tower = getattr(network, part, network)
    if getattr(tower, "main_input_name", "") not in inputs:
        raise InputError(f"model '{model}' is a {type(network).__name__}, which does not take {item_kind}")
    prefix = f"{part}." if tower is not network else ""
    missing = {key.removeprefix(prefix) for key in report["missing_keys"] if key.startswith(prefix)}
    if any(key.startswith("pooler.") for key in missing):
        tower.pooler = None  # classifiers' checkpoints lack it, and a pooler with random weights is useless
    lacking = sorted(key for key in missing - TRAINING_ONLY if not key.startswith("pooler."))
    if lacking:
        raise InputError(f"model '{model}' lacks {len(lacking)} of its weights, e.g. {lacking[0]}")
    return tower.float().eval()


def _tower_settings(model: str, hub: bool) -> dict[str, Any]:
    """Return the settings to load only the tower of a model whose other parts are large; none for other models."""
    config = load_part("AutoConfig", model, hub=hub)
    if config.model_type not in LARGE_MODELS:
        return {}
    settings, tower = LARGE_MODELS[config.model_type]
    return {"config": getattr(config, settings), "key_mapping": {rf"^(model\.)?{tower}\.": ""}}


def tower_digest(tower: Any, preprocessing: str) -> str:
    """Compute a digest of the weights, the settings and the preprocessing, which does not depend on the location."""
    hasher = hashlib.sha256(f"{type(tower).__name__};{preprocessing}".encode())
    config = tower.config.to_dict()
    settings = {key: config[key] for key in config if key not in ("_name_or_path", "transformers_version")}
    hasher.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, tensor in sorted(tower.state_dict().items()):
        if name not in TRAINING_ONLY:  # random if the checkpoint lacks them
            hasher.update(f"{name}:{list(tensor.shape)};".encode())
            hasher.update(tensor.cpu().contiguous().numpy().data)
    return hasher.hexdigest()


def pool_output(tower: Any, output: Any, pooling: str, model: str) -> torch.Tensor:
    """Pool the output of a tower to one vector per item, [b, d].

    `pooler` is the model's own pooler, `cls` the class token, `mean` the mean over the map or over the tokens of parts
    of the item; `auto` is the first of these three that the model has.
    """
    pooler_output: torch.Tensor | None = output.get("pooler_output")
    if pooling in ("auto", "pooler") and pooler_output is not None:
        return pooler_output.flatten(1)
    return _pool_hidden(tower, output.last_hidden_state, pooling, model)


def pool_stages(tower: Any, output: Any, pooling: str, model: str) -> list[torch.Tensor]:
    """Pool the output of each block, from an output with hidden states, to one vector per item, [b, d] each.

    The last one is after the final norm, if there is one. `auto` is the class token, or the mean without one: blocks
    have no pooler.
    """
    if pooling == "pooler":
        raise InputError(f"model '{model}': its stages have no pooler: expected pooling 'auto', 'cls' or 'mean'")
    # The first hidden state is the input of the blocks.
    hidden_states = [*output.hidden_states[1:-1], output.last_hidden_state]
    return [_pool_hidden(tower, hidden, pooling, model) for hidden in hidden_states]


def _pool_hidden(tower: Any, hidden: torch.Tensor, pooling: str, model: str) -> torch.Tensor:
    """Pool tokens [b, t, d] or a map [b, d, height, width] to one vector per item, [b, d]."""
    tokens = {name.rpartition(".")[2]: tensor for name, tensor in tower.named_parameters()}
    has_class_token = hidden.ndim == 3 and not tokens.keys().isdisjoint(CLASS_TOKENS)
    if pooling in ("auto", "cls") and has_class_token:
        return hidden[:, 0]
    if pooling in ("auto", "mean"):
        return _mean(hidden, _count_extra_tokens(tokens))
    raise InputError(f"model '{model}' does not support pooling '{pooling}': try pooling 'auto'")


def local_map(tower: Any, hidden: torch.Tensor, image: torch.Size, model: str) -> torch.Tensor:
    """Return a map unchanged, or arrange the patch tokens of [b, t, d] as in an image of this size, [b, d, h, w]."""
    if hidden.ndim == 4:
        return hidden
    tokens = {name.rpartition(".")[2]: tensor for name, tensor in tower.named_parameters()}
    patches = hidden[:, _count_extra_tokens(tokens) :].mT
    patch = getattr(tower.config, "patch_size", None)
    height, width = (side // patch for side in image) if isinstance(patch, int) else (0, 0)
    if height * width != patches.shape[-1]:
        raise InputError(
            f"model '{model}' has no local maps: its {patches.shape[-1]} tokens are not the patches of an image of "
            f"{list(image)} pixels"
        )
    return patches.reshape(*patches.shape[:2], height, width)


def _count_extra_tokens(tokens: Mapping[str, torch.Tensor]) -> int:
    """Count the tokens, by their parameters, that do not belong to a part of the item."""
    return sum(_count_tokens(tokens[name]) for name in EXTRA_TOKENS & tokens.keys())


def _count_tokens(parameter: torch.Tensor) -> int:
    """Count the tokens in a parameter [d] or [1, n, d]."""
    return 1 if parameter.ndim == 1 else parameter.shape[-2]


def _mean(hidden: torch.Tensor, extra_tokens: int) -> torch.Tensor:
    """Average a map [b, d, height, width], or the tokens of [b, t, d] after the extra ones, to [b, d]."""
    return hidden.mean(dim=(2, 3)) if hidden.ndim == 4 else hidden[:, extra_tokens:].mean(dim=1)
