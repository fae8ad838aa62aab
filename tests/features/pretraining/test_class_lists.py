"""Labels that are whole names of ImageNet's classes are found; parts of names are not."""

from __future__ import annotations

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.errors import UnknownName
from shotproof.features.pretraining.class_lists import IMAGENET, shared_names

LINES = (resources.files("shotproof.features.pretraining") / "imagenet.txt").read_text("utf-8").splitlines()
NAMES = [name for line in LINES for name in line.split(", ")]


def test_the_list_has_a_thousand_classes_in_their_order() -> None:
    assert len(set(LINES)) == len(LINES) == 1000
    known = {0: "tench", 1: "goldfish", 207: "golden retriever", 281: "tabby", 285: "Egyptian cat", 340: "zebra"}
    known |= {504: "coffee mug", 779: "school bus", 817: "sports car", 954: "banana", 999: "toilet tissue"}
    assert {place: LINES[place].split(", ")[0] for place in known} == known
    assert all(name == name.strip() != "" for name in NAMES)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("014.Indigo_Bunting", "indigo bunting"),
        ("090.Red_breasted_Merganser", "red-breasted merganser"),
        ("GOLDEN-RETRIEVER", "golden retriever"),
        ("school_buses", None),  # only a plural's s
        ("teapots", "teapot"),
        ("Persian cats", "Persian cat"),
        ("101.White_Pelican", None),
        ("American_Goldfinch", None),
        ("finch", None),
        ("n02123394", None),
        ("", None),
        ("7", None),
    ],
)
def test_a_label_is_a_whole_name_or_none(label: str, name: str | None) -> None:
    assert shared_names([label], IMAGENET) == ([] if name is None else [name])


@given(st.sampled_from(NAMES), st.sampled_from(" _-"), st.sampled_from(["", "7_", "012."]), st.booleans())
def test_every_name_is_found_however_folders_spell_it(name: str, between: str, number: str, upper: bool) -> None:
    spelled = f"{number}{name.replace(' ', between)}"
    assert len(shared_names([spelled.upper() if upper else spelled], IMAGENET)) == 1


def test_a_list_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="list of classes"):
        shared_names(["cat"], "imagenot")
