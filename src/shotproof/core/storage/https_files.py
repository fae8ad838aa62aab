"""Files of a server by HTTPS, read in ranges, so that of a large table only what is needed travels."""

from __future__ import annotations

import errno
import io
import re
import urllib.error
import urllib.request
from typing import Any

from shotproof.core.printable import told
from shotproof.version import __version__

SECONDS = 60  # that a server may take for an answer
LARGEST_WHOLE = 2**31  # bytes of a file whose server knows no ranges, which is held in memory


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError("it leads away from https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class HttpsFile(io.RawIOBase):
    """A file of a server; OSError where it cannot be read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._at = 0
        self._whole: bytes | None = None
        self.size = 0
        with self._asked(0, 0) as answer:
            ranged = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range", ""))
            if ranged:
                self.size = int(ranged[1])
            else:
                self._whole = answer.read(LARGEST_WHOLE + 1)
                self.size = len(self._whole)
                if self.size > LARGEST_WHOLE:
                    raise OSError(errno.EFBIG, f"expected at most {LARGEST_WHOLE:,} bytes, or a server of ranges")

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence])
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is and fits."""
        count = min(len(buffer), self.size - self._at)
        if count <= 0:
            return 0
        if self._whole is not None:
            data = self._whole[self._at : self._at + count]
        else:
            with self._asked(self._at, self._at + count - 1) as answer:
                data = answer.read(count)
            if len(data) < count:
                raise OSError(errno.EIO, "the server broke off")
        buffer[:count] = data
        self._at += count
        return count

    def _asked(self, first: int, last: int) -> Any:
        headers = {"Range": f"bytes={first}-{last}", "User-Agent": f"shotproof/{__version__}"}
        request = urllib.request.Request(self.url, headers=headers)
        try:
            return urllib.request.build_opener(_OnlyHttps).open(request, timeout=SECONDS)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                raise OSError(errno.EINVAL, "it is empty") from error
            if error.code in (404, 410):
                raise FileNotFoundError(errno.ENOENT, "does not exist") from error
            raise OSError(errno.EIO, f"the server answers {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            raise OSError(errno.EIO, told(f"no answer: {error.reason}")) from error
