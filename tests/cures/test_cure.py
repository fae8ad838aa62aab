"""The outcome of a search: what may be recommended, and its file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.errors import InputError
from shotproof.cures.cure import Cure
from shotproof.cures.remedy import Treatment
from shotproof.report.pages.cure_page import write_cure_page
from tests.drawn_cures import full_cure, make_cure, make_effect, make_row
from tests.fuzzing.choices import Choices
from tests.fuzzing.mutators import changed_json


def test_a_remedy_helps_if_it_lowers_a_loss_and_neither_hurts_nor_costs_accuracy() -> None:
    outcomes = ("helps", "hurts", "cannot tell")
    for first, second, conclusion in product(outcomes, outcomes, "+0-"):
        effects = make_effect(40.0, 15.0, first), make_effect(40.0, 15.0, second, axis="ood")  # type: ignore[arg-type]
        row = make_row("wccn", *effects, accuracy_conclusion=conclusion)
        assert row.helps == ("helps" in (first, second) and "hurts" not in (first, second) and conclusion != "-")


def test_rows_are_found_by_their_remedy() -> None:
    cure = full_cure()
    assert cure.row("preprocess") is cure.tried[1]
    assert cure.row("head") is None
    assert cure.row(None) is None


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    cure = full_cure()
    cure.write(tmp_path / "cure.json")
    assert Cure.read(tmp_path / "cure.json") == cure
    assert Cure.read(tmp_path) == cure  # from the folder of a run
    assert json.loads((tmp_path / "cure.json").read_text()) == cure.to_json()


def test_a_number_that_is_none_is_null_in_the_file(tmp_path: Path) -> None:
    full_cure().write(tmp_path / "cure.json")
    content = json.loads((tmp_path / "cure.json").read_text(), parse_constant=pytest.fail)
    after = content["tried"][2]["effects"][0]["after"]
    assert (after["mean"], after["low"]) == (None, None)
    assert after["refused"]


def test_treatments_are_not_written(tmp_path: Path) -> None:
    cure = make_cure(treatments={"wccn": Treatment("l2 > wccn")})
    cure.write(tmp_path / "cure.json")
    assert Cure.read(tmp_path).treatments == {}
    assert Cure.read(tmp_path) == cure


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda content: {key: value for key, value in content.items() if key != name}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: {**content, "kind": "card"}, '"kind": "cure"'),
        (lambda content: [content], '"kind": "cure"'),
        (lambda content: {**content, "format": 7}, "expected 1, found 7: written by another version"),
        (without("format"), "found None"),
        (without("encoder"), "encoder"),
        (without("tried"), "tried"),
        (lambda content: {**content, "tasks": "many"}, "tasks"),
        (lambda content: {**content, "colour": 1}, "colour"),
        (lambda content: {**content, "tried": [{"remedy": "wccn"}]}, "tried"),
        (lambda content: {**content, "tried": [{**content["tried"][0], "settings": -0.5}]}, "settings"),
        (lambda content: {**content, "level": float("inf")}, "level: expected a number, found inf"),
        (
            lambda content: {**content, "parts": {"fit": 6, "test": 2}},
            "expected fit, choose and confirm, found fit, test",
        ),
        (lambda content: {**content, "tried": []}, "tried: expected a remedy"),
    ],
)
def test_a_file_that_is_no_cure_is_refused_with_the_reason(change: Any, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "cure.json"
    file.write_text(json.dumps(change(full_cure().to_json())))
    with pytest.raises(InputError) as refused:
        Cure.read(file)
    assert str(file) in str(refused.value)
    assert reason in str(refused.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    full_cure().write(tmp_path / "cure.json")
    whole = (tmp_path / "cure.json").read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\xff\xfe" + whole, b"null"):
        (tmp_path / "cure.json").write_bytes(content)
        with pytest.raises(InputError, match=r"cure\.json"):
            Cure.read(tmp_path)


@given(data=st.binary(min_size=32, max_size=64))
def test_whatever_a_file_holds_is_refused_or_can_be_shown(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    whole = json.dumps(full_cure().to_json()).encode()
    (folder / "cure.json").write_bytes(changed_json(whole, Choices(data)))
    with contextlib.suppress(InputError):
        write_cure_page(folder / "cure.html", Cure.read(folder))


def test_a_folder_without_a_cure_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"shotproof cure {tmp_path}"):
        Cure.read(tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        Cure.read(tmp_path / "nowhere.json")
