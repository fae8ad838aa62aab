"""Loading of model parts with transformers: from a folder or the local cache, and from the hub only if allowed."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, MissingExtra, first_line


def load_part(part: str, model: str, *, hub: bool, extra: str = "hf", **options: Any) -> Any:
    """Load a part of a model, given as a folder or a name. Code that comes with a model is never run.

    Args:
        part: the class of transformers that loads it, e.g. `AutoModel`
        model: a folder, or a name on the hub
        hub: whether it may be downloaded
        extra: the extra to name in the error if transformers is not installed
        options: options of `from_pretrained`
    """
    try:
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        raise MissingExtra(f"model '{model}'", extra) from error
    load_errors = (OSError, ValueError, KeyError, ImportError, RuntimeError, pickle.UnpicklingError, SafetensorError)
    try:
        with quiet():
            return getattr(transformers, part).from_pretrained(
                model, local_files_only=not hub, trust_remote_code=False, **options
            )
    except load_errors as error:
        if not hub and not Path(model).is_dir():
            raise missing_model_error(model) from error
        raise InputError(
            f"model '{model}': cannot load its {part.removeprefix('Auto')}: {first_line(error)}"
        ) from error


def require_model(model: str, *, hub: bool) -> None:
    """Raise InputError if a model would have to be downloaded and that is not allowed. Nothing is loaded."""
    if hub or Path(model).is_dir():
        return
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise MissingExtra(f"model '{model}'", "hf") from error
    try:
        is_cached = isinstance(try_to_load_from_cache(model, "config.json"), str)
    except ValueError:  # not a valid name on the hub
        is_cached = False
    if not is_cached:
        raise missing_model_error(model)


def missing_model_error(model: str) -> InputError:
    """Build the error for a model that is not available locally."""
    return InputError(
        f"model '{model}' is neither a folder nor in the local Hugging Face cache: "
        "give a folder, or allow the download from the hub with hub=True"
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the progress bars and hints of transformers in the block."""
    import transformers

    logger: Any = transformers.logging
    verbosity, bars = logger.get_verbosity(), logger.is_progress_bar_enabled()
    logger.set_verbosity_error()
    logger.disable_progress_bar()
    try:
        yield
    finally:
        logger.set_verbosity(verbosity)
        if bars:
            logger.enable_progress_bar()
