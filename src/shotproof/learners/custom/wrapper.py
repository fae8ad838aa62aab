"""Somebody's own object as a method: what functions, episodic classifiers and estimators have in common."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Option
from shotproof.core.runtime.devices import one_thread_per_operation
from shotproof.learners.method import Method

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, eq=False)
class Wrapper(Method):
    """A classifier that is asked for one task after another, each in one thread.

    Its options are the classifier's own. Two that were made from one spelling are equal; others are where they wrap the
    same object.
    """

    classifier: Any

    in_order = True

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """None that Shotproof knows of."""
        return ()

    @property
    def name(self) -> str:
        """Where its code is, or the name of the function or class."""
        return super().name if self.origin else getattr(self.classifier, "__name__", type(self.classifier).__name__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wrapper) or self.origin != other.origin:
            return False
        return self.origin is not None or self.classifier is other.classifier

    def __hash__(self) -> int:
        return hash(self.origin or id(self.classifier))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within it PyTorch, and where threadpoolctl is installed BLAS and OpenMP, compute in one thread.

    The operations of a few-shot task are so small that several threads spend their time waiting for each other.
    """
    with contextlib.ExitStack() as limits:
        limits.enter_context(one_thread_per_operation())
        with contextlib.suppress(ImportError):
            limits.enter_context(_thread_pools(len(sys.modules)).limit(limits=1))
        yield


@functools.lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Those of all libraries. To look for them takes milliseconds: it is done anew only where modules were imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
