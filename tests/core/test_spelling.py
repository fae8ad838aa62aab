from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.errors import InputError
from shotproof.core.spelling import parse_call, parse_spelling, write_call

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.lists(SCALARS, max_size=3).map(tuple)
NAMES = st.from_regex(r"[a-z][a-z0-9_.\-]{0,8}", fullmatch=True)
OPTIONS = st.dictionaries(st.from_regex(r"opt_[a-z]{1,5}", fullmatch=True), VALUES, max_size=4)


@given(name=NAMES, options=OPTIONS)
def test_a_written_call_is_read_back(name: str, options: dict[str, Any]) -> None:
    parsed_name, parsed = parse_call(write_call(name, options))
    assert parsed_name == name
    assert parsed == options
    kinds = {key: (type(value), type(options[key])) for key, value in parsed.items()}
    # A whole number is written as people write it: 1 for 1.0.
    assert all(read is given or (read, given) == (int, float) for read, given in kinds.values())


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
    ("text", "parts"),
    [
        ("hf:facebook/dinov2(pooling='cls')", ("hf", "facebook/dinov2", {"pooling": "cls"})),
        ("file:a (1).npz", ("file", "a (1).npz", {})),
        ("file:C:\\data", ("file", "C:\\data", {})),
        ("two-tower:x(template='a: {}')", ("two-tower", "x", {"template": "a: {}"})),
        ("l2", ("l2", None, {})),
        ("center(base='a:b')", ("center", None, {"base": "a:b"})),
    ],
)
def test_an_argument_stands_after_a_colon(text: str, parts: tuple[str, str | None, dict[str, Any]]) -> None:
    assert parse_spelling(text) == parts


def test_nothing_after_a_colon_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot read change 'mixed-same\(plate=a\)': option 'plate'"):
        parse_spelling("mixed-same(plate=a)", "change")
    with pytest.raises(InputError, match="cannot read change ''"):
        parse_spelling("", "change")
    with pytest.raises(InputError, match=r"encoder 'hf:': expected something after the colon, e\.g\. hf:NAME"):
        parse_spelling("hf:", "encoder")
