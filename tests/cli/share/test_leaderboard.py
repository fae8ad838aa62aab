from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.comparison.card import CardRemedy
from tests.drawn_cards import make_card
from tests.drawn_results import draw_results, draw_tasks


def test_the_first_are_printed_with_their_ranks_and_the_site_is_told(tmp_path: Path) -> None:
    draw_results(draw_tasks("random", tasks=40), {"ncc": 0.5, "knn": 0.9, "ridge": 0.5}).write(tmp_path / "all.parquet")
    result = CliRunner().invoke(app, ["share", "leaderboard", str(tmp_path), "--metric", "wacc"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "random-1-shot, birds (test): the first 3 of 3"
    assert lines[3].startswith("1 of 3")
    assert sum(line.startswith("2 to 3 of 3") for line in lines) == 2
    assert (tmp_path / "site" / "index.html").is_file()
    assert lines[-1].endswith("index.html")


def test_remedies_are_printed(tmp_path: Path) -> None:
    remedy = CardRemedy("features", "wccn(ridge=10)", 8)
    replace(make_card(), remedies=(remedy,)).write(tmp_path / "card.json")
    result = CliRunner().invoke(app, ["share", "leaderboard", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (stated,) = (line for line in result.output.splitlines() if "wccn" in line)
    assert stated.startswith("cosine on lite0: ")
    assert stated.endswith("wccn(ridge=10), fitted on 8 classes.")
