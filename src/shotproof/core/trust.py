"""Trust: which code may run, which servers may be contacted and which files may be read.

Names that a user types, as an argument of a command or a public function, and objects that a user passes are trusted.
Names in a file are not, unless the user agrees. Nothing is trusted by default: every new command or function must ask.
The check happens when a component is built from its spelling, not when a file is read, so no spelling can bypass it.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.runtime.shared_state import share_state
from shotproof.core.storage.places import absolute

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_TYPED = 1000  # entries of a list
Trust = bool | Collection[str]
"""Everything, nothing, or the descriptions in `NotTrusted.description`."""


@dataclass(frozen=True)
class Reach:
    """Access of a component to something outside of its data.

    description: what it does, e.g. `method 'heads.py:head' runs the code of heads.py`
    named: the text that names it, e.g. a path or an address, which is trusted if the user has typed it
    file: the file that it reads, or None for other access
    is_data: whether an experiment file may name it without consent, as it names its data
    is_installed: whether it is the code of an installed package, which the record of a file may name
    """

    description: str
    named: str = ""
    file: Path | None = None
    is_data: bool = False
    is_installed: bool = False


@dataclass(frozen=True)
class _Granted:
    """Access that is allowed at the moment.

    agreed: what the user has agreed to
    typed: texts that the user has typed for the running call
    folders: folders whose files may be read
    data: whether data may be anywhere: an experiment file may choose its data, a record may not
    installed: whether installed packages may be named: a record names what was used, an experiment file chooses it
    code: allowed digests of code in files, if a record has them
    """

    agreed: Trust = False
    typed: frozenset[str] = frozenset()
    folders: tuple[Path, ...] = ()
    data: bool = False
    installed: bool = True
    code: frozenset[str] = frozenset()

    def allows(self, reach: Reach, spelling: str) -> bool:
        if self.agreed is True or (self.agreed and reach.description in self.agreed):
            return True
        if any(self._is_typed(text) for text in (spelling, reach.named) if text):
            return True
        if (reach.is_data and self.data) or (reach.is_installed and self.installed):
            return True
        return reach.file is not None and any(_is_below(reach.file, folder) for folder in self.folders)

    def _is_typed(self, text: str) -> bool:
        """Return whether the user has typed this text, on its own or as an option of something else."""
        return any(text == typed or f"'{text}'" in typed or f'"{text}"' in typed for typed in self.typed)


_NOTHING = _Granted()
_granted: ContextVar[_Granted] = ContextVar("granted", default=_NOTHING)


class NotTrusted(InputError):
    """Code, server or file that a file names without the user's consent."""

    def __init__(self, description: str) -> None:
        super().__init__(f"{description}: pass --trust (in Python, trust=True) if you trust the author of this file")
        self.description = description


def require_trust(reach: Reach | str, spelling: str = "") -> None:
    """Raise NotTrusted unless this access is allowed.

    Args:
        reach: the access, or its description
        spelling: the text that names it, which is trusted if the user has typed it
    """
    reach = Reach(reach) if isinstance(reach, str) else reach
    if not _granted.get().allows(reach, spelling):
        raise NotTrusted(reach.description)


@contextlib.contextmanager
def trusting(trust: Trust) -> Iterator[None]:
    """Trust what the user agrees to in the block, in addition to what is trusted already.

    Example:
        >>> with no_trust(), trusting(["method 'a.py:f' runs the code of a.py"]):
        ...     require_trust("method 'b.py:f' runs the code of b.py")
        Traceback (most recent call last):
        ...
        shotproof.core.trust.NotTrusted: method 'b.py:f' runs the code of b.py: pass --trust (in Python, trust=True) ...
    """
    before = _granted.get()
    agreed = True in (trust, before.agreed) or {*(trust or ()), *(before.agreed or ())}  # type: ignore[misc]
    with _grant(replace(before, agreed=agreed)):
        yield


@contextlib.contextmanager
def no_trust() -> Iterator[None]:
    """Trust nothing in the block, as at the start of the program."""
    with _grant(_NOTHING):
        yield


@contextlib.contextmanager
def reading_below(*folders: Path) -> Iterator[None]:
    """Allow reading files below these folders in the block; a symbolic link that leads out is not below."""
    with _grant(replace(_granted.get(), folders=folders)):
        yield


@contextlib.contextmanager
def named_by_experiment() -> Iterator[None]:
    """Allow data anywhere in the block, and require consent for installed packages."""
    with _grant(replace(_granted.get(), data=True, installed=False)):
        yield


@contextlib.contextmanager
def asking_for_packages(asking: bool) -> Iterator[None]:
    """Require consent for installed packages in the block, including those that a named model needs."""
    with _grant(replace(_granted.get(), installed=not asking)):
        yield


@contextlib.contextmanager
def recorded_code(digests: Collection[str]) -> Iterator[None]:
    """Require code in files to match one of the recorded digests in the block, if there are any."""
    with _grant(replace(_granted.get(), code=frozenset(digests))):
        yield


def require_recorded_code(digest: str, component: str) -> None:
    """Raise Mismatch if code differs from the recorded code.

    Args:
        digest: the digest of the code
        component: the component, e.g. `method 'heads.py:head'`
    """
    if digest not in (_granted.get().code or {digest}):
        raise Mismatch(f"{component}: its code has changed since these results were computed: evaluate it again")


def typed_by_user(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a command or public function: texts among its arguments are trusted while it runs.

    Internal code calls the function without this wrapper, so text that it passes on from a file stays untrusted.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        with _grant(_Granted(typed=_granted.get().typed.union(_iterate_texts((*args, *kwargs.values()))))):
            return function(*args, **kwargs)

    return wrapper


def agreed_by_typing(load: Callable[[], object]) -> list[str]:
    """Load a component as typed by the user, and return the consents it needs, for a later `trusting`."""
    agreed: list[str] = []
    while True:
        try:
            with _grant(_Granted(agreed)):
                load()
        except NotTrusted as error:
            agreed.append(error.description)
        else:
            return agreed


@contextlib.contextmanager
def _grant(granted: _Granted) -> Iterator[None]:
    token = _granted.set(granted)
    try:
        yield
    finally:
        _granted.reset(token)


def table_text(table: Mapping[str, Any]) -> str:
    """Write a table with a component's name and options as text, the same text for equal tables.

    A value that cannot be written gives an empty text, which no user has typed.
    """
    try:
        return json.dumps(table, sort_keys=True, default=lambda value: str(value) if isinstance(value, Path) else "")
    except (TypeError, ValueError, RecursionError):
        return ""


def _iterate_texts(value: Any) -> Iterator[str]:
    """Yield the texts, paths and tables in a call's arguments; long lists are skipped as data."""
    if isinstance(value, str | Path):
        yield str(value).strip()
    elif isinstance(value, Mapping) and "name" in value:
        yield table_text(value)
    if isinstance(value, Mapping | list | tuple | set | frozenset) and len(value) <= LONGEST_TYPED:
        for element in value.values() if isinstance(value, Mapping) else value:
            yield from _iterate_texts(element)


def _is_below(file: Path, folder: Path) -> bool:
    return ".." not in absolute(file).parts and absolute(file).is_relative_to(absolute(folder))


def _restore(granted: _Granted) -> None:
    _granted.set(granted)


share_state("trust", _granted.get, _restore)
