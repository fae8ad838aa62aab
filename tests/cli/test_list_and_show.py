from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.pipeline.components import all_registries


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("kind", all_registries())
def test_every_kind_is_listed_with_what_each_is(kind: str) -> None:
    shown = run("list", kind)
    registry = all_registries()[kind]
    for name in registry:
        assert name in shown
        assert registry.get(name).about.split()[0] in shown
    assert run("list", registry.kind) == shown  # the singular does as well


def test_all_kinds_at_once_and_as_json() -> None:
    shown = run("list")
    assert all(f"{kind}:" in shown for kind in all_registries())
    printed = json.loads(run("list", "samplers", "--json"))
    (hardest,) = [one for one in printed["samplers"] if one["name"] == "hardest"]
    assert hardest["options"]["rounds"] == {"description": "rounds of pruning", "type": "integer"} | {
        "minimum": 1,
        "default": 1,
    }


def test_one_is_shown_with_its_options_what_it_needs_and_an_example() -> None:
    shown = run("show", "hardest")
    assert "rounds" in shown
    assert "a whole number of at least 1" in shown
    assert "Needs: --features" in shown
    assert "Example: hardest(rounds=2)" in shown
    assert json.loads(run("show", "hardest", "--json"))["mode"]["enum"] == ["hard", "easy"]


def test_a_name_of_two_kinds_shows_both_and_a_paper_is_named() -> None:
    shown = run("show", "table")
    assert "layout table" in shown
    assert "detector table" in shown
    assert "It has no options." in shown
    assert json.loads(run("show", "table", "--json")).keys() == {"layout", "detector"}
    assert "Paper: " in run("show", "tim")


def test_every_component_can_be_shown() -> None:
    for registry in all_registries().values():
        for name in registry:
            assert f"{registry.kind} {name}" in run("show", name)
