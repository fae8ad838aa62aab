from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.cli.app import COMMANDS
from shotproof.core.errors import InputError
from shotproof.pipeline.components import all_registries
from tests.fuzzing import campaign
from tests.fuzzing.execute import Outcome
from tests.fuzzing.formats import FORMATS
from tests.fuzzing.values import all_toml_values

EXAMPLES = 12  # over all commands
CASES = [(name, command) for name, each in FORMATS.items() for command in each.commands]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with campaign.bench() as made:
        yield made


def test_every_command_that_reads_files_is_tried() -> None:
    tried = [command for each in FORMATS.values() for command in each.commands.values() if not callable(command)]
    names = {" ".join(command[:length]) for command in tried for length in (1, 2)}
    assert set(COMMANDS) - names == {"demo", "doctor"}  # which read no files


def test_every_format_is_malformed_through_every_command(folder: Path) -> None:
    for number, (name, command) in enumerate(CASES):
        data = bytes([(number * 37 + place * 101) % 256 for place in range(64)])
        found = campaign.tried(name, command, data, folder)
        assert not found.outcome.is_bug, f"{name}, {command}: {found.outcome}\n{found.told}"


@pytest.mark.parametrize("kind", list(all_registries()))
def test_every_option_of_every_component_takes_a_value_or_refuses_it(kind: str) -> None:
    registry = all_registries()[kind]
    for name in registry:
        component = registry.get(name)
        required = {option.name: "x" for option in component.options() if option.required}
        for option in component.options():
            for value in all_toml_values():
                with contextlib.suppress(InputError):
                    str(component.with_options(name, {**required, option.name: value}))


@settings(derandomize=True, max_examples=EXAMPLES, database=None)
@given(case=st.sampled_from(CASES), data=st.binary(min_size=32, max_size=64))
def test_whatever_a_file_holds_is_a_success_or_one_line(folder: Path, case: tuple[str, str], data: bytes) -> None:
    found = campaign.tried(*case, data, folder)
    assert not found.outcome.is_bug, f"{case}: {found.outcome}\n{found.told}"


@pytest.mark.parametrize(("name", "file"), campaign.corpus(), ids=lambda one: getattr(one, "name", one))
def test_what_once_failed_is_a_success_or_one_line(folder: Path, name: str, file: Path) -> None:
    for command in FORMATS[name].commands:
        found = campaign.tried_content(name, command, file.read_bytes(), folder)
        assert not found.outcome.is_bug, f"{command}: {found.outcome}\n{found.told}"


@pytest.mark.parametrize("name", ["results"])
def test_a_good_file_is_a_success(folder: Path, name: str) -> None:
    content = (folder / FORMATS[name].file).read_bytes()
    for command in FORMATS[name].commands:
        assert campaign.tried_content(name, command, content, folder).outcome is Outcome.SUCCESS, command
