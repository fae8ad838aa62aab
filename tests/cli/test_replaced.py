"""Flags that are gone: the error says what to type now."""

from __future__ import annotations

import sys

import pytest
import typer

from shotproof.cli.app import app, main
from shotproof.cli.replaced import REPLACED, replacement

CASES = [(command, flag) for command, flags in REPLACED.items() for flag in flags]


@pytest.mark.parametrize(("command", "flag"), CASES)
def test_an_old_flag_ends_the_command_with_its_replacement(
    command: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["shotproof", command, "file.parquet", "-o", "out.parquet", flag, "value"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert REPLACED[command][flag] in told


@pytest.mark.parametrize(("command", "flag"), CASES)
def test_no_command_still_has_a_flag_that_is_called_gone(command: str, flag: str) -> None:
    verb = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    assert flag not in {spelling for parameter in verb.params for spelling in parameter.opts}


def test_other_mistakes_are_not_explained_away() -> None:
    assert replacement(["encode", "catalog.parquet", "--encodr", "lite0"]) is None
    assert replacement(["sample", "--maps"]) is None
    assert replacement([]) is None
    assert replacement(["encode", "c.parquet", "--option=size=4"]) is not None
