"""Flags of all commands, found from the table of commands: values that no command can use are one line at once."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.models import OptionInfo

from shotproof.cli.app import COMMANDS, main, options

HUGE = 10**23


class Parameter(NamedTuple):
    """A flag or an argument of a command."""

    command: str
    flag: str  # empty: an argument
    kinds: tuple[Any, ...]
    required: bool


def parameters() -> Iterator[Parameter]:
    """All of all commands, by the signatures of their functions."""
    for command, verb in {**COMMANDS, "doctor": options}.items():  # the flags of the runtime, with any command
        hints = typing.get_type_hints(verb, include_extras=True)
        for name, each in inspect.signature(verb).parameters.items():
            kind, *infos = typing.get_args(hints[name]) or (hints[name],)
            if not infos:
                continue  # the context, which no user gives
            # Typer takes the first name of a flag for its default, until it reads the signature itself.
            names = [str(infos[0].default), *(infos[0].param_decls or ()), f"--{name.replace('_', '-')}"]
            spelled = next(name for name in names if name.startswith("-"))
            flag = spelled if isinstance(infos[0], OptionInfo) else ""
            within = [one for of in typing.get_args(kind) for one in (of, *typing.get_args(of))]
            yield Parameter(command, flag, (kind, *within), each.default is each.empty)


PARAMETERS = list(parameters())
WHOLE_NUMBERS = [(parameter.command, parameter.flag) for parameter in PARAMETERS if int in parameter.kinds]
PATHS = [(parameter.command, parameter.flag) for parameter in PARAMETERS if Path in parameter.kinds]


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command in an empty folder, with a value for whatever else it cannot do without; its one line."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, flag: str, value: str) -> str:
        others = [
            parameter
            for parameter in PARAMETERS
            if parameter.command == name and parameter.required and parameter.flag != flag
        ]
        given = [text for each in others for text in ([each.flag, "x"] if each.flag else ["x"])]
        monkeypatch.setattr(sys, "argv", ["shotproof", *name.split(), *([flag] if flag else []), value, *given])
        with pytest.raises(SystemExit) as ended:
            main()
        lines = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert len(lines) == 1
        assert not list(tmp_path.iterdir())
        return lines[0]

    return run


def test_the_table_has_whole_numbers() -> None:
    assert {("sample", "--tasks"), ("train", "--epochs"), ("train", "--seed")} <= set(WHOLE_NUMBERS)
    assert len(WHOLE_NUMBERS) > 35


@pytest.mark.parametrize("value", [-1, HUGE])
@pytest.mark.parametrize(("name", "flag"), WHOLE_NUMBERS)
def test_a_whole_number_that_no_command_can_use(refusal: Callable[..., str], name: str, flag: str, value: int) -> None:
    assert refusal(name, flag, str(value)).startswith(f"error: Invalid value for '{flag}'")


def test_the_table_has_paths() -> None:
    assert {("train", "--output"), ("train", "--from"), ("compare", "")} <= set(PATHS)
    assert len({command for command, _ in PATHS}) > 18


@pytest.mark.parametrize(("name", "flag"), PATHS)
def test_an_empty_path_is_not_the_working_folder(refusal: Callable[..., str], name: str, flag: str) -> None:
    assert (
        refusal(name, flag, "") == f"error: the argument after '{flag or name.split()[-1]}' is empty: expected a value"
    )


def test_nothing_after_an_equals_sign_is_no_value(refusal: Callable[..., str]) -> None:
    assert refusal("train", "--output=", "x").startswith("error: --output: expected a value")


def test_a_model_is_no_folder(refusal: Callable[..., str]) -> None:
    assert refusal("train", "--output", ".") == "error: . is a folder, expected a file name"
