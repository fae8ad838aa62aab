"""Counts of conclusive pairs, from results on closed and open tasks."""

from __future__ import annotations

from reproduction.kept import read_kept
from reproduction.sections.oops import DATA, Design, conclusion_table, data_table, designs, select_tasks

from shotproof.stats.triples import CLOSED
from tests.reproduction.test_kept import evaluated


def test_pairs_at_the_best_number_of_queries_are_compared_task_by_task() -> None:
    sides = [
        evaluated("depletion", name, "ncc", [[right, other] for right, other in pairs])
        for name, pairs in {
            "a": [(9, 9), (5, 6), (2, 2), (7, 8)],
            "b": [(8, 8), (4, 5), (1, 0), (6, 7)],
            "c": [(8, 9), (6, 5), (2, 1), (7, 8)],
        }.items()
    ]
    assert Design("oops-birds", 5, [], [], sides).conclusive_at_best == 2  # b is below a and c on every task


def test_a_set_of_tasks_is_found_with_its_number_in_its_name_too() -> None:
    names = ["depletion-5way-5shot", "depletion-5way-5shot-27tasks", "depletion-5way-5shot-5query-55tasks"]
    kept = [evaluated(name, "a", "ncc", [[1, 2]]) for name in names]
    assert [one.tasks for one in select_tasks(kept, "depletion-5way-5shot")] == names[:2]
    assert [one.tasks for one in select_tasks(kept, "depletion-5way-5shot-5query")] == names[2:]


def test_what_was_not_run_is_said() -> None:
    assert conclusion_table([]).count("not run yet") == 8
    assert data_table([]).count("not run yet") == len(DATA)


def test_the_counts_are_those_of_what_is_kept() -> None:
    birds = next(design for design in designs() if (design.data, design.shot) == ("oops-birds", 5))
    kept = [one for one in read_kept("oops-birds").evaluated if one.tasks == "random-5way-5shot"]
    means = [one.acc.interval() for one in kept]
    apart = sum(a.high < b.low or b.high < a.low for i, a in enumerate(means) for b in means[:i])
    assert birds.triples.conclusive[CLOSED] == apart
    assert len(birds.correlations) == 15
