"""Text from files and servers cannot move the cursor, begin a line, or issue workflow commands."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.printable import printable, printable_json

TEXT = st.text(st.characters(codec=None, categories=None))  # half surrogate pairs too


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("a\r\n::error::b", r"a\r\n::error::b"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("cat\u202egnp.exe", r"cat\u202egnp.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("line\u2028separator\x85", r"line\u2028separator\x85"),
        ("half \ud800", r"half \ud800"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("::error::x", r"\x3a:error::x"),
        ("\u00a0 ::error::x", "\u00a0 \\x3a:error::x"),
        ("a ##[set-output name=x]y", r"a \x23#[set-output name=x]y"),
    ],
)
def test_what_could_fool_a_terminal_or_a_workflow_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text", ["Übergröße é", "鳥の写真", "طائر", "צִפּוֹר", "पक्षी", "❤️ 🐦", "a::b # c ## d [e]", r"C:\new"]
)
def test_letters_of_every_script_stay(text: str) -> None:
    assert printable(text) == text


@given(TEXT)
def test_nothing_hidden_is_left(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not shown.lstrip().startswith("::")
    assert "##[" not in shown
    shown.encode()


@given(TEXT)
def test_json_has_the_same_values_and_nothing_hidden(text: str) -> None:
    value = {"name": text, text: ["鳥", 1.5, None]}
    shown = printable_json(value)
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert all(printable(line) == line for line in shown.split("\n"))
    assert "鳥" in shown
