"""Explorer on the loopback interface: for a browser on this machine, but not for other pages that it has open."""

from __future__ import annotations

import errno
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from shotproof.core.errors import InputError
from shotproof.report.explorer.explorer_site import INDEX, TYPES, Site

ADDRESS = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",  # the same address may serve another run later
}


class ExplorerServer(ThreadingHTTPServer):
    """Server of a site, until it is shut down.

    Args:
        site: site to serve
        port: port to listen on; 0 selects a free one

    Raises:
        InputError: the port is in use, or may not be used.
    """

    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            reason = "is in use" if in_use else f"cannot be used: {error}"
            raise InputError(f"port {port} {reason}; choose another one, or 0 for any free port") from error

    @property
    def url(self) -> str:
        """Return the address of the site."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors as usual, except that a browser closed the connection."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Handler of GET and HEAD; the base class rejects all other methods."""

    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "shotproof", ""

    def do_GET(self) -> None:
        """Answer with a file of the site."""
        if not self._has_own_host():
            # A page elsewhere whose name was made to resolve to here (DNS rebinding) still sends that name.
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"use the address that shotproof view has printed\n")
            return
        path = urlsplit(self.path).path.removeprefix("/") or INDEX
        content = self.server.site.content(path)
        if content is None:
            self._answer(HTTPStatus.NOT_FOUND, b"no such file, or its item cannot be read\n")
        else:
            self._answer(HTTPStatus.OK, content, TYPES[PurePosixPath(path).suffix])

    do_HEAD = do_GET  # noqa: N815

    def _has_own_host(self) -> bool:
        port = self.server.server_port
        return self.headers.get("Host") in {f"{ADDRESS}:{port}", f"localhost:{port}"}

    def _answer(self, status: HTTPStatus, content: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        for name, value in (HEADERS | {"Content-Type": kind, "Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a page requests hundreds of files."""
