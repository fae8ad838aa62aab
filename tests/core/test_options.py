"""Options: one record per component, from which spelling, checks and schema come."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Component, Option, option
from shotproof.core.registry import Registry


class Drink(Component):
    kind: ClassVar[str] = "drink"


@dataclass(frozen=True)
class Tea(Drink):
    about: ClassVar[str] = "leaves in water"

    minutes: float = option(3.0, "how long", above=0, most=60)
    cups: int = option(1, "how many", least=1)
    milk: bool = option(False, "with milk")
    sort: Literal["black", "green"] = option("black", "which")
    spices: tuple[str, ...] = option((), "what else")
    strengths: tuple[float, float] = option((0.1, 1.0), "from, to", least=0)
    kettle: Path | None = option(None, "of which kettle", path=True)


@dataclass(frozen=True)
class Ordered(Drink):
    name_on_cup: str = option(help="whose", argument=True)
    size: str = option("small", "how large", choices=("small", "large"))


DRINKS: Registry[Drink] = Registry("drink", {"tea": f"{__name__}:Tea", "own-order": f"{__name__}:Ordered"})


@given(
    minutes=st.floats(0.001, 60),
    cups=st.integers(1, 10**6),
    milk=st.booleans(),
    sort=st.sampled_from(["black", "green"]),
    spices=st.lists(st.text(max_size=8), max_size=3).map(tuple),
)
def test_a_spelling_gives_the_same_component_again(**options: Any) -> None:
    tea = Tea(**options)
    assert DRINKS.make(tea.spelling) == tea
    assert DRINKS.make({"name": "tea", **tea.parameters()}) == tea
    assert DRINKS.make({"name": tea.spelling, "cups": 7}) == replace(tea, cups=7)


def test_only_what_differs_from_the_defaults_is_spelled() -> None:
    assert Tea().spelling == "tea"
    assert Tea(cups=2, minutes=4).spelling == "tea(minutes=4, cups=2)"
    assert str(Ordered("Ann (B.)", size="large")) == "own-order:Ann (B.)(size='large')"
    assert DRINKS.make("own-order:Ann (B.)(size='large')") == Ordered("Ann (B.)", "large")


def test_values_take_the_type_of_the_option() -> None:
    tea = Tea(minutes=4, spices=["mint"], kettle="a/b")  # type: ignore[arg-type]
    assert (type(tea.minutes), tea.spices, tea.kettle) == (float, ("mint",), Path("a/b"))
    assert Tea(kettle=None).kettle is None


def test_numbers_of_numpy_become_plain_ones() -> None:
    tea = Tea(minutes=np.float32(2), cups=np.int64(2))  # type: ignore[arg-type]
    assert (type(tea.minutes), type(tea.cups)) == (float, int)
    assert tea.spelling == "tea(minutes=2, cups=2)"
    with pytest.raises(InputError, match="cups: expected a whole number"):
        Tea(cups=np.bool_(True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minutes": 0}, "minutes: expected a number above 0, at most 60, found 0"),
        ({"minutes": float("nan")}, "found nan"),
        ({"minutes": "3"}, "minutes: expected a number above 0, at most 60, found '3'"),
        ({"cups": 0}, "cups: expected a whole number from 1 to 10,000,000, found 0"),
        ({"cups": 1.5}, "cups: expected a whole number from 1 to 10,000,000, found 1.5"),
        ({"cups": True}, "cups: expected a whole number from 1 to 10,000,000, found True"),
        ({"milk": 1}, "milk: expected True or False, found 1"),
        ({"sort": "greem"}, "sort: expected black or green, found 'greem': did you mean 'green'?"),
        ({"spices": "mint"}, "spices: expected a list of text, found 'mint'"),
        ({"spices": ["\ud800"]}, "spices: expected a list of text, found ['\\ud800']"),
        ({"kettle": "\udcff"}, "kettle: expected a path, found '\\udcff': its name is not valid UTF-8"),
        ({"strengths": (1.0,)}, "strengths: expected 2 numbers of at least 0"),
        ({"strengths": (1.0, -1.0)}, "strengths: expected 2 numbers of at least 0"),
        ({"kettle": 3}, "kettle: expected a path or None, found 3"),
    ],
)
def test_what_an_option_cannot_be_is_told_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        DRINKS.make({"name": "tea", **options})
    assert str(caught.value).startswith("drink 'tea': ")
    assert message in str(caught.value)


def test_unknown_names_and_options_get_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown drink 'tee': did you mean 'tea'"):
        DRINKS.make("tee")
    with pytest.raises(InputError, match="drink 'tea' has no option 'cup': did you mean 'cups'"):
        DRINKS.make("tea(cup=2)")
    with pytest.raises(InputError, match=r"drink 'own-order' needs name_on_cup: e.g. own-order:NAME_ON_CUP"):
        DRINKS.make("own-order")
    with pytest.raises(InputError, match=r"'tea' .* after a colon"):
        DRINKS.make("tea:x")
    with pytest.raises(InputError, match="expected a drink"):
        DRINKS.make(3)  # type: ignore[arg-type]


def test_names_are_typed_with_hyphens_and_underscores_are_understood() -> None:
    assert DRINKS.get("own_order") is Ordered


def test_components_are_frozen_equal_by_options_and_travel() -> None:
    tea = Tea(cups=2)
    with pytest.raises(FrozenInstanceError):
        tea.cups = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(tea)) == tea
    assert hash(tea) == hash(Tea(cups=2))


def test_objects_and_classes_are_taken_where_names_are() -> None:
    tea = Tea(cups=2)
    assert DRINKS.make(tea) is tea
    assert DRINKS.make(Tea, cups=2) == tea
    assert DRINKS.Tea is Tea  # as an attribute


def test_the_schema_admits_what_the_record_admits() -> None:
    schema = {"type": "object", "properties": {option.name: option.json_schema() for option in Tea.options()}}
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {"minutes": 4, "cups": 2, "milk": True, "sort": "green", "spices": ["mint"], "strengths": [0, 1]}
    jsonschema.validate(good, schema)
    for key, value in {
        "minutes": 0,
        "cups": 0,
        "milk": 1,
        "sort": "red",
        "spices": "mint",
        "strengths": [-1, 1],
    }.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({key: value}, schema)
    defaults = {option.name: option.json_schema().get("default") for option in Tea.options()}
    assert defaults["minutes"] == 3.0
    assert defaults["spices"] == []


def test_an_option_without_a_rule_takes_anything_of_its_type() -> None:
    assert Option("free", Any, None, "").check(object) is object
    assert Option("number", float, None, "").check(float("inf")) == float("inf")
