from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.errors import InputError
from shotproof.specs import parse_call, parse_options, write_call

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.lists(SCALARS, max_size=3).map(tuple)
NAMES = st.from_regex(r"[a-z][a-z0-9_.\-]{0,8}", fullmatch=True)
OPTIONS = st.dictionaries(st.from_regex(r"opt_[a-z]{1,5}", fullmatch=True), VALUES, max_size=4)


@given(name=NAMES, options=OPTIONS)
def test_a_written_call_is_read_back(name: str, options: dict[str, Any]) -> None:
    parsed_name, parsed = parse_call(write_call(name, options))
    assert parsed_name == name
    assert parsed == options
    assert {key: type(value) for key, value in parsed.items()} == {key: type(value) for key, value in options.items()}


@pytest.mark.parametrize("text", ["ridge", "ridge()", " ridge ( ) "])
def test_a_bare_name_has_no_options(text: str) -> None:
    assert parse_call(text) == ("ridge", {})


def test_dots_and_hyphens_are_part_of_a_name() -> None:
    assert parse_call("sklearn.svm.SVC(C=10)") == ("sklearn.svm.SVC", {"C": 10})
    assert parse_call("my-encoder") == ("my-encoder", {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(a=1)",
        "1x",
        "f(1)",
        "f(a=b)",
        "f(a=__import__('os'))",
        "f(a=1)(b=2)",
        "f(a=1) + g(b=2)",
        "f(a=1",
        "f(a=1))",
        "f(**{'a': 1})",
        "f(a={1: 2})",
        "f(a={1})",
        "f(a=b'x')",
        "f(a=1j)",
        "f(a=[x for x in y])",
        "f(a=1, a=2)",
        "f(a=-'x')",
        "f(a=1+1)",
        "f(a=(lambda: 1)())",
        "f(a='\x00')",
        f"f(a={'(' * 5000}1{')' * 5000})",
        f"f(a={'9' * 5000})",
        "f g(a=1)",
        "os;f(a=1)",
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError, match=r"NAME\(option=value"):
        parse_call(text)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("k=1", 1),
        ("k=-1.5", -1.5),
        ("k=True", True),
        ("k=0.5,0.25", (0.5, 0.25)),
        ("k='8'", "8"),
        ("k=cls", "cls"),
        ("k=", ""),
        ("k=a=b", "a=b"),
        ("k=1, other=2", "1, other=2"),
        ("k=) + (", ") + ("),
        ("k=__import__('os')", "__import__('os')"),
        ("k=C:\\data", "C:\\data"),
    ],
)
def test_options_are_literals_or_else_text(pair: str, value: object) -> None:
    assert parse_options([pair]) == {"k": value}


@pytest.mark.parametrize("pairs", [["size"], ["=1"], ["a b=1"], ["a=1", "a=2"]])
def test_options_without_a_key_or_given_twice_are_refused(pairs: list[str]) -> None:
    with pytest.raises(InputError, match="expected key=value"):
        parse_options(pairs)
