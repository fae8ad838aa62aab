r"""Text from files and servers, made safe to print: on a terminal, in a pipe, and in the log of a workflow.

URLs are told without credentials. A workflow of GitHub takes orders from what its steps print: lines that begin with
`::`, and `##[` anywhere in a line.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Control characters, bidirectional and invisible formatting, half surrogate pairs, line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_ORDER = re.compile(r"^(\s*):(?=:)|#(?=#\[)")

READ_ONLY = ("https", "hf")
SCHEMES = ("s3", "gs", *READ_ONLY)

_ANY = "|".join(SCHEMES)
_USER = r"^[a-z0-9]+:/+[^/?\s]*@"
_SIGNATURE = r"[?&]([^=&\s]*(signature|credential|token|secret|password|api_?key|x-amz-)[^=&\s]*|sig|key)=[^&\s'\"]*"
# What no file may hold; also as Arrow's kernels match it, in a column of paths.
SECRET = rf"(?i){_USER}|^({_ANY}):/.*{_SIGNATURE}"
NO_SECRETS = (
    "a URL with a password, token or signature would be kept in files: expected credentials in the environment only"
)


def told(text: str) -> str:
    """A message as it may be shown: URLs with both slashes, which pathlib makes one, and without credentials.

    Example:
        >>> told("s3:/birds/a.png and https://me:word@host/b.png?size=3&X-Amz-Signature=f00 do not exist")
        's3://birds/a.png and https://host/b.png?size=3 do not exist'
    """
    if ":/" not in text:
        return text
    text = re.sub(rf"\b({_ANY}):/(?=[^/])", r"\1://", text)
    text = re.sub(r"(?<=://)[^/?\s'\"]*@", "", text)
    return re.sub(rf"(?i){_SIGNATURE}", "", text)


def printable(text: str) -> str:
    r"""Escape every character that moves the cursor, reorders or hides text, starts a line or an order to a workflow.

    Letters of every script stay as they are.

    Example:
        >>> print(printable("bird\x1b[2J\n::error::pwned"))
        bird\x1b[2J\n::error::pwned
        >>> print(printable("::error::pwned"))
        \x3a:error::pwned
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(_escape(character) if _is_hidden(character) else character for character in text)
    return _ORDER.sub(lambda found: f"{found[1] or ''}\\x{ord(found[0][-1]):02x}", text)


def printable_json(value: Any) -> str:
    r"""Write a JSON document, indented, in which every character that `printable` escapes is an escape of JSON's own.

    Example:
        >>> print(printable_json("bird\x9b2J"))
        "bird\u009b2J"
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    escaped = "".join(
        json.dumps(character)[1:-1] if character != "\n" and _is_hidden(character) else character for character in text
    )
    return escaped.replace("##[", "\\u0023#[")


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
