"""The detector `endpoint`, against a real HTTP server on loopback that misbehaves on demand."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import io
import json
import re
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from shotproof.attributes.detector import Words, detect
from shotproof.attributes.detectors.endpoint import EndpointDetector
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.runtime.runtime import Runtime

NOUNS = ["dog", "cat", "bird", "tree", "lake", "house", "boat", "horse", "car", "chair", "table", "road"]
KEY = "sk-very-secret"


class Server(ThreadingHTTPServer):
    """Captions images by their color, after the faults that are set for them have occurred, one per request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: defaultdict[str, list[str]] = defaultdict(list)
        self.requests: Counter[str] = Counter()
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sizes: dict[str, tuple[int, int]] = {}
        self.under_way = 0
        self.most_under_way = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.together: threading.Barrier | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, as it may, is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, _, data = body["messages"][0]["content"][1]["image_url"]["url"].partition("data:image/jpeg;base64,")
        image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
        noun = NOUNS[round(image.convert("RGB").getpixel((0, 0))[0] / 20)]
        with server.lock:
            server.requests[noun] += 1
            server.times[noun].append(time.time())
            server.bodies.append(body)
            server.headers.append({"path": self.path, **self.headers})
            server.sizes[noun] = image.size
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
            fault = server.faults[noun].pop(0) if server.faults[noun] else "none"
        if server.together is not None:
            server.together.wait(timeout=20)
        with server.lock:
            server.under_way -= 1
        self.answer(fault, f"a  green {noun}\n")

    def answer(self, fault: str, caption: str) -> None:
        kind, _, detail = fault.partition(" ")
        if kind == "slow":
            self.server.closing.wait(20)
        if kind in ("slow", "drop"):
            self.close_connection = True
        elif kind.isdecimal():
            self.send(int(kind), json.dumps({"error": {"message": detail}}), {"Retry-After": detail})
        elif kind == "raw":
            self.send(200, detail)
        else:
            self.send(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": caption}}]}))

    def send(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text.encode())), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    for number, noun in enumerate(NOUNS):
        Image.new("RGB", (40, 20), (number * 20, 0, 0)).save(tmp_path / f"{noun}.png")
    columns = {"item": NOUNS, "path": [f"{noun}.png" for noun in NOUNS]}
    return Catalog(pa.table({**columns, "label": ["x"] * len(NOUNS), "split": ["test"] * len(NOUNS)}), tmp_path)


WORDS = {noun: sorted([f"{noun}:noun", "green:adj"]) for noun in NOUNS}
QUICK: dict[str, Any] = {"model": "tiny", "backoff": 0.001}


def words_by(detector: EndpointDetector, catalog: Catalog, cache: Path | None = None) -> Words:
    return detector.detect(catalog, Runtime(cache=cache))


def kept(cache: Path) -> list[str]:
    """The captions in a cache, sorted."""
    tables = [pq.read_table(path) for path in (cache / "captions").rglob("*.parquet")]
    return sorted(caption for table in tables for caption in table["value"].to_pylist())


def test_every_image_gets_its_caption_by_one_request(server: Server, catalog: Catalog, tmp_path: Path) -> None:
    Image.new("RGB", (1200, 800)).save(catalog.paths[0])
    detector = EndpointDetector(url=server.url, prompt="What is it?", **QUICK)
    words = words_by(detector, catalog, tmp_path / "cache")
    assert words == WORDS
    assert list(words) == NOUNS
    assert server.requests == dict.fromkeys(NOUNS, 1)
    assert kept(tmp_path / "cache") == sorted(f"a green {noun}" for noun in NOUNS)
    assert {headers["path"] for headers in server.headers} == {"/v1/chat/completions"}
    assert all(body["model"] == "tiny" and body["temperature"] == 0 for body in server.bodies)
    assert all(body["messages"][0]["content"][0] == {"type": "text", "text": "What is it?"} for body in server.bodies)
    assert server.sizes == {"dog": (512, 341)} | dict.fromkeys(NOUNS[1:], (40, 20))


