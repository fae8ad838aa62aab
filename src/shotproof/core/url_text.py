"""URLs in texts: which ones are read, and what of them must never be shown or kept."""

from __future__ import annotations

import re

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
