from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.explorer import read_site
from shotproof.report.explorer.server import ExplorerServer
from tests.explored_run import write_run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExplorerServer]:
    with ExplorerServer(read_site(write_run(tmp_path_factory.mktemp("run"))), 0) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def ask(
    server: ExplorerServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def test_it_listens_on_the_loopback_interface_alone(server: ExplorerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_the_page_runs_its_own_scripts_alone(server: ExplorerServer) -> None:
    status, content, headers = ask(server, "/?a=b")
    assert status == 200
    assert content.startswith(b"<!doctype html>")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost"])
def test_other_names_for_this_machine_are_refused(server: ExplorerServer, host: str) -> None:
    status, content, _ = ask(server, "/data/index.json", host=host.format(port=server.server_port))
    assert status == 421
    assert b"sets" not in content


def test_localhost_is_a_name_of_its_own(server: ExplorerServer) -> None:
    assert ask(server, "/data/index.json", host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "//etc/passwd",
        "/%2e%2e/secret",
        "/data",
        "/data/",
        "/items/0/",
        "/items/0/%31.jpg",
    ],
)
def test_what_is_no_file_of_the_site_is_not_found(server: ExplorerServer, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path)
    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: ExplorerServer, method: str) -> None:
    assert ask(server, "/", method)[0] == 501


def test_head_has_no_body(server: ExplorerServer) -> None:
    status, content, headers = ask(server, "/explorer.js", "HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["Content-Length"]) > 1000


def test_a_port_in_use_is_refused_by_its_number(server: ExplorerServer) -> None:
    with pytest.raises(InputError, match=rf"port {server.server_port} is in use; choose another one, or 0"):
        ExplorerServer(server.site, server.server_port)


def test_a_port_that_cannot_be_is_refused(server: ExplorerServer) -> None:
    with pytest.raises(InputError, match="port 70000 cannot be used"):
        ExplorerServer(server.site, 70_000)
