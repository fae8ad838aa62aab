"""All that the command line prints is printed in one place, which escapes what could fool a terminal."""

from __future__ import annotations

import ast
import csv
import io
import logging
import sys
import warnings
from pathlib import Path

import pytest

import shotproof
from shotproof.cli import console
from shotproof.core.runtime.progress import progress_bar

ROOT = Path(shotproof.__file__).parent
PRINTING = {
    *("print", "input", "pprint", "pprint.pprint", "traceback.print_exc", "traceback.print_exception", "os.write"),
    *("typer.echo", "typer.secho", "typer.confirm", "typer.prompt", "click.echo", "rich.print", "Console"),
    *(f"sys.{stream}.{call}" for stream in ("stdout", "stderr") for call in ("write", "writelines")),
    *(f"sys.{stream}.buffer.write" for stream in ("stdout", "stderr")),
}
KNOWN = {
    ("cli/console.py", "typer.echo"): "lines, JSON and annotations, escaped",
    ("cli/console.py", "typer.confirm"): "a question, escaped",
    ("cli/console.py", "Console"): "tables, whose cells are escaped",
    ("core/runtime/progress.py", "Console"): "bars, whose titles are escaped",
}
HOSTILE = "[red]ca\x1b[2Jt\u202e\n::error::x"
SHOWN = r"[red]ca\x1b[2Jt\u202e\n::error::x"


def test_nothing_is_printed_elsewhere() -> None:
    found = {
        (file.relative_to(ROOT).as_posix(), ast.unparse(node.func))
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTING
    }
    assert found == set(KNOWN)


def test_nothing_that_prints_is_imported_by_name() -> None:
    names = {"echo", "secho", "confirm", "prompt", "print", "stdout", "stderr", "print_exc"}
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in ("typer", "click", "rich", "sys", "traceback"):
                assert not names & {name.name for name in node.names}, file


def test_what_is_said_has_no_line_feed_which_would_be_escaped() -> None:
    for file in set((ROOT / "cli").rglob("*.py")) - {Path(console.__file__)}:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "say":
                texts = [
                    one.value for argument in node.args for one in ast.walk(argument) if isinstance(one, ast.Constant)
                ]
                assert not any("\n" in text for text in texts if isinstance(text, str)), (file, node.lineno)


def test_every_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.say(HOSTILE, "", f"::{HOSTILE}")
    console.say()
    console.say(HOSTILE, err=True)
    out, err = capsys.readouterr()
    assert out == f"{SHOWN}\n\n\\x3a:{SHOWN}\n\n"
    assert err == f"{SHOWN}\n"


def test_text_keeps_its_own_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.say_text("a\n  b\x1b\n")
    assert capsys.readouterr().out == "a\n  b\\x1b\n"


def test_tables_read_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(HOSTILE, [HOSTILE, "n"], [[HOSTILE, "1"], ["::error::x", "2"]])
    title, head, _, *rows = capsys.readouterr().out.splitlines()
    assert (title.strip(), head.split()[0], rows[0].split()[0]) == (SHOWN, SHOWN, SHOWN)
    assert rows[1].startswith("\\x3a:")


def test_csv_has_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["name", "n"], [HOSTILE, 'a"b, c'], [], ["::x", "\r\0"]])
    console.print_csv(written.getvalue())
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 4
    assert list(csv.reader(io.StringIO(out))) == [["name", "n"], [SHOWN, 'a"b, c'], [], ["\\x3a:x", "\\r\\x00"]]


def test_questions_are_escaped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert console.ask(f"{HOSTILE}. Go on?")
    assert "".join(capsys.readouterr()).strip() == f"{SHOWN}. Go on? [y/N]:"


def test_warnings_and_notes_are_escaped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    with console.printed_warnings(), console.printed_notes():
        warnings.warn(HOSTILE, UserWarning, stacklevel=1)
        logging.getLogger("shotproof").info("note: %s", HOSTILE)
    assert capsys.readouterr().err == f"note: {SHOWN}\nwarning: {SHOWN}\n"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        console.print_all_warnings()
        warnings.warn(HOSTILE, UserWarning, stacklevel=1)
    assert capsys.readouterr().err == f"warning: {SHOWN}\n"
    assert logging.lastResort is not None
    logging.lastResort.handle(logging.makeLogRecord({"msg": HOSTILE, "levelno": logging.WARNING}))
    assert capsys.readouterr().err == f"{SHOWN}\n"


def test_bars_read_no_markup(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("[red]ca\x1b[2Jt", total=1, visible=True) as advance:
        advance(1)
    assert r"[red]ca\x1b[2Jt" in capfd.readouterr().err
