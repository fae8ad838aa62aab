"""What encoders by transformers' models share: loading one tower of a model, its digest, and pooling its output."""

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
CLASS_TOKENS = {"cls_token", "class_embedding"}  # as transformers' models name these parameters
EXTRA_TOKENS = CLASS_TOKENS | {"distillation_token", "register_tokens"}
LARGE_BESIDE = {"qwen2_audio": ("audio_config", "audio_tower")}  # where the settings and the weights of the tower are
TRAINING_ONLY = {"masked_spec_embed"}  # weights that a checkpoint may lack: they have no say in evaluation


def load_tower(model: str, part: str, inputs: Collection[str], what: str, *, hub: bool) -> Any:
    """The model, in float32 and evaluation mode; of one with several towers `part`, which takes one of `inputs`."""
    settings = {"use_safetensors": True, "output_loading_info": True, **_tower_alone(model, hub)}
    whole, report = load_part("AutoModel", model, hub=hub, **settings)
    if getattr(whole.config, "is_encoder_decoder", False):
        part = "encoder"  # its decoder makes texts
    tower = getattr(whole, part, whole)
    if getattr(tower, "main_input_name", "") not in inputs:
        raise InputError(f"model '{model}' is a {type(whole).__name__}, which does not take {what}")
    prefix = f"{part}." if tower is not whole else ""
    missing = {key.removeprefix(prefix) for key in report["missing_keys"] if key.startswith(prefix)}
    if any(key.startswith("pooler.") for key in missing):
        tower.pooler = None  # checkpoints of classifiers lack it; random weights are no pooler
    lost = sorted(key for key in missing - TRAINING_ONLY if not key.startswith("pooler."))
    if lost:
        raise InputError(f"model '{model}' lacks {len(lost)} of its weights, e.g. {lost[0]}")
    return tower.float().eval()


def _tower_alone(model: str, hub: bool) -> dict[str, Any]:
    """How the tower alone is loaded of a model whose other parts are large; nothing for all others."""
    config = load_part("AutoConfig", model, hub=hub)
    if config.model_type not in LARGE_BESIDE:
        return {}
    settings, tower = LARGE_BESIDE[config.model_type]
    return {"config": getattr(config, settings), "key_mapping": {rf"^(model\.)?{tower}\.": ""}}


def tower_digest(tower: Any, preprocessing: str) -> str:
    """Return a digest of the weights, the settings and the preprocessing: the same model elsewhere has the same."""
    hasher = hashlib.sha256(f"{type(tower).__name__};{preprocessing}".encode())
    config = tower.config.to_dict()
    settings = {key: config[key] for key in config if key not in ("_name_or_path", "transformers_version")}
    hasher.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, tensor in sorted(tower.state_dict().items()):
        if name not in TRAINING_ONLY:  # they are random where the checkpoint lacks them
            hasher.update(f"{name}:{list(tensor.shape)};".encode())
            hasher.update(tensor.cpu().contiguous().numpy().data)
    return hasher.hexdigest()


def pooled(tower: Any, output: Any, pooling: str, model: str) -> torch.Tensor:
    """What a tower gave as one vector per item, [b, d].

    `pooler` is the model's own, `cls` the class token, `mean` the mean over the map or over the tokens that stand for
    a part of the item; `auto` is the first of these three that the model has.
    """
    own: torch.Tensor | None = output.get("pooler_output")
    if pooling in ("auto", "pooler") and own is not None:
        return own.flatten(1)
    return _pooled_hidden(tower, output.last_hidden_state, pooling, model)


def pooled_stages(tower: Any, output: Any, pooling: str, model: str) -> list[torch.Tensor]:
    """Return the output of each block, given by a call with its hidden states, as one vector per item, [b, d] each.

    The last one is after the final norm, if there is one. `auto` is the class token, or the mean without one: blocks
    have no pooler.
    """
    if pooling == "pooler":
        raise InputError(f"model '{model}': its stages have no pooler: expected pooling 'auto', 'cls' or 'mean'")
    # The first hidden state is the embedding of the patches, or of time.
    hidden = [*output.hidden_states[1:-1], output.last_hidden_state]
    return [_pooled_hidden(tower, one, pooling, model) for one in hidden]


def _pooled_hidden(tower: Any, hidden: torch.Tensor, pooling: str, model: str) -> torch.Tensor:
    """Tokens [b, t, d] or a map [b, d, height, width] as one vector per item, [b, d]."""
    tokens = {name.rpartition(".")[2]: tensor for name, tensor in tower.named_parameters()}
    has_class_token = hidden.ndim == 3 and not tokens.keys().isdisjoint(CLASS_TOKENS)
    if pooling in ("auto", "cls") and has_class_token:
        return hidden[:, 0]
    if pooling in ("auto", "mean"):
        return _mean(hidden, _extra_tokens(tokens))
    raise InputError(f"model '{model}' has nothing for pooling '{pooling}': try pooling 'auto'")


def local_map(tower: Any, hidden: torch.Tensor, image: torch.Size, model: str) -> torch.Tensor:
    """Return a map as it is, or the patch tokens of [b, t, d] where they lie in an image of this size, [b, d, h, w]."""
    if hidden.ndim == 4:
        return hidden
    tokens = {name.rpartition(".")[2]: tensor for name, tensor in tower.named_parameters()}
    patches = hidden[:, _extra_tokens(tokens) :].mT
    patch = getattr(tower.config, "patch_size", None)
    height, width = (side // patch for side in image) if isinstance(patch, int) else (0, 0)
    if height * width != patches.shape[-1]:
        raise InputError(
            f"model '{model}' gives {patches.shape[-1]} tokens, which are not the patches of {list(image)} pixels: "
            "it has no local maps"
        )
    return patches.reshape(*patches.shape[:2], height, width)


def _extra_tokens(tokens: Mapping[str, torch.Tensor]) -> int:
    """How many tokens, by their parameters, stand for no part of the item."""
    return sum(_count(tokens[name]) for name in EXTRA_TOKENS & tokens.keys())


def _count(token: torch.Tensor) -> int:
    """How many tokens a parameter [d] or [1, n, d] holds."""
    return 1 if token.ndim == 1 else token.shape[-2]


def _mean(hidden: torch.Tensor, extra_tokens: int) -> torch.Tensor:
    """The mean over a map [b, d, height, width], or over the tokens of [b, t, d] after the extra ones, [b, d]."""
    return hidden.mean(dim=(2, 3)) if hidden.ndim == 4 else hidden[:, extra_tokens:].mean(dim=1)
