"""Loading parts of models by transformers: from a folder or the local cache, and from the hub only when asked."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, MissingExtra, first_line


def load_part(part: str, model: str, *, hub: bool, extra: str = "hf", **options: Any) -> Any:
    """A part of a model, given as a folder or a name. No code that comes with a model is run.

    Args:
        part: the class of transformers that loads it, e.g. `AutoModel`
        model: a folder, or a name on the hub
        hub: whether it may be downloaded
        extra: what to install where transformers is missing
        options: of `from_pretrained`
    """
    try:
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        raise MissingExtra(f"model '{model}'", extra) from error
    refusals = (OSError, ValueError, KeyError, ImportError, RuntimeError, pickle.UnpicklingError, SafetensorError)
    try:
        with quiet():
            return getattr(transformers, part).from_pretrained(
                model, local_files_only=not hub, trust_remote_code=False, **options
            )
    except refusals as error:
        if not hub and not Path(model).is_dir():
            raise missing_model_error(model) from error
        raise InputError(
            f"model '{model}': no {part.removeprefix('Auto')} can be loaded: {first_line(error)}"
        ) from error


def require_model(model: str, *, hub: bool) -> None:
    """Refuse a model that cannot be loaded without a download that was not allowed; quick, nothing is loaded."""
    if hub or Path(model).is_dir():
        return
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise MissingExtra(f"model '{model}'", "hf") from error
    try:
        here = isinstance(try_to_load_from_cache(model, "config.json"), str)
    except ValueError:  # no name that a model of the hub could have
        here = False
    if not here:
        raise missing_model_error(model)


def missing_model_error(model: str) -> InputError:
    """The error for a model that would have to be downloaded."""
    return InputError(
        f"model '{model}' is neither a folder nor in the local Hugging Face cache: "
        "give a folder, or allow the download from the hub with hub=True"
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing bars and from hints that are not for our users."""
    import transformers

    chatter: Any = transformers.logging
    verbosity, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        if bars:
            chatter.enable_progress_bar()
