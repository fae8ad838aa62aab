"""Text from untrusted sources: made storable as UTF-8, and with secrets masked."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path

from shotproof.core.errors import WriteFailed

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
SHORTEST_SECRET = 8  # characters; a shorter key is a placeholder such as EMPTY, for servers that need no key


def is_storable(text: str) -> bool:
    """Return whether a file can hold the text: UTF-8 cannot encode lone surrogates."""
    return _LONE_SURROGATE.search(text) is None


def encoded(text: str, path: Path) -> bytes:
    """Encode text as UTF-8.

    Raises:
        WriteFailed: the text has a lone surrogate, which comes from file names that are not UTF-8; the message has the
            text around it.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        excerpt = text[max(error.start - 20, 0) : error.end + 20]
        raise WriteFailed(
            f"cannot write {path}: {excerpt!r} is not valid UTF-8: rename the file, folder or label that contains it"
        ) from error


def storable(text: str) -> str:
    r"""Replace each lone surrogate by U+FFFD.

    Example:
        >>> storable("a\ud800b") == "a\ufffdb"
        True
    """
    return _LONE_SURROGATE.sub("\ufffd", text)


def masked(text: str, secret: str) -> str:
    """Replace a secret by ***, wherever at least 8 consecutive characters of it occur (all of a shorter one).

    So a secret is also masked if it is cut off at either end or interrupted in the middle, and so is its
    percent-encoded form. Other encodings, such as base64, are not recognized.

    Example:
        >>> masked("no key sk-0123456789abcd, nor ...456789ab", "sk-0123456789abcd")
        'no key ***, nor ...***'
    """
    if not secret:
        return text
    size = min(len(secret), SHORTEST_SECRET)
    forms = (secret, urllib.parse.quote(secret, safe=""))
    pieces = {form[start : start + size] for form in forms for start in range(len(form) - size + 1)}
    parts: list[str] = []
    end = 0  # of the text masked or copied so far
    for start in range(len(text) - size + 1):
        if text[start : start + size] in pieces:
            if start > end or not parts:
                parts += [text[end:start], "***"]
            end = start + size
    return "".join(parts) + text[end:]
