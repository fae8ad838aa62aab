"""The detector `endpoint`, against a real HTTP server on loopback that misbehaves on demand."""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
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
from tests.chat_servers import ChatStandIn, running, shown_image

NOUNS = ["dog", "cat", "bird", "tree", "lake", "house", "boat", "horse", "car", "chair", "table", "road"]
KEY = "sk-very-secret"


class Captioner(ChatStandIn):
    """Captions images by their color; faults are set for each noun."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = lambda content: f"a  green {self.noun(content)}\n"
        self.faults_of: defaultdict[str, list[str]] = defaultdict(list)
        self.requests: Counter[str] = Counter()
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.sizes: dict[str, tuple[int, int]] = {}

    def noun(self, content: list[dict[str, Any]]) -> str:
        return NOUNS[round(shown_image(content[1]).getpixel((0, 0))[0] / 20)]  # type: ignore[index]

    def next_fault(self, content: list[dict[str, Any]]) -> str:
        noun = self.noun(content)
        self.requests[noun] += 1
        self.times[noun].append(time.time())
        self.sizes[noun] = shown_image(content[1]).size
        return self.faults_of[noun].pop(0) if self.faults_of[noun] else ""


@pytest.fixture
def server() -> Iterator[Captioner]:
    with running(Captioner()) as server:
        yield server


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


def test_every_image_gets_its_caption_by_one_request(server: Captioner, catalog: Catalog, tmp_path: Path) -> None:
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


def test_faults_that_pass_are_tried_again(server: Captioner, catalog: Catalog) -> None:
    server.faults_of |= {
        "dog": ["500 oops"],
        "cat": ["429 0", "429 0", "503 loading"],
        "bird": ["raw {not json", 'raw {"choices": []}'],
        "tree": ['raw {"choices": [{"message": {"content": null}}]}', "raw []", "raw 7"],
        "lake": ["slow", "408 too slow"],
        "house": ["drop"],
        "boat": ['raw {"choices": [{"message": {"content": " "}}]}'],
        "horse": ["raw " + "[" * 100_000],
    }
    expected = {noun: len(server.faults_of[noun]) + 1 for noun in NOUNS}
    words = words_by(EndpointDetector(url=server.url, timeout=3.0, retries=3, **QUICK), catalog)
    assert words == WORDS
    assert server.requests == expected


@pytest.mark.parametrize("concurrency", [1, 3, 4])
def test_as_many_requests_at_once_as_allowed_and_no_more(server: Captioner, catalog: Catalog, concurrency: int) -> None:
    server.together = threading.Barrier(concurrency)  # nobody is answered before so many ask at once
    words = words_by(EndpointDetector(url=server.url, concurrency=concurrency, **QUICK), catalog)
    assert words == WORDS
    assert server.most_under_way == concurrency


def test_the_server_is_given_the_time_that_it_asks_for(server: Captioner, catalog: Catalog) -> None:
    until = int(time.time() + 2)
    server.faults_of["cat"] = [f"429 {email.utils.formatdate(until, usegmt=True)}"]
    server.faults_of["dog"] = ["429 1", "429 soon", "429 Sat, 01 Jan 2000 00:00:00 GMT"]
    words_by(EndpointDetector(url=server.url, **QUICK), catalog)
    assert server.times["cat"][1] >= until
    assert server.times["dog"][1] - server.times["dog"][0] > 0.99
    assert len(server.times["dog"]) == 4


def test_an_image_that_never_succeeds_is_reported_by_name_and_skipped(
    server: Captioner, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults_of |= {"dog": ["500 oops"] * 3, "cat": ["raw no"] * 3, "bird": ["drop"] * 3}
    catalog.paths[3].write_bytes(b"no image")
    cache = tmp_path / "cache"
    detector = EndpointDetector(url=server.url, retries=2, **QUICK)
    words = words_by(detector, catalog, cache)
    assert words == WORDS | {"dog": None, "cat": None, "bird": None, "tree": None}
    assert [server.requests[noun] for noun in NOUNS[:5]] == [3, 3, 3, 0, 1]
    messages = "\n".join(sorted(caplog.messages))
    assert re.search(r"item 'dog' is skipped: the server answered 500 .*: oops \(after 3 \w+\)", messages)
    assert "item 'cat' is skipped: the server's answer" in messages
    assert "item 'tree' is skipped: image " in messages

    # The next run tries those again, and only those.
    server.requests.clear()
    assert words_by(detector, catalog, cache) == WORDS | {"tree": None}
    assert server.requests == {"dog": 1, "cat": 1, "bird": 1}


@pytest.mark.parametrize(("status", "message"), [(401, f"bad key {KEY}"), (404, "no model tiny"), (302, "elsewhere")])
def test_a_refusal_stops_at_once_and_what_came_before_is_kept(
    server: Captioner, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cache = tmp_path / "cache"
    server.faults_of["tree"] = [f"{status} {message}"]
    detector = EndpointDetector(url=server.url, concurrency=1, **QUICK)
    with pytest.raises(InputError, match=f"refuse.*: {status} .*: {message.replace(KEY, '')}") as refusal:
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
    server: Captioner, catalog: Catalog, said: str
) -> None:
    server.faults_of[NOUNS[0]] = [f"refuse {said}"]
    with pytest.raises(InputError, match=r"refuse.*: 400 Bad Request: in short$"):
        words_by(EndpointDetector(url=server.url, **QUICK), catalog)


def test_an_image_that_changed_is_asked_for_again_unless_its_content_is_known(
    server: Captioner, catalog: Catalog, tmp_path: Path
) -> None:
    detector = EndpointDetector(url=server.url, **QUICK)
    words_by(detector, catalog, tmp_path / "cache")
    Image.open(catalog.paths[1]).save(catalog.paths[0])
    assert words_by(detector, catalog, tmp_path / "cache") == WORDS | {"dog": WORDS["cat"]}
    assert server.requests == dict.fromkeys(NOUNS, 1)
    Image.new("RGB", (30, 30), (20, 0, 0)).save(catalog.paths[0])
    assert words_by(detector, catalog, tmp_path / "cache") == WORDS | {"dog": WORDS["cat"]}
    assert server.requests == dict.fromkeys(NOUNS, 1) | {"cat": 2}


def test_another_prompt_asks_for_other_captions(server: Captioner, catalog: Catalog, tmp_path: Path) -> None:
    for prompt in ("One?", "Two?", "One?"):
        words_by(EndpointDetector(url=server.url, prompt=prompt, **QUICK), catalog, tmp_path)
    assert server.requests == dict.fromkeys(NOUNS, 2)


def test_no_server_is_one_error(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    detector = EndpointDetector(url=f"http://somebody:{KEY}@127.0.0.1:{port}/v1/?key={KEY}", **QUICK)
    with pytest.raises(InputError, match=f"reach .* http://127.0.0.1:{port}/v1/chat/completions: ") as e:
        words_by(detector, catalog)
    assert KEY not in str(e.value)
    assert not caplog.messages


def test_from_within_a_running_event_loop_as_in_a_notebook(server: Captioner, catalog: Catalog) -> None:
    async def cell() -> Any:
        return words_by(EndpointDetector(url=server.url, **QUICK), catalog)

    assert asyncio.run(cell()) == WORDS


def test_the_metadata_has_the_model_and_the_prompt_but_neither_server_nor_key(
    server: Captioner, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
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


def test_without_a_key_none_is_sent(server: Captioner, catalog: Catalog) -> None:
    words_by(EndpointDetector(url=server.url, **QUICK), catalog)
    assert all("Authorization" not in headers for headers in server.headers)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://host:port/"])
def test_an_address_that_is_none(catalog: Catalog, url: str) -> None:
    with pytest.raises(InputError, match=r"url: expected an address .*http://localhost:8000/v1"):
        words_by(EndpointDetector("tiny", url=url), catalog)


def test_the_address_may_be_in_the_environment(
    server: Captioner, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"detector 'endpoint' needs url, or .* OPENAI_BASE_URL: e\.g\. "):
        words_by(EndpointDetector("tiny"), catalog)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert words_by(EndpointDetector("tiny"), catalog) == WORDS


def test_a_key_that_cannot_be_sent_is_not_repeated(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "geheim\nü")
    with pytest.raises(InputError, match=r"key .* invalid") as refusal:
        words_by(EndpointDetector("tiny", url="http://localhost/v1"), catalog)
    assert "geheim" not in str(refusal.value)


def test_without_httpx(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"detector 'endpoint' .* pip install shotproof\[endpoint\]"):
        words_by(EndpointDetector("tiny", url="http://localhost/v1"), catalog)
