from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from typer.testing import CliRunner

from shotproof.cli.app import app
from tests.explored_run import write_run


def test_an_export_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_run(tmp_path / "run")
    result = CliRunner().invoke(app, ["view", str(tmp_path / "run"), "--export", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "files for any web server" in result.output
    assert (tmp_path / "out" / "index.html").is_file()


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    write_run(tmp_path)
    command = [sys.executable, "-m", "shotproof", "view", str(tmp_path), "--no-open", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests run unseen
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{url}data/index.json") as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
    assert (server.returncode, said) == (0, "")
