"""Conditions: what they hold of, three values where something is not known, and what cannot be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.tasks.conditions import ItemFacts

VIEWS = ["side", "front", "back", None, "top left"]
ITEMS = ItemFacts(
    Catalog(
        pa.table(
            {
                "item": list("abcde"),
                "path": list("abcde"),
                "label": ["x", "x", "y", "y", "y"],
                "split": ["all"] * 5,
                "view": VIEWS,
                "width": [1.0, 2.5, None, 4.0, 5.0],
                "tall": [True, False, None, True, False],
            }
        )
    ),
    Attributes.from_words({"a": ["blurry"], "b": [], "c": ["blurry", "dark sky"], "d": None, "e": ["dark sky"]}),
)


def held(condition: str) -> str:
    return "".join(np.array(list("abcde"))[ITEMS.matches(condition)])


@pytest.mark.parametrize(
    ("condition", "items"),
    [
        ("blurry", "ac"),
        ("not blurry", "be"),
        ("'dark sky'", "ce"),
        ("blurry and not 'dark sky'", "a"),
        ("blurry or view = front", "abc"),
        ("view = side", "a"),
        ("view == side", "a"),
        ("view != side", "bce"),
        ("not view = side", "bce"),
        ('view = "top left"', "e"),
        ("view in (front, back)", "bc"),
        ("view not in (front, back)", "ae"),
        ("not view in (front, back)", "ae"),
        ("width > 2.5", "de"),
        ("width >= 2.5", "bde"),
        ("width<4", "ab"),
        ("width <= 1", "a"),
        ("width = 4", "d"),
        ("width != 4", "abe"),
        ("tall", "ad"),
        ("not tall", "be"),
        ("tall = False", "be"),
        ("label = x and (tall or blurry)", "a"),
        ("label = x and tall or blurry", "ac"),
        ("not (view = side or view = back)", "be"),
        ("not not blurry", "ac"),
        ("view = nowhere", ""),
        ("blurry or width > 3", "acde"),  # d: nothing is known of its words, yet it is wide
    ],
)
def test_what_conditions_hold_of(condition: str, items: str) -> None:
    assert held(condition) == items


def conditions() -> st.SearchStrategy[tuple[str, Any]]:
    """Conditions with a reading of their own: a function of an item's row to True, False or None."""
    facts = {
        "blurry": [True, False, True, None, False],
        "tall": [True, False, None, True, False],
        "view = side": [True, False, False, None, False],
        "width > 2": [False, True, None, True, True],
    }
    leaves = st.sampled_from([(text, lambda i, v=values: v[i]) for text, values in facts.items()])

    def joined(inner: st.SearchStrategy[tuple[str, Any]]) -> st.SearchStrategy[tuple[str, Any]]:
        def either(pair: Any) -> tuple[str, Any]:
            (a, f), (b, g) = pair
            kleene = {(True, True): True, (False, False): False}
            return f"({a} or {b})", lambda i: True if True in (f(i), g(i)) else kleene.get((f(i), g(i)))

        def both(pair: Any) -> tuple[str, Any]:
            (a, f), (b, g) = pair
            kleene = {(True, True): True}
            return f"({a} and {b})", lambda i: False if False in (f(i), g(i)) else kleene.get((f(i), g(i)))

        def turned(one: Any) -> tuple[str, Any]:
            return f"not {one[0]}", lambda i: {True: False, False: True, None: None}[one[1](i)]

        pairs = st.tuples(inner, inner)
        return st.one_of(pairs.map(either), pairs.map(both), inner.map(turned))

    return st.recursive(leaves, joined, max_leaves=6)


@given(conditions())
def test_any_condition_follows_kleenes_logic(condition: tuple[str, Any]) -> None:
    text, truth = condition
    assert ITEMS.matches(text).tolist() == [truth(i) is True for i in range(5)]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "missing at the end"),
        ("blurry and", "missing at the end"),
        ("and blurry", "missing before 'and'"),
        ("(blurry", r"'\)' is missing"),
        ("blurry)", r"'\)' is unexpected"),
        ("blurry dark", "'dark' is unexpected"),
        ("view in front", r"'\(' is missing"),
        ("view in (front", r"'\)' is missing"),
        ("view =", "missing at the end"),
        ("view = 'side", "cannot read ''side'"),
        ("blury", "did you mean 'blurry'"),
        ("view", "column 'view' is not Boolean: .*view = VALUE"),
        ("veiw = side", "unknown column of the catalog 'veiw': did you mean 'view'"),
        ("view > 3", "'>' needs a numeric column.*'view' has string"),
        ("width > wide", "column 'width' .* 'wide' is not a number"),
        ("__import__('os')", "neither an attribute nor"),
        ("(" * 300, "it has 300 parts, more than the 200 allowed"),
    ],
)
def test_conditions_that_cannot_be_read(condition: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        held(condition)


def test_without_attributes_a_word_is_unknown() -> None:
    with pytest.raises(InputError, match="no attributes were given"):
        ItemFacts(ITEMS.catalog).matches("blurry")


def test_values_that_no_item_has_are_told() -> None:
    message = ITEMS.absent_values("view in (sied, front) and width = 9")
    assert "no item has view = sied: did you mean 'side'" in message
    assert "no item has width = 9" in message
    assert "front" not in message.partition("(known")[0]
