"""The hub's own client against a server of this machine that keeps files as the hub does."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from shotproof.core.errors import InputError
from shotproof.pipeline.bundle.hub import download_bundle, upload_bundle

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Repositories of data sets, and the files of each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/repos/create":
            name = "/".join(filter(None, [json.loads(body).get("organization"), json.loads(body)["name"]]))
            self.server.repositories.setdefault(name, {})
            self._answer({"url": f"{self.server.url}/datasets/{name}", "id": name})
            return
        _, _, _, user, repository, action, _ = self.path.split("?")[0].split("/")
        if action == "preupload":
            files = [{"path": load["path"], "uploadMode": "regular"} for load in json.loads(body)["files"]]
            self._answer({"files": [{**file, "shouldIgnore": False} for file in files]})
            return
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.server.repositories[f"{user}/{repository}"][line["value"]["path"]] = content
        url = f"{self.server.url}/datasets/{user}/{repository}/commit/{COMMIT}"
        self._answer({"commitUrl": url, "commitOid": COMMIT, "success": True})

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].split("/")
        found = None
        if parts[1] == "datasets" and parts[4] == "resolve":
            found = self.server.repositories.get("/".join(parts[2:4]), {}).get("/".join(parts[6:]))
        if found is None:
            self._answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        tag = hashlib.sha1(found).hexdigest()
        self._send(found, 200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(json.dumps(content).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_TOKEN", "hf_made_up")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_bundle_goes_up_and_comes_down_as_it_was(hub: Hub, bundled: Path) -> None:
    address = upload_bundle(bundled, "me/shapes")
    assert address == "hub:me/shapes/shapes.zip"
    assert hub.repositories == {"me/shapes": {"shapes.zip": bundled.read_bytes()}}
    assert download_bundle(address).read_bytes() == bundled.read_bytes()


def test_what_is_no_bundle_does_not_go_up(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"is not .* zip"):
        upload_bundle(tmp_path / "x.zip", "me/shapes")
    assert not hub.repositories


@pytest.mark.parametrize("address", ["hub:me/none/x.zip", "hub:me/none/x.zip@v1"])
def test_what_is_not_there_is_one_line(hub: Hub, address: str) -> None:
    with pytest.raises(InputError, match=f"{address} cannot be downloaded: "):
        download_bundle(address)


@pytest.mark.parametrize("address", ["hub:x.zip", "hub:me/x.zip", "hub:me/birds/x.tar", "me/birds/x.zip"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"expected hub:USER/DATASET/FILE\.zip"):
        download_bundle(address)
