"""Whose code may run, which servers are asked, and which files are read.

What a user types, as an argument of a command or of a public function, or hands over as an object, is trusted. What a
file names is not, unless the user agrees to it. Nothing is trusted by default: a new command or function has to ask.
The question is asked where a component is made from its spelling, and not where a file is read: no spelling gets past
it.
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
from shotproof.core.runtime.carried import carry
from shotproof.core.storage.places import absolute

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_TYPED = 1000  # entries of a list
Trust = bool | Collection[str]
"""Everything, nothing, or what `NotTrusted.what` has named."""


@dataclass(frozen=True)
class Reach:
    """What a component touches beside the data that it is given.

    what: in words, e.g. `method 'heads.py:head' runs the code of heads.py`
    named: the text that names it, e.g. a path or an address, which is trusted if the user has typed it
    file: the file that it reads, or None if it does something else
    is_data: whether an experiment file may name it without consent, as it names its data
    is_installed: whether it is the code of an installed package, which the record of a file may name
    """

    what: str
    named: str = ""
    file: Path | None = None
    is_data: bool = False
    is_installed: bool = False


@dataclass(frozen=True)
class _Granted:
    """What may be reached at the moment.

    agreed: what the user has agreed to
    typed: texts that the user has typed for the call that is running
    folders: below which files may be read
    data: whether data may be named wherever it lies: an experiment file says what it is about, a record does not
    installed: whether installed packages may be named: a record tells what was used, an experiment file chooses it
    code: digests that code in files must have, if a record tells them
    """

    agreed: Trust = False
    typed: frozenset[str] = frozenset()
    folders: tuple[Path, ...] = ()
    data: bool = False
    installed: bool = True
    code: frozenset[str] = frozenset()

    def allows(self, reach: Reach, spelled: str) -> bool:
        if self.agreed is True or (self.agreed and reach.what in self.agreed):
            return True
        if any(self._is_typed(text) for text in (spelled, reach.named) if text):
            return True
        if (reach.is_data and self.data) or (reach.is_installed and self.installed):
            return True
        return reach.file is not None and any(_is_below(reach.file, folder) for folder in self.folders)

    def _is_typed(self, text: str) -> bool:
        """Return whether the user has typed this, by itself or as the option of something else."""
        return any(text == typed or f"'{text}'" in typed or f'"{text}"' in typed for typed in self.typed)


_NOTHING = _Granted()
_granted: ContextVar[_Granted] = ContextVar("granted", default=_NOTHING)


class NotTrusted(InputError):
    """A file names code, a server or another file, and nobody has agreed to it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: give --trust (in Python, trust=True) if you trust who wrote this file")
        self.what = what


def require_trust(reach: Reach | str, spelled: str = "") -> None:
    """Refuse, with NotTrusted, what is about to happen, unless it is trusted.

    Args:
        reach: what is about to happen
        spelled: the text that names it, which is trusted if the user has typed it
    """
    reach = Reach(reach) if isinstance(reach, str) else reach
    if not _granted.get().allows(reach, spelled):
        raise NotTrusted(reach.what)


@contextlib.contextmanager
def trusting(trust: Trust) -> Iterator[None]:
    """Within it, what the user agrees to is trusted, beside what was so before.

    Example:
        >>> with no_trust(), trusting(["method 'a.py:f' runs the code of a.py"]):
        ...     require_trust("method 'b.py:f' runs the code of b.py")
        Traceback (most recent call last):
        ...
        shotproof.core.trust.NotTrusted: method 'b.py:f' runs the code of b.py: give --trust (in Python, trust=True) ...
    """
    before = _granted.get()
    agreed = True in (trust, before.agreed) or {*(trust or ()), *(before.agreed or ())}  # type: ignore[misc]
    with _granting(replace(before, agreed=agreed)):
        yield


@contextlib.contextmanager
def no_trust() -> Iterator[None]:
    """Within it, nothing is trusted, as outside of everything."""
    with _granting(_NOTHING):
        yield


@contextlib.contextmanager
def reading_below(*folders: Path) -> Iterator[None]:
    """Within it, files below these folders may be read, whoever names them; links that lead out are not below."""
    with _granting(replace(_granted.get(), folders=folders)):
        yield


@contextlib.contextmanager
def named_by_experiment() -> Iterator[None]:
    """Within it, data may be named wherever it lies, and installed packages need consent."""
    with _granting(replace(_granted.get(), data=True, installed=False)):
        yield


@contextlib.contextmanager
def asking_for_packages(asking: bool) -> Iterator[None]:
    """Within it, installed packages need consent, also those that a model names which an experiment file names."""
    with _granting(replace(_granted.get(), installed=not asking)):
        yield


@contextlib.contextmanager
def recorded_code(digests: Collection[str]) -> Iterator[None]:
    """Within it, code in files must be the code that was recorded, if it was."""
    with _granting(replace(_granted.get(), code=frozenset(digests))):
        yield


def require_recorded_code(digest: str, what: str) -> None:
    """Refuse, with Mismatch, code that is not what was recorded.

    Args:
        digest: of the code
        what: names it, e.g. `method 'heads.py:head'`
    """
    if digest not in (_granted.get().code or {digest}):
        raise Mismatch(f"{what}: its code has changed since the results were made: evaluate it again")


def typed_by_user(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a command or public function: the texts among its arguments are trusted while it runs.

    Internal code calls the function itself, so what it passes on from a file stays untrusted.
    """

    @functools.wraps(function)
    def typed(*args: P.args, **kwargs: P.kwargs) -> T:
        with _granting(_Granted(typed=_granted.get().typed.union(_texts((*args, *kwargs.values()))))):
            return function(*args, **kwargs)

    return typed


def agreed_by_typing(load: Callable[[], object]) -> list[str]:
    """Load what a user has typed, and return what it needs agreement to, for `trusting` in another form of it."""
    agreed: list[str] = []
    while True:
        try:
            with _granting(_Granted(agreed)):
                load()
        except NotTrusted as refused:
            agreed.append(refused.what)
        else:
            return agreed


@contextlib.contextmanager
def _granting(granted: _Granted) -> Iterator[None]:
    token = _granted.set(granted)
    try:
        yield
    finally:
        _granted.reset(token)


def table_text(table: Mapping[str, Any]) -> str:
    """Write a component that is given as a table of its name and options as one text, the same for the same table.

    What is no table of options gives an empty text, which nobody has typed.
    """
    try:
        return json.dumps(table, sort_keys=True, default=lambda value: str(value) if isinstance(value, Path) else "")
    except (TypeError, ValueError, RecursionError):
        return ""


def _texts(value: Any) -> Iterator[str]:
    """Give the texts, paths and tables in a call's arguments; long lists are data, which nobody types."""
    if isinstance(value, str | Path):
        yield str(value).strip()
    elif isinstance(value, Mapping) and "name" in value:
        yield table_text(value)
    if isinstance(value, Mapping | list | tuple | set | frozenset) and len(value) <= LONGEST_TYPED:
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _is_below(file: Path, folder: Path) -> bool:
    return ".." not in absolute(file).parts and absolute(file).is_relative_to(absolute(folder))


def _restore(granted: _Granted) -> None:
    _granted.set(granted)


carry("trust", _granted.get, _restore)
