"""Files on HTTPS servers, read by range requests, so that only the needed part of a large table is transferred."""

from __future__ import annotations

import errno
import io
import re
import urllib.error
import urllib.request
from typing import Any

from shotproof.core.printable import without_credentials
from shotproof.version import __version__

SECONDS = 60  # timeout of a request
LARGEST_WHOLE = 2**31  # bytes of a file held in memory because its server does not support range requests


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError("redirected to an address that is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class HttpsFile(io.RawIOBase):
    """File on a server. Raises OSError if it cannot be read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._position = 0
        self._content: bytes | None = None
        self.size = 0
        with self._request(0, 0) as response:
            content_range = re.fullmatch(r"bytes 0-0/(\d+)", response.headers.get("Content-Range", ""))
            if content_range:
                self.size = int(content_range[1])
            else:
                self._content = response.read(LARGEST_WHOLE + 1)
                self.size = len(self._content)
                if self.size > LARGEST_WHOLE:
                    raise OSError(
                        errno.EFBIG,
                        f"expected at most {LARGEST_WHOLE:,} bytes, or a server that supports range requests",
                    )

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position."""
        self._position = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence])
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as data is left, and return the number of bytes."""
        count = min(len(buffer), self.size - self._position)
        if count <= 0:
            return 0
        if self._content is not None:
            data = self._content[self._position : self._position + count]
        else:
            with self._request(self._position, self._position + count - 1) as response:
                data = response.read(count)
            if len(data) < count:
                raise OSError(errno.EIO, "the server closed the connection too early")
        buffer[:count] = data
        self._position += count
        return count

    def _request(self, first: int, last: int) -> Any:
        headers = {"Range": f"bytes={first}-{last}", "User-Agent": f"shotproof/{__version__}"}
        request = urllib.request.Request(self.url, headers=headers)
        try:
            return urllib.request.build_opener(_OnlyHttps).open(request, timeout=SECONDS)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                raise OSError(errno.EINVAL, "file is empty") from error
            if error.code in (404, 410):
                raise FileNotFoundError(errno.ENOENT, "does not exist") from error
            raise OSError(errno.EIO, f"the server answered {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            raise OSError(errno.EIO, without_credentials(f"no response: {error.reason}")) from error
