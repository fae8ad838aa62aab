from __future__ import annotations

import pytest

from shotproof.core.text import is_storable, masked, storable

KEY = "sk-proj-0123456789/abcdefghij"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (KEY, "***"),
        (f"bad key {KEY}, sorry", "bad key ***, sorry"),
        (KEY * 2, "***"),
        (f"cut off: {KEY[:9]}", "cut off: ***"),
        (f"...{KEY[-8:]}", "...***"),
        (f"Bearer%20{KEY.replace('/', '%2F')}", "Bearer%20***"),
        (f"{KEY[:12]}***{KEY[-4:]}", f"******{KEY[-4:]}"),  # what providers show of a key themselves
        ("sk-proj", "sk-proj"),  # which many keys begin with
    ],
)
def test_eight_characters_in_a_row_are_masked(text: str, expected: str) -> None:
    assert masked(text, KEY) == expected


def test_a_short_secret_is_masked_whole_and_none_masks_nothing() -> None:
    assert masked("the key EMPTY, not EMPT", "EMPTY") == "the key ***, not EMPT"
    assert masked("text", "") == "text"


def test_half_surrogate_pairs_are_no_text() -> None:
    text = "a\ud800b \U0001f426"
    assert not is_storable(text)
    assert storable(text) == "a\ufffdb \U0001f426"
    assert is_storable(storable(text))
