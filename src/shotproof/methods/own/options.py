"""Options of somebody's own class or function: checked by its signature, before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from shotproof.core.errors import InputError, did_you_mean

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def check_options(name: str, call: Callable[..., Any], options: Mapping[str, Any], data: int = 0) -> None:
    """Refuse options that a class or function does not have, or lacks.

    Args:
        name: what the user called it, for messages
        call: the class or function
        options: values by option
        data: how many of its first parameters are no options

    Raises:
        InputError: an option is unknown, with the nearest one, or missing.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())[data:]
    except (TypeError, ValueError):
        return  # of compiled code, which says nothing of its parameters
    known = {each.name: each for each in parameters if each.kind in _BY_NAME}
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    for key in options:
        if key not in known and not takes_any:
            raise InputError(f"method '{name}' has no option '{key}'{did_you_mean(key, known)}")
    missing = [key for key, each in known.items() if each.default is each.empty and key not in options]
    if missing:
        example = ", ".join(f"{key}=..." for key in missing)
        raise InputError(f"method '{name}' needs {', '.join(missing)}: e.g. {name}({example})")
