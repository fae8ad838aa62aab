"""Files on an HTTPS server: read with range requests, and never over HTTP."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.features.encoder import encode
from shotproof.media.images import open_image
from tests.drawn_images import draw_catalog

pytestmark = pytest.mark.scale


class Handler(http.server.BaseHTTPRequestHandler):
    """Server of files in a folder; it supports ranges unless the path begins with /plain."""

    folder: Path
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Range"]))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:9/a.png")
            self.end_headers()
            return
        ranged = not self.path.startswith("/plain")
        path = self.folder / self.path.removeprefix("/plain").partition("?")[0].lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        if ranged:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = data[first : last + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        else:
            part = data
            self.send_response(200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    certificate = _certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Handler.folder, Handler.asked = tmp_path / "data", []
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    thread.join()
    listening.server_close()


def _certificate(folder: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("plain", ["", "/plain"])
def test_a_table_and_its_items(server: str, tmp_path: Path, plain: str) -> None:
    local = draw_catalog(tmp_path / "data", 6)
    names = [path.relative_to(tmp_path / "data").as_posix() for path in local.paths]
    rows = [f"{server}{plain}/{name}?size=1,{label}" for name, label in zip(names, "aabbcc", strict=True)]
    (tmp_path / "data/items.csv").write_text("\n".join(["path,label", *rows]))
    catalog = read_layout(f"{server}{plain}/items.csv", "table")
    catalog.write(tmp_path / "data/catalog.parquet")
    catalog = Catalog.read(f"{server}{plain}/catalog.parquet")
    features = encode(catalog, "pixels(size=4)")
    here = encode(local, "pixels(size=4)")
    assert sorted(map(tuple, features.array.tolist())) == sorted(map(tuple, here.array.tolist()))
    assert any(asked == "bytes=0-0" for _, asked in Handler.asked)


def test_what_cannot_be_read_is_told(server: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(InputError, match=rf"catalog file {server}/no.parquet does not exist"):
        Catalog.read(f"{server}/no.parquet")
    with pytest.raises(UnreadableItem, match="not https"):
        open_image(Path(f"{server}/moved.png"))


def test_a_server_that_nobody_vouches_for_is_refused(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(UnreadableItem, match=r"no response: .*certificate verify failed"):
        open_image(Path(f"{server}/a.png"))
