"""Plain values and types: what a strict reader rejects, what every reader converts, and how types are described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from shotproof.core.errors import InputError
from shotproof.core.plain_values import in_words, json_schema, plain, typed


@dataclass(frozen=True)
class Cup:
    size: float
    label: str | None = None
    spoons: tuple[int, ...] = ()


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), True, "5"])
def test_what_no_finite_number_holds_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="gap: expected a number, found"):
        typed(value, float, "gap", strict=True)
    assert typed(10**18, float, "gap", strict=True) == 1e18


def test_a_strict_reader_refuses_what_the_schema_does_not_have() -> None:
    assert typed({"size": 2, "more": 1, "label": None}, Cup) == Cup(2.0)
    for table, message in (
        ({"size": 2, "lable": "a"}, "cup.lable: unknown key: did you mean 'label'"),
        ({"size": None}, "cup.size: expected a number, found None"),
        ({"size": 2, "spoons": [1, None]}, r"cup.spoons\[1\]: expected a whole number, found None"),
        ({}, "cup.size: expected a number, found nothing"),
    ):
        with pytest.raises(InputError, match=message):
            typed(table, Cup, "cup", strict=True)


def test_whole_records_have_every_field_and_others_what_differs() -> None:
    assert plain(Cup(2.0)) == {"size": 2.0}
    assert plain(Cup(float("nan")), complete=True) == {"size": None, "label": None, "spoons": []}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "a whole number or None"),
        (tuple[Path, ...], "a list of paths"),
        (tuple[float, float], "2 numbers"),
        (Literal["a", "b"], "a or b"),
        (Mapping[str, int], "a table"),
    ],
)
def test_types_in_words(kind: Any, words: str) -> None:
    assert in_words(kind) == words


def test_text_stands_for_paths_and_objects_in_a_schema() -> None:
    assert json_schema(str | Path | Cup) == {"type": "string"}
    assert json_schema(Path | Cup) == {"type": "string"}
    assert json_schema(str | int, {"minimum": 1}) == {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}
