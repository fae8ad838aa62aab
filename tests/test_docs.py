"""The docs say what the code does: option tables and the experiment's schema are those of the records."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from tools.option_tables import DOCS, pages
from tools.site_pages import command_line

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
    assert "\n\n    shotproof list samplers\n\n" in page
    assert "\n\nOf a run:\n\n    shotproof explain my-run/\n\n" in page
    assert " \\\n        -o results.parquet\n\n    shotproof evaluate" in page
    assert not [line for line in page.splitlines() if line.startswith(("shotproof ", "Example:"))]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(ExperimentFile.json_schema())