def test_faults_that_pass_are_tried_again(server: Server, catalog: Catalog) -> None:
    server.faults |= {
        "dog": ["500 oops"],
        "cat": ["429 0", "429 0", "503 loading"],
        "bird": ["raw {not json", 'raw {"choices": []}'],
        "tree": ['raw {"choices": [{"message": {"content": null}}]}', "raw []", "raw 7"],
        "lake": ["slow", "408 too slow"],
        "house": ["drop"],
        "boat": ['raw {"choices": [{"message": {"content": " "}}]}'],
        "horse": ["raw " + "[" * 100_000],
    }
    expected = {noun: len(server.faults[noun]) + 1 for noun in NOUNS}
    words = words_by(EndpointDetector(url=server.url, timeout=3.0, retries=3, **QUICK), catalog)
    assert words == WORDS
    assert server.requests == expected


@pytest.mark.parametrize("concurrency", [1, 3, 4])
def test_as_many_requests_at_once_as_allowed_and_no_more(server: Server, catalog: Catalog, concurrency: int) -> None:
    server.together = threading.Barrier(concurrency)  # nobody is answered before so many ask at once
    words = words_by(EndpointDetector(url=server.url, concurrency=concurrency, **QUICK), catalog)
    assert words == WORDS
    assert server.most_under_way == concurrency


def test_the_server_is_given_the_time_that_it_asks_for(server: Server, catalog: Catalog) -> None:
    until = int(time.time() + 2)
    server.faults["cat"] = [f"429 {email.utils.formatdate(until, usegmt=True)}"]
    server.faults["dog"] = ["429 1", "429 soon", "429 Sat, 01 Jan 2000 00:00:00 GMT"]
    words_by(EndpointDetector(url=server.url, **QUICK), catalog)
    assert server.times["cat"][1] >= until
    assert server.times["dog"][1] - server.times["dog"][0] > 0.99
    assert len(server.times["dog"]) == 4


