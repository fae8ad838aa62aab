"""A real HTTP server on loopback that speaks the chat protocol, sees what it is shown, and misbehaves on demand."""

from __future__ import annotations

import base64
import gzip
import io
import json
import threading
import wave
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

Server = TypeVar("Server", bound="ChatStandIn")
Vector = npt.NDArray[np.float64]


def shown_image(part: dict[str, Any]) -> Image.Image:
    """The image of a message's part."""
    data = base64.b64decode(part["image_url"]["url"].partition("data:image/jpeg;base64,")[2], validate=True)
    return Image.open(io.BytesIO(data)).convert("RGB")


def seen(part: dict[str, Any]) -> Vector:
    """What the server makes of an image, its mean color, or of a sound, its power in eight bands."""
    if part["type"] == "image_url":
        return np.asarray(shown_image(part), dtype=np.float64).mean((0, 1))
    assert part["input_audio"]["format"] == "wav"
    with wave.open(io.BytesIO(base64.b64decode(part["input_audio"]["data"], validate=True))) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 2**15
    power = np.abs(np.fft.rfft(samples)) ** 2
    return np.log([band.mean() + 1e-9 for band in np.array_split(power, 8)])


def nearest_answer(content: list[dict[str, Any]]) -> str:
    """The class of the example that is nearest to the last item."""
    pairs = [(seen(item), text["text"]) for item, text in zip(content[1::2], content[2::2], strict=True)]
    *examples, (query, _) = pairs
    nearest = min(examples, key=lambda example: float(((example[0] - query) ** 2).sum()))
    return nearest[1].removeprefix("Class: ")


class ChatStandIn(ThreadingHTTPServer):
    """Answers by `answer`, after the faults that are set have occurred, one per request.

    A fault is a status (`500`, `429 1`), `raw TEXT`, `refuse TEXT`, `reason TEXT` (after the status), `garbage TEXT`
    (in place of a status), `huge`, `gzip TEXT`, `drop`, `slow` or `drip` (a byte at a time).
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[list[dict[str, Any]]], str | None] = nearest_answer
        self.faults: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.together: threading.Barrier | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_fault(self, content: list[dict[str, Any]]) -> str:
        """What goes wrong with a request for this; empty: nothing."""
        return self.faults.pop(0) if self.faults else ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, as it may, is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: ChatStandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the client waits 40 ms for each answer, which is sent in two parts

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][0]["content"]
        with server.lock:
            server.bodies.append(body)
            server.headers.append({"path": self.path, **self.headers})
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
            kind, _, detail = server.next_fault(content).partition(" ")
        if server.together is not None:
            server.together.wait(timeout=20)
        with server.lock:
            server.under_way -= 1
        if kind == "slow":
            server.closing.wait(20)
        if kind == "drip":
            self._drip()
        if kind == "garbage":
            self.wfile.write(detail.encode() + b"\r\n\r\n")
        if kind in ("slow", "drop", "drip", "garbage"):
            self.close_connection = True
        elif kind.isdecimal():
            self._send(int(kind), json.dumps({"error": {"message": detail or "oops"}}), {"Retry-After": detail})
        elif kind == "raw":
            self._send(200, detail)
        elif kind == "refuse":
            self._send(400, detail)
        elif kind == "reason":
            self._send(400, "{}", reason=detail)
        elif kind == "huge":
            self._send(200, " " * (2**24 + 1))
        elif kind == "gzip":
            self._send(200, gzip.compress(detail.encode()), {"Content-Encoding": "gzip"})
        else:
            said = {"role": "assistant", "content": server.answer(content)}
            self._send(200, json.dumps({"choices": [{"message": said}]}))

    def _send(
        self, status: int, body: str | bytes, headers: dict[str, str] | None = None, reason: str | None = None
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status, reason)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _drip(self) -> None:
        """Promise an answer, and send a byte of it every 20 ms for 10 s."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        for _ in range(500):
            self.wfile.write(b" ")
            if self.server.closing.wait(0.02):
                return

    def log_message(self, *arguments: Any) -> None:
        """Quiet."""


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server, in a thread until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def chat_server() -> AbstractContextManager[ChatStandIn]:
    """A server that runs until the block ends."""
    return running(ChatStandIn())
