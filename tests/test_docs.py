"""The docs say what the code does: option tables and the experiment's schema are those of the records."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import jsonschema
import pytest
from tools.option_tables import DOCS, pages
from tools.site_pages import command_line
from typer.main import get_command

from shotproof.cli.app import COMMANDS, app
from shotproof.pipeline.components import all_registries
from shotproof.pipeline.experiment_file import ExperimentFile


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_what_is_generated_has_not_drifted(path: Path) -> None:
    expected = pages()[path]
    assert path.read_text(encoding="utf-8") == expected, "python -m tools.option_tables writes it anew"


def test_every_kind_and_every_section_has_its_table() -> None:
    told = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    for kind in all_registries():
        assert f"<!-- options:{kind} -->" in told, kind
    for section in ExperimentFile.options():
        assert f"<!-- keys:{section.name} -->" in told, section.name


def test_examples_of_commands_are_code() -> None:
    page = command_line()
    assert "\n\n    shotproof show samplers\n\n" in page
    assert "\n\nFor a run:\n\n    shotproof explain hardness my-run/\n\n" in page
    assert " \\\n        -o results.parquet\n\n    shotproof evaluate" in page
    assert not [line for line in page.splitlines() if line.startswith(("shotproof ", "Example:"))]


def test_every_command_is_in_the_table_of_commands() -> None:
    table = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w ]+)` \|", table, re.MULTILINE) == sorted(
        COMMANDS, key=lambda name: table.index(f"`{name}`")
    )
    sections = re.findall(r"^## (.+)$", command_line(), re.MULTILINE)
    assert sorted(sections) == sorted([*COMMANDS, "Flags of every command"])


def test_commands_on_pages_have_only_flags_that_there_are() -> None:
    root = get_command(app)
    runtime = {flag for option in root.params for flag in (*option.opts, *option.secondary_opts)}
    for path in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line.startswith("    ")]
        for line in re.findall(r"(?<!import )\bshotproof ([a-z][^&\n]*)", "\n".join(lines)):
            words = re.sub(r"\s#.*", "", line).split()
            name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), None)
            assert name is not None, f"{path}: {line}"
            command = functools.reduce(lambda group, word: group.commands[word], name.split(), root)  # type: ignore[attr-defined]
            known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
            flags = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert flags <= known | runtime, f"{path}: {line}"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(ExperimentFile.json_schema())
