"""Text from strangers as files can hold it, and without what must not be shown."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path

from shotproof.core.errors import WriteFailed

_HALF_PAIR = re.compile("[\ud800-\udfff]")
SHORTEST_SECRET = 8  # characters; a shorter key is a placeholder such as EMPTY, which servers that need none are given


def is_storable(text: str) -> bool:
    """Return whether a file can hold the text: half a surrogate pair is no character, and UTF-8 has no form of it."""
    return _HALF_PAIR.search(text) is None


def encoded(text: str, path: Path) -> bytes:
    """The text as a file is to hold it, in UTF-8.

    Raises:
        WriteFailed: it has half a surrogate pair, as names do that are not UTF-8; the message has what is around it.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(error.start - 20, 0) : error.end + 20]
        raise WriteFailed(f"cannot write {path}: {around!r} is not UTF-8: rename what is called so") from error


def storable(text: str) -> str:
    r"""Replace each half of a surrogate pair by U+FFFD.

    Example:
        >>> storable("a\ud800b") == "a\ufffdb"
        True
    """
    return _HALF_PAIR.sub("\ufffd", text)


def masked(text: str, secret: str) -> str:
    """Replace a secret by ***, wherever 8 of its characters or more stand in a row, or all of a shorter one.

    So a secret that was cut off at either end, or has other characters in its middle, is masked too, and so is its
    percent-encoded form. What a server encodes otherwise, in base64 say, is not recognized.

    Example:
        >>> masked("no key sk-0123456789abcd, nor ...456789ab", "sk-0123456789abcd")
        'no key ***, nor ...***'
    """
    if not secret:
        return text
    size = min(len(secret), SHORTEST_SECRET)
    forms = (secret, urllib.parse.quote(secret, safe=""))
    pieces = {form[start : start + size] for form in forms for start in range(len(form) - size + 1)}
    shown: list[str] = []
    end = 0  # of what is masked or copied already
    for start in range(len(text) - size + 1):
        if text[start : start + size] in pieces:
            if start > end or not shown:
                shown += [text[end:start], "***"]
            end = start + size
    return "".join(shown) + text[end:]
