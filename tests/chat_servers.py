"""A real HTTP server on loopback that speaks the chat protocol, sees what it is shown, and misbehaves on demand."""

from __future__ import annotations

import base64
import io
import json
import threading
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Vector = npt.NDArray[np.float64]


def seen(part: dict[str, Any]) -> Vector:
    """What the server makes of an image, its mean color, or of a sound, its power in eight bands."""
    if part["type"] == "image_url":
        data = base64.b64decode(part["image_url"]["url"].partition("data:image/jpeg;base64,")[2], validate=True)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.float64).mean((0, 1))
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
    """Answers by `answer`, after the faults that are set have occurred, one per request: `500`, `429 1`, `raw TEXT`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[list[dict[str, Any]]], str | None] = nearest_answer
        self.faults: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.together: threading.Barrier | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, as it may, is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: ChatStandIn
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.bodies.append(body)
            server.headers.append({"path": self.path, **self.headers})
            kind, _, detail = (server.faults.pop(0) if server.faults else "").partition(" ")
        if server.together is not None:
            server.together.wait(timeout=20)
        if kind.isdecimal():
            self._send(int(kind), json.dumps({"error": {"message": detail or "oops"}}), {"Retry-After": detail})
        elif kind == "raw":
            self._send(200, detail)
        elif kind == "huge":
            self._send(200, " " * (2**24 + 1))
        else:
            said = {"role": "assistant", "content": server.answer(body["messages"][0]["content"])}
            self._send(200, json.dumps({"choices": [{"message": said}]}))

    def _send(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text.encode())), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: Any) -> None:
        """Quiet."""


@contextmanager
def chat_server() -> Iterator[ChatStandIn]:
    """A server that runs in a thread until the block ends."""
    with ChatStandIn() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
