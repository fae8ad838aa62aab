"""Whose code may run: what a user types is trusted, what somebody else's file names only when the user says so.

The question is asked where code is loaded, and not where a file is read: no spelling gets past it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar

from shotproof.core.errors import InputError

Trust = bool | Collection[str]
"""Everything, nothing, or what `NotTrusted.what` has named."""

_trust: ContextVar[Trust] = ContextVar("trust", default=True)


class NotTrusted(InputError):
    """A file names code, or a server, that nobody has said to trust."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: give --trust (in Python, trust=True) if you trust who wrote this file")
        self.what = what


@contextlib.contextmanager
def trusting(trust: Trust) -> Iterator[None]:
    """Within it, only what is trusted is loaded.

    Example:
        >>> with trusting(["method 'a.py:f' runs the code of a.py"]):
        ...     require_trust("method 'b.py:f' runs the code of b.py")
        Traceback (most recent call last):
        ...
        shotproof.core.trust.NotTrusted: method 'b.py:f' runs the code of b.py: give --trust (in Python, trust=True) ...
    """
    token = _trust.set(trust)
    try:
        yield
    finally:
        _trust.reset(token)


def require_trust(what: str) -> None:
    """Refuse, with NotTrusted, what is about to happen, unless it is trusted.

    Args:
        what: in words, e.g. `method 'heads.py:head' runs the code of heads.py`
    """
    trust = _trust.get()
    if trust is not True and (trust is False or what not in trust):
        raise NotTrusted(what)


def needs_trust(load: Callable[[], object]) -> list[str]:
    """What has to be trusted for something to be loaded, which is loaded: of what a user has typed."""
    agreed: list[str] = []
    while True:
        try:
            with trusting(agreed):
                load()
        except NotTrusted as refused:
            agreed.append(refused.what)
        else:
            return agreed
