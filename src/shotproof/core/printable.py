r"""Untrusted text from files and servers, made safe to print on a terminal, in a pipe and in the log of a workflow.

URLs are printed without credentials. GitHub workflows execute commands in the output of their steps: lines that begin
with `::`, and `##[` anywhere in a line.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Control characters, bidirectional and invisible formatting, lone surrogates, line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_WORKFLOW_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)")

READ_ONLY = ("https", "hf")
SCHEMES = ("s3", "gs", *READ_ONLY)

_ANY_SCHEME = "|".join(SCHEMES)
_USER = r"^[a-z0-9]+:/+[^/?\s]*@"
_SIGNATURE = r"[?&]([^=&\s]*(signature|credential|token|secret|password|api_?key|x-amz-)[^=&\s]*|sig|key)=[^&\s'\"]*"
# URLs that no file may hold; the syntax also works in Arrow's kernels, on a column of paths.
SECRET = rf"(?i){_USER}|^({_ANY_SCHEME}):/.*{_SIGNATURE}"
NO_SECRETS = (
    "a URL with a password, token or signature would be stored in files: remove it, and set credentials in the "
    "environment instead"
)


def without_credentials(text: str) -> str:
    """Remove credentials from the URLs in a message, and restore their double slashes, which pathlib collapses.

    Example:
        >>> without_credentials("s3:/birds/a.png and https://me:word@host/b.png?size=3&token=f00 do not exist")
        's3://birds/a.png and https://host/b.png?size=3 do not exist'
    """
    if ":/" not in text:
        return text
    text = re.sub(rf"\b({_ANY_SCHEME}):/(?=[^/])", r"\1://", text)
    text = re.sub(r"(?<=://)[^/?\s'\"]*@", "", text)
    return re.sub(rf"(?i){_SIGNATURE}", "", text)


def printable(text: str) -> str:
    r"""Escape characters that move the cursor, hide or reorder text, or start a line or a workflow command.

    Letters of all scripts are left unchanged.

    Example:
        >>> print(printable("bird\x1b[2J\n::error::pwned"))
        bird\x1b[2J\n::error::pwned
        >>> print(printable("::error::pwned"))
        \x3a:error::pwned
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(_escape(character) if _is_hidden(character) else character for character in text)
    return _WORKFLOW_COMMAND.sub(lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):02x}", text)


def printable_json(value: Any) -> str:
    r"""Write an indented JSON document that uses JSON escapes for all characters that `printable` escapes.

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
