from __future__ import annotations

import re

import pytest

from shotproof.report.pages.render import breakable


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("everywhere", ["everywhere"]),
        ("hf:facebook/dinov2-small", ["hf:", "facebook/", "dinov2-", "small"]),
        ("snake_case", ["snake_", "case"]),
        ("a" * 20, ["a" * 16, "a" * 4]),
        ("<b>", ["&lt;", "b&gt;"]),
        ("", [""]),
    ],
)
def test_a_name_breaks_after_its_signs_and_within_long_words(name: str, pieces: list[str]) -> None:
    assert breakable(name).split("<wbr>") == pieces


def test_no_character_of_a_name_is_lost() -> None:
    name = "\n é—日本語_x  ('y', 2)" + "z" * 40
    assert re.sub("<wbr>", "", breakable(name)).replace("&#39;", "'") == name
