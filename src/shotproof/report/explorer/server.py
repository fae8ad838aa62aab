"""An explorer on the loopback interface: for this machine's own browser, and for no other page that it has open."""

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
    "Cache-Control": "no-store",  # another run may be served at the same address tomorrow
}


class ExplorerServer(ThreadingHTTPServer):
    """Serves a site until it is shut down.

    Args:
        site: what to serve
        port: on which; 0 takes one that is free

    Raises:
        InputError: the port is in use, or may not be used.
    """

    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            reason = "is in use" if used else f"cannot be used: {error}"
            raise InputError(f"port {port} {reason}; give another one, or 0 for any that is free") from error

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Return a browser that went away is no error; others are told as usual."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; all else is refused by the base class."""

    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "shotproof", ""

    def do_GET(self) -> None:
        """Answer with a file of the site."""
        if not self._asked_by_its_own_name():
            # A page elsewhere whose name was made to lead here (DNS rebinding) still asks under that name.
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"ask by the address that shotproof view has printed\n")
            return
        path = urlsplit(self.path).path.removeprefix("/") or INDEX
        content = self.server.site.content(path)
        if content is None:
            self._answer(HTTPStatus.NOT_FOUND, b"there is no such file, or its item cannot be read\n")
        else:
            self._answer(HTTPStatus.OK, content, TYPES[PurePosixPath(path).suffix])

    do_HEAD = do_GET  # noqa: N815

    def _asked_by_its_own_name(self) -> bool:
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
        """Say nothing: a page asks for hundreds of files."""
