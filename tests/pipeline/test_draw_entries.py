"""Entries of samplers that change one thing: what they are compared with, and names of changes in place of samplers."""

from __future__ import annotations

import pytest

from shotproof.core.errors import InputError, UnknownName
from shotproof.pipeline.draw_entries import Draw, changed_draws, with_reference
from shotproof.tasks.sampler import samplers


def draws(*spellings: str, **values: object) -> list[Draw]:
    made: list[Draw] = []
    for spelling in spellings:
        made.append(with_reference(Draw(sampler=samplers.make(spelling), **values), made))  # type: ignore[arg-type]
    return made


SAME, RIVAL, NOISE = (f"changed(change='{name}')" for name in ("mixed-same", "mixed-rival", "noise"))


def test_the_reference_is_the_first_that_changes_nothing_and_pasted_items_for_a_swap() -> None:
    made = draws("hardest", "random", NOISE, RIVAL, SAME, "changed(change='mixed-random')", "changed(change='light')")
    assert [draw.like for draw in made] == [None, None, "hardest", "hardest", "hardest", SAME, "hardest"]


def test_pasted_items_of_another_side_are_no_reference() -> None:
    both = "changed(change='mixed-rival', side='both')"
    assert [draw.like for draw in draws("random", SAME, both)] == [None, "random", "random"]


def test_pasted_items_with_other_options_are_no_reference() -> None:
    loud_same, loud_rival = (f"changed(change='mixed-{name}(margin_db=0)')" for name in ("same", "rival"))
    made = draws("random", SAME, loud_rival, loud_same, loud_rival, "changed(change='mixed-rival(seed=1)')")
    assert [draw.like for draw in made] == [None, "random", "random", "random", loud_same, SAME]


def test_a_swap_gets_pasted_items_with_its_options() -> None:
    earlier = [*draws("random"), *changed_draws(["mixed-same"], "query", None, draws("random"))]
    made = changed_draws(["mixed-rival(margin_db=0)", "mixed-random(margin_db=0)"], "query", None, earlier)
    assert [str(draw) for draw in made] == [
        f"changed(change='mixed-{name}(margin_db=0)')" for name in ("same", "rival", "random")
    ]
    assert [draw.like for draw in made] == ["random", str(made[0]), str(made[0])]


def test_a_reference_that_is_named_stays() -> None:
    named = Draw(sampler=samplers.make(RIVAL), like="random")
    assert with_reference(named, draws("hardest", SAME)).like == "random"


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"none is listed .*: add one, e\.g\. random"):
        draws(NOISE, "random")


def test_several_changes_have_the_shape_of_the_tasks_that_they_change() -> None:
    earlier = draws("random", shots=(2,), query=3, tasks=7, split="test", seeds=(4,))
    made = changed_draws(["blur", "mixed-rival", "mixed-random"], "both", None, earlier)
    names = ["blur", "mixed-same", "mixed-rival", "mixed-random"]
    assert [draw.sampler.change for draw in made] == names  # type: ignore[attr-defined]
    pasted = "changed(change='mixed-same', side='both')"
    assert [draw.like for draw in made] == ["random", "random", pasted, pasted]
    assert {(draw.shots, draw.query, draw.tasks, draw.split, draw.seeds) for draw in made} == {
        ((2,), 3, 7, "test", (4,))
    }


def test_pasted_items_are_drawn_once() -> None:
    earlier = [*draws("random"), *changed_draws(["mixed-same"], "query", None, draws("random"))]
    (rival,) = changed_draws(["mixed-rival"], "query", None, earlier)
    assert rival.like == SAME
    once = changed_draws(["mixed-same", "mixed-rival"], "query", None, draws("random"))
    assert [draw.like for draw in once] == ["random", SAME]


def test_tasks_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match="nothing was evaluated yet"):
        changed_draws(["blur"], "query", None, [])
    with pytest.raises(InputError, match="of: no tasks of sampler 'randm' were evaluated: did you mean 'random'"):
        changed_draws(["blur"], "query", "randm", draws("random"))
    with pytest.raises(UnknownName, match="unknown change 'blurr': did you mean 'blur'"):
        changed_draws(["blurr"], "query", None, draws("random"))
    (found,) = changed_draws(["blur"], "query", "hardest", draws("random", "hardest(effort='high')"))
    assert found.like == "hardest(effort='high')"
