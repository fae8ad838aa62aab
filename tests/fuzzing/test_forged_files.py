"""Whatever a file names, no command imports or runs code, asks a server, or gives away another file."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from shotproof.cli.app import main
from shotproof.core.errors import ShotproofError
from tests.fuzzing import campaign
from tests.fuzzing.execute import OUTPUT, Command
from tests.fuzzing.forgery import forgeries
from tests.fuzzing.formats import FORMATS

pytestmark = pytest.mark.strangers

SECRET = "0f6f2c3a-only-in-the-secret-file"
CODE = """
import pathlib
pathlib.Path(__file__).with_name("ran").touch()

class Head:
    def fit(self, support, labels):
        return self

    def predict(self, query):
        return query
"""
PAYLOADS = {
    "shell": "python:subprocess:Popen(args='touch ran', shell=True)",
    "file": "forged_code.py:Head",
    "module": "python:forged_code:Head()",
    "head within a head": "bpa(head='forged_code.py:Head')",
    "server": "chat(model='m', url='http://127.0.0.1:9/v1', retries=0, timeout=1)",
    "own server": "chat(model='m', retries=0, timeout=1)",
    "model elsewhere": "model:ELSEWHERE/secret.csv",
    "distances elsewhere": "semantic(class_distances='ELSEWHERE/secret.csv')",
    "features elsewhere": "file:ELSEWHERE/secret.csv",
    "transform elsewhere": "pixels(size=2) > center(base='ELSEWHERE/secret.csv')",
    "download": "hf:forged/model(hub=True)",
    "path": "ELSEWHERE/secret.csv",
}
RECORDED = (".parquet", ".json", ".toml", ".model", ".checkpoint", "bundle.zip")
WATCHED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.getaddrinfo")
_seen: list[str] | None = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None and event in WATCHED:
        _seen.append(f"{event} {arguments!r:.200}")


@functools.cache
def _install_watch() -> None:
    """Watch from now on: a hook stays for as long as the process, and every test would pay for it."""
    sys.addaudithook(_watch)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("elsewhere")
    (made / "secret.csv").write_text(f"class,{SECRET}\n{SECRET},0\n")
    return made


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with campaign.bench() as made, pytest.MonkeyPatch.context() as patch:
        (made / "forged_code.py").write_text(CODE)
        patch.syspath_prepend(str(made))
        patch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        yield made


@contextlib.contextmanager
def watching() -> Iterator[list[str]]:
    global _seen
    _install_watch()
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


def call(command: Command, folder: Path) -> str:
    """Run a command as a user without a terminal does; what it printed."""
    printed = io.StringIO()
    before = Path.cwd(), sys.argv, sys.stdin
    os.chdir(folder)
    sys.stdin = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            if callable(command):
                command()
            else:
                sys.argv = ["shotproof", *command]
                main()
        except (SystemExit, ShotproofError) as stopped:
            printed.write(str(stopped))
        finally:
            os.chdir(before[0])
            sys.argv, sys.stdin = before[1:]
    return printed.getvalue()


def contents(output: Path) -> Iterator[bytes]:
    """What a command has written, zips unpacked."""
    for file in output.rglob("*"):
        if file.is_file():
            yield file.read_bytes()
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    yield from (archive.read(name) for name in archive.namelist())


def read_by(name: str, folder: Path) -> tuple[Path, Mapping[str, Command]]:
    """The file of a format, and the commands that read it."""
    if name not in OF_A_RUN:
        return folder / FORMATS[name].file, FORMATS[name].commands
    commands = FORMATS["run's record"].commands | {"verify": ("share", "verify", "run")}
    return next((folder / "run").glob(OF_A_RUN[name])), commands


def require_harmless(name: str, payload: str, folder: Path) -> int:
    """Give a forgery of a format to every command that reads it; how many executions that were.

    Of all forgeries, the last, which agrees with itself and gets furthest; by hypothesis' profile `thorough`, all.
    """
    file, commands = read_by(name, folder)
    good = file.read_bytes()
    forged = list(forgeries(file.name, good, payload))
    if not THOROUGH:
        forged = forged[-1:]
    tried = 0
    try:
        for place, content in forged:
            file.write_bytes(content)
            for verb, command in commands.items():
                shutil.rmtree(folder / OUTPUT, ignore_errors=True)
                with watching() as seen:
                    told = call(command, folder)
                where = f"{name}, {place}, {verb}: {told[-500:]}"
                assert not seen, f"{where}\n{seen}"
                assert not (folder / "ran").exists(), where
                assert "forged_code" not in sys.modules, where
                assert SECRET not in told, where
                assert not any(SECRET.encode() in written for written in contents(folder / OUTPUT)), where
                tried += 1
    finally:
        file.write_bytes(good)
    return tried


OF_A_RUN = {"tasks of a run": "tasks-*.parquet", "results of a run": "results/**/*.parquet"}
# Listings of data sets and the answers of servers that a user asks hold no record.
DATA = ("listing", "answer")
KINDS = [*OF_A_RUN, *(name for name, each in FORMATS.items() if each.file.endswith(RECORDED))]
KINDS = [name for name in KINDS if not name.startswith(DATA)]
SPELLED = [*OF_A_RUN, "tasks", "results", "features", "experiment", "card", "bundle", "model"]
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_names_a_shell_command_runs_nothing(folder: Path, name: str) -> None:
    assert require_harmless(name, PAYLOADS["shell"], folder)


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("name", SPELLED)
def test_nothing_that_a_file_names_is_run_or_asked_or_given_away(
    folder: Path, elsewhere: Path, name: str, payload: str
) -> None:
    assert require_harmless(name, PAYLOADS[payload].replace("ELSEWHERE", str(elsewhere)), folder)