def test_an_image_that_never_succeeds_is_reported_by_name_and_skipped(
    server: Server, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults |= {"dog": ["500 oops"] * 3, "cat": ["raw no"] * 3, "bird": ["drop"] * 3}
    catalog.paths[3].write_bytes(b"no image")
    cache = tmp_path / "cache"
    detector = EndpointDetector(url=server.url, retries=2, **QUICK)
    words = words_by(detector, catalog, cache)
    assert words == WORDS | {"dog": None, "cat": None, "bird": None, "tree": None}
    assert [server.requests[noun] for noun in NOUNS[:5]] == [3, 3, 3, 0, 1]
    messages = "\n".join(sorted(caplog.messages))
    assert re.search(r"item 'dog' is skipped: the server answered 500 .*: oops \(after 3 tries\)", messages)
    assert "item 'cat' is skipped: the server's answer is no chat completion" in messages
    assert "item 'tree' is skipped: image " in messages

    # The next run tries those again, and only those.
    server.requests.clear()
    assert words_by(detector, catalog, cache) == WORDS | {"tree": None}
    assert server.requests == {"dog": 1, "cat": 1, "bird": 1}


@pytest.mark.parametrize(("status", "message"), [(401, f"bad key {KEY}"), (404, "no model tiny"), (302, "elsewhere")])
def test_a_refusal_stops_at_once_and_what_came_before_is_kept(
    server: Server, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cache = tmp_path / "cache"
    server.faults["tree"] = [f"{status} {message}"]
    detector = EndpointDetector(url=server.url, concurrency=1, **QUICK)
    with pytest.raises(InputError, match=f"refuses: {status} .*: {message.replace(KEY, '')}") as refusal:
        words_by(detector, catalog, cache)
    assert "\n" not in str(refusal.value)
    assert KEY not in str(refusal.value)
    assert not any(KEY.encode() in path.read_bytes() for path in cache.rglob("*.*"))
    assert kept(cache) == sorted(f"a green {noun}" for noun in NOUNS[:3])
    assert sum(server.requests.values()) == 4
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"

    server.requests.clear()
    assert words_by(detector, catalog, cache) == WORDS
    assert server.requests == dict.fromkeys(NOUNS[3:], 1)
    server.requests.clear()
    assert words_by(detector, catalog, cache) == WORDS
    assert not server.requests


@pytest.mark.parametrize(
    "said", ['{"error": "in short"}', '{"detail": "in short"}', '{"message": "in short"}', "in\nshort"]
)
def test_a_refusal_carries_what_the_server_says_in_whatever_form(
    server: Server, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(Handler, "answer", lambda self, fault, caption: self.send(400, said))
    with pytest.raises(InputError, match=r"refuses: 400 Bad Request: in short$"):
        words_by(EndpointDetector(url=server.url, **QUICK), catalog)


def test_an_image_that_changed_is_asked_for_again_unless_its_content_is_known(
    server: Server, catalog: Catalog, tmp_path: Path
) -> None:
    detector = EndpointDetector(url=server.url, **QUICK)
    words_by(detector, catalog, tmp_path / "cache")
    Image.open(catalog.paths[1]).save(catalog.paths[0])
    assert words_by(detector, catalog, tmp_path / "cache") == WORDS | {"dog": WORDS["cat"]}
    assert server.requests == dict.fromkeys(NOUNS, 1)
    Image.new("RGB", (30, 30), (20, 0, 0)).save(catalog.paths[0])
    assert words_by(detector, catalog, tmp_path / "cache") == WORDS | {"dog": WORDS["cat"]}
    assert server.requests == dict.fromkeys(NOUNS, 1) | {"cat": 2}


def test_another_prompt_asks_for_other_captions(server: Server, catalog: Catalog, tmp_path: Path) -> None:
    for prompt in ("One?", "Two?", "One?"):
        words_by(EndpointDetector(url=server.url, prompt=prompt, **QUICK), catalog, tmp_path)
    assert server.requests == dict.fromkeys(NOUNS, 2)


def test_no_server_is_one_error(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    detector = EndpointDetector(url=f"http://somebody:{KEY}@127.0.0.1:{port}/v1/?key={KEY}", **QUICK)
    with pytest.raises(
        InputError, match=f"no server can be reached at http://127.0.0.1:{port}/v1/chat/completions: "
    ) as e:
        words_by(detector, catalog)
    assert KEY not in str(e.value)
    assert not caplog.messages


def test_from_within_a_running_event_loop_as_in_a_notebook(server: Server, catalog: Catalog) -> None:
    async def cell() -> Any:
        return words_by(EndpointDetector(url=server.url, **QUICK), catalog)

    assert asyncio.run(cell()) == WORDS


def test_the_metadata_has_the_model_and_the_prompt_but_neither_server_nor_key(
    server: Server, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    detector = EndpointDetector(url=server.url, prompt="What?", api_key_variable="MY_KEY", **QUICK)
    record = detect(catalog, detector, runtime=Runtime(cache=None)).record
    meta = json.dumps(record.to_meta())
    assert record.detectors[0].spelling == "endpoint(model='tiny', prompt='What?')"
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert '"model": "tiny"' in meta
    assert '"prompt": "What?"' in meta
    assert '"tagger": "hanta"' in meta
    assert KEY not in meta
    assert "127.0.0.1" not in meta


def test_without_a_key_none_is_sent(server: Server, catalog: Catalog) -> None:
    words_by(EndpointDetector(url=server.url, **QUICK), catalog)
    assert all("Authorization" not in headers for headers in server.headers)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://host:port/"])
def test_an_address_that_is_none(catalog: Catalog, url: str) -> None:
    with pytest.raises(InputError, match="url: expected an address such as http://localhost:8000/v1"):
        words_by(EndpointDetector("tiny", url=url), catalog)


def test_the_address_may_be_in_the_environment(
    server: Server, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"detector 'endpoint' needs url, or the variable OPENAI_BASE_URL: e\.g\. "):
        words_by(EndpointDetector("tiny"), catalog)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert words_by(EndpointDetector("tiny"), catalog) == WORDS


def test_a_key_that_cannot_be_sent_is_not_repeated(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "geheim\nü")
    with pytest.raises(InputError, match="characters that no key has") as refusal:
        words_by(EndpointDetector("tiny", url="http://localhost/v1"), catalog)
    assert "geheim" not in str(refusal.value)


def test_without_httpx(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"detector 'endpoint' .* pip install shotproof\[endpoint\]"):
        words_by(EndpointDetector("tiny", url="http://localhost/v1"), catalog)
