from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.pipeline.components import all_registries, option_rows, usage
from shotproof.tasks.changed import Changed, Side
from shotproof.tasks.sampler import sample
from shotproof.training.training_recipes import RECIPES
from tests.drawn_layers import draw_masked


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("kind", all_registries())
def test_every_kind_is_listed_with_what_each_is(kind: str) -> None:
    shown = run("show", kind)
    registry = all_registries()[kind]
    for name in registry:
        assert name in shown
        assert registry.get(name).about.split()[0] in shown
    assert run("show", registry.kind) == shown  # the singular does as well


def test_recipes_are_listed_and_shown_with_their_steps_and_settings() -> None:
    shown = run("show", "recipes")
    assert all(name in shown for name in RECIPES)
    assert run("show", "recipe") == shown
    assert {load["name"] for load in json.loads(run("show", "recipes", "--json"))["recipes"]} == set(RECIPES)
    assert "recipes:" in run("show")
    ours = " ".join(run("show", "shotproof").split())
    assert "recipe shotproof: ours" in ours
    assert ours.index("step 1: rfs") < ours.index("step 2: meta-baseline")
    assert "--recipe shotproof -o" in ours
    published = run("show", "fewstab-cub")
    assert "leo, one shot" in published
    assert json.loads(run("show", "fewstab-cub", "--json"))["leo, one shot"] == "lr=0.0005, tasks_per_update=4"
    for name in RECIPES:
        assert f"recipe {name}: {RECIPES[name].about.split()[0]}" in run("show", name)


def test_all_kinds_at_once_and_as_json() -> None:
    shown = run("show")
    assert all(f"{kind}:" in shown for kind in all_registries())
    printed = json.loads(run("show", "samplers", "--json"))
    (hardest,) = [one for one in printed["samplers"] if one["name"] == "hardest"]
    assert hardest["options"]["effort"]["enum"] == ["low", "medium", "high"]
    (greedy,) = [one for one in printed["samplers"] if one["name"] == "greedy"]
    assert greedy["options"]["rounds"] == {"description": "rounds over all support items", "type": "integer"} | {
        "minimum": 1,
        "maximum": 10_000_000,
        "default": 2,
    }


def test_one_is_shown_with_its_options_what_it_needs_and_an_example() -> None:
    shown = run("show", "hardest")
    assert "effort" in shown
    assert "low or medium or high" in shown
    assert "Needs: features.parquet" in shown
    assert "Example: hardest(effort='high')" in shown
    assert re.search(r"\n\noption +values +default", shown)  # the table is apart from the text above it
    assert json.loads(run("show", "hardest", "--json"))["mode"]["enum"] == ["hard", "easy"]


def test_a_name_of_two_kinds_shows_both_and_a_paper_is_named() -> None:
    shown = run("show", "table")
    assert "layout table" in shown
    assert "detector table" in shown
    assert "No options" in shown
    assert json.loads(run("show", "table", "--json")).keys() == {"layout", "detector"}
    assert "Paper: " in run("show", "tim")


def test_every_component_has_what_is_shown_and_one_of_each_kind_is_shown() -> None:
    for registry in all_registries().values():
        for name in registry:
            component = registry.get(name)
            assert component.about
            assert name in usage(name, component)
            assert all(len(row) == 4 for row in option_rows(component))
        assert f"{registry.kind} {name}" in run("show", name)


def test_of_a_layout_the_license_and_the_citation_of_its_data_are_told() -> None:
    told = run("show", "esc50")
    assert "\nLicense: CC BY-NC 3.0" in told
    assert "\nCitation: " in told
    assert "License" not in run("show", "folder")


def test_of_changed_tasks_it_is_told_what_is_changed(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=3, items=6)
    random = sample(catalog, "random", way=3, shot=1, query=2, tasks=4)
    told: dict[Side, str] = {
        "query": "changed query mixed-same in 24 items",
        "both": "changed support mixed-same in 12",
    }
    for side, words in told.items():
        sample(catalog, Changed(change="mixed-same", side=side), like=random).write(tmp_path / "tasks.parquet")
        assert words in " ".join(run("show", str(tmp_path / "tasks.parquet")).split())
    random.write(tmp_path / "tasks.parquet")
    assert "changed query" not in " ".join(run("show", str(tmp_path / "tasks.parquet")).split())
