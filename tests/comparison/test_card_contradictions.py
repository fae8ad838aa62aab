"""Whoever reads a card refuses one whose numbers contradict each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.pipeline.leaderboard_files import leaderboard
from shotproof.pipeline.read import read
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis, with_estimates


def test_a_card_whose_means_contradict_its_tasks_is_refused_by_every_reader(tmp_path: Path) -> None:
    axis = replace(random_axis(), by_task={"acc": (79.0,) * 600})
    file = tmp_path / "card.json"
    make_card(axis).write(file)
    for reader in (Card.read, read):
        with pytest.raises(InputError, match=r"accuracy, acc: 80.0 is not the mean .*, 79.0000"):
            reader(file)
    with pytest.raises(InputError, match=r"card.json: random-5-shot: accuracy, acc: 80.0 is not the mean"):
        leaderboard(tmp_path)
    assert Card.read(file, checked=False) == make_card(axis)


def test_a_gap_of_its_own_making_is_refused(tmp_path: Path) -> None:
    make_card(with_estimates(stress_axis(), gap={"acc": card_number(0.1, 1.0)})).write(tmp_path / "card.json")
    with pytest.raises(InputError, match=r"fewstab: gap, acc: 0.1 is not .*reference minus"):
        Card.read(tmp_path)


def test_an_unknown_metric_is_refused() -> None:
    content = make_card().to_json() | {"metric": "f1"}
    with pytest.raises(InputError, match="unknown metric 'f1'"):
        Card.from_json(content)


def test_the_folder_of_a_run_has_no_card(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match=r"has no card\.json: shotproof profile writes one"):
        Card.read(tmp_path)
