"""Text from files and servers, made safe to print."""

from __future__ import annotations

import unicodedata

# Control characters, bidirectional and invisible formatting, half surrogate pairs, line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str, *, keep: str = "") -> str:
    r"""Escape every character that moves the cursor, reorders or hides text, or starts a new line.

    Args:
        text: any text
        keep: characters to leave as they are, such as the line feeds of a CSV file

    Example:
        >>> print(printable("bird\x1b[2J\n::error::pwned"))
        bird\x1b[2J\n::error::pwned
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape", "surrogatepass").decode("ascii")
        if unicodedata.category(character) in _HIDDEN and character not in keep
        else character
        for character in text
    )
