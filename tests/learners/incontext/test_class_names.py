from __future__ import annotations

import pytest

from shotproof.core.errors import InputError
from shotproof.learners.incontext.class_names import anonymous_names, named_class, shown_names
from shotproof.learners.items import NO_CLASS

BIRDS = ["owl", "barn owl", "wren", "St. John's warbler"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("owl", 0),
        ("Barn Owl", 1),
        ('  "barn_owl". ', 1),
        ("**wren**", 2),
        ("Class: wren", 2),
        ("The bird is a barn owl!", 1),
        ("St John s Warbler", 3),
        ("It could be an owl or a wren.\nWren", 2),
        ("<think>owl? barn owl? no,</think>wren", 2),
        ("an owl, not a barn owl", NO_CLASS),
        ("owl or wren", NO_CLASS),
        ("wrens", NO_CLASS),
        ("a sparrow", NO_CLASS),
        ("", NO_CLASS),
        ("...", NO_CLASS),
    ],
)
def test_which_class_an_answer_names(answer: str, expected: int) -> None:
    assert named_class(answer, BIRDS) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("class B", 1), ("B", 1), ("b.", 1), ("It belongs to class A", 0), ("a nice B", NO_CLASS), ("class D", NO_CLASS)],
)
def test_which_anonymous_class_an_answer_names(answer: str, expected: int) -> None:
    assert named_class(answer, anonymous_names(3)) == expected


def test_anonymous_names_are_distinct() -> None:
    names = anonymous_names(60)
    assert len(set(names)) == 60
    assert [named_class(name, names) for name in names] == list(range(60))


def test_labels_that_read_the_same_are_refused() -> None:
    with pytest.raises(InputError, match=r"classes 'barn_owl' and 'Barn Owl' read the same: .* labels='anonymous'"):
        shown_names(["barn_owl", "wren", "Barn Owl"])
    with pytest.raises(InputError, match="class '--' has no words"):
        shown_names(["wren", "--"])
