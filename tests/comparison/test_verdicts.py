"""What a comparison is said to show, on results whose truth is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.sentences import MOST_SENTENCES, headline, next_steps
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.results.evaluated import evaluated_sets
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.drawn_results import draw_results, draw_tasks
from tests.drawn_shuffles import drawn_shuffles

Shares = Mapping[str, float]
CHANCE = 1 / 3


def comparison_of(
    random: Shares, biased: Shares, placebo: Shares | None = None, tasks: int = 150, seed: int = 0
) -> Comparison:
    """Methods with these accuracies on random tasks, on FewSTAB's, and on FewSTAB's placebo."""
    stressed = draw_tasks("fewstab", tasks=tasks, seed=seed)
    results = [
        draw_results(draw_tasks(tasks=tasks, seed=seed), random, seed=3 * seed),
        draw_results(stressed, biased, seed=3 * seed + 1),
    ]
    if placebo is not None:
        results.append(draw_results(draw_tasks("placebo", like=stressed), placebo, seed=3 * seed + 2))
    sets = evaluated_sets(results)
    return compare_sets(sets, ("sampler",), reevaluated=drawn_shuffles(sets))


def verdict_of(comparison: Comparison) -> Verdict:
    (found,) = verdicts(comparison)
    return found


def names(of: tuple[object, ...]) -> list[str]:
    return [str(one).split(" on ")[0] for one in of]


def after_losing(skill: Shares, lost: Shares) -> dict[str, float]:
    """Accuracies after such shares of the skill are lost, above chance."""
    return {name: CHANCE + (share - CHANCE) * (1 - lost[name]) for name, share in skill.items()}


SKILL = {"ncc": 0.9, "ridge": 0.8, "knn": 0.7}


def test_where_nothing_is_lost_it_cannot_be_told() -> None:
    comparison = comparison_of(SKILL, SKILL, SKILL, seed=1)
    found = verdict_of(comparison)
    assert (found.losing, found.gaining, found.at_chance, found.most, found.more) == ((), (), (), (), None)
    assert set(names(found.unclear)) == set(SKILL)
    assert found.needed is not None
    measured, told = headline(comparison)
    for part in ("3 classifiers (1 encoder × 3 methods)", "3-way 1-shot", "150 random tasks and 150 fewstab tasks"):
        assert part in measured
    assert "does not show whether any of the 3 classifiers relies on attributes" in told
    lost = [row.intervals["acc"]["sampler"] for row in found.loss.lost.rows]
    low, high = min(interval.low for interval in lost), max(interval.high for interval in lost)
    assert f"placebo is between {low:.1f} and {high:.1f} points" in told


@pytest.mark.parametrize("placebo", [True, False])
def test_on_null_worlds_wrong_statements_are_as_rare_as_the_level_says(placebo: bool) -> None:
    wrong = 0
    for seed in range(40):
        found = verdict_of(comparison_of(SKILL, SKILL, SKILL if placebo else None, tasks=30, seed=seed))
        wrong += bool(found.losing or found.gaining)
    assert wrong <= 6  # 2 are expected; the chance of more than 6 is 0.003


def test_a_planted_gap_is_found_and_with_a_placebo_it_is_leaning() -> None:
    biased = after_losing(SKILL, dict.fromkeys(SKILL, 0.4))
    for placebo in (SKILL, None):
        comparison = comparison_of(SKILL, biased, placebo)
        assert set(names(verdict_of(comparison).losing)) == set(SKILL)
        told = headline(comparison)[1]
        assert told.startswith("On fewstab tasks (3-way 1-shot), all 3 classifiers ")
        assert ("rely on attributes" in told) == (placebo is not None)
        assert ("placebo" in told) == (placebo is not None)
        assert ("compared with random tasks" in told) == (placebo is None)
        assert "95% sampler intervals" in told
        assert "these items only" in told
    assert any("Without shuffled attributes" in step.why for step in next_steps(comparison))


def test_a_gap_that_the_placebo_has_too_is_no_leaning() -> None:
    harder = after_losing(SKILL, dict.fromkeys(SKILL, 0.4))
    found = verdict_of(comparison_of(SKILL, harder, harder))
    assert found.losing == ()
    assert {row.intervals["acc"]["sampler"].low > 10 for row in found.loss.gap.rows} == {True}
    assert "does not show whether" in headline(comparison_of(SKILL, harder, harder))[1]


def test_a_floor_is_named_and_nothing_is_said_of_losing() -> None:
    random, biased = {**SKILL, "ncc": CHANCE}, {**after_losing(SKILL, dict.fromkeys(SKILL, 0.5)), "ncc": CHANCE}
    comparison = comparison_of(random, biased, random)
    found = verdict_of(comparison)
    assert names(found.at_chance) == ["ncc"]
    assert set(names(found.losing)) == {"ridge", "knn"}
    _, told, floor = headline(comparison)
    assert "ncc" not in told
    assert "both classifiers rely on attributes" in told
    assert floor.startswith("ncc is at chance on random tasks (3-way 1-shot)")


def test_where_all_are_at_chance_only_that_is_said() -> None:
    floor = dict.fromkeys(SKILL, CHANCE)
    comparison = comparison_of(floor, dict.fromkeys(SKILL, 0.25), floor)
    found = verdict_of(comparison)
    assert (found.losing, found.unclear, len(found.at_chance)) == ((), (), 3)
    (told,) = headline(comparison)[1:]
    assert "On random tasks (3-way 1-shot), ncc, ridge and knn are at chance" in told


def test_a_ceiling_is_named() -> None:
    random = {**SKILL, "ncc": 0.995}
    comparison = comparison_of(random, after_losing(random, dict.fromkeys(SKILL, 0.3)), random)
    assert names(verdict_of(comparison).at_ceiling) == ["ncc"]
    assert any(told.startswith("ncc is near 100% on random tasks") for told in headline(comparison))


def test_ties_are_a_group() -> None:
    comparison = comparison_of(SKILL, after_losing(SKILL, dict.fromkeys(SKILL, 0.35)), SKILL)
    found = verdict_of(comparison)
    assert (found.most, found.least, found.more, found.than) == ((), (), None, ())
    told = headline(comparison)[1]
    assert "does not rank them" in told
    assert "most" not in told
    assert "least" not in told


def test_a_clear_order_names_the_most_and_the_least() -> None:
    lost = {"ncc": 0.15, "ridge": 0.45, "knn": 0.85}
    comparison = comparison_of(SKILL, after_losing(SKILL, lost), SKILL, tasks=400)
    found = verdict_of(comparison)
    assert (names(found.most), names(found.least)) == (["knn"], ["ncc"])
    shares = {row.classifier.method: row.intervals["acc"]["sampler"] for row in found.loss.skill.rows}
    told = headline(comparison)[1]
    for name, words in (("knn", "knn loses the most"), ("ncc", "ncc the least")):
        lost_share = shares[name]
        assert f"{words} ({lost_share.mean:.1f}% [{lost_share.low:.1f}, {lost_share.high:.1f}])" in told
    assert shares["knn"].mean == pytest.approx(85, abs=8)


def test_groups_that_can_be_told_apart_are_named_as_groups() -> None:
    skill = {"a": 0.9, "b": 0.9, "c": 0.8, "d": 0.8}
    comparison = comparison_of(skill, after_losing(skill, {"a": 0.2, "b": 0.2, "c": 0.7, "d": 0.7}), skill, tasks=300)
    found = verdict_of(comparison)
    assert (set(names(found.most)), set(names(found.least))) == ({"c", "d"}, {"a", "b"})
    told = headline(comparison)[1]
    shares = {row.classifier: row.intervals["acc"]["sampler"] for row in found.loss.skill.rows}
    largest, smallest = shares[found.most[0]], shares[found.least[-1]]
    assert f"lose the most (up to {largest.mean:.1f}% [{largest.low:.1f}, {largest.high:.1f}])" in told
    assert f"the least (down to {smallest.mean:.1f}% [{smallest.low:.1f}, {smallest.high:.1f}])" in told


def test_groups_that_overlap_have_no_most_and_no_least() -> None:
    """The one in the middle can be told from neither end, but the ends from each other."""
    skill = {"a": 0.8, "b": 0.8, "c": 0.8}
    comparison = comparison_of(skill, after_losing(skill, {"a": 0.3, "b": 0.4, "c": 0.5}), skill, tasks=160, seed=4)
    found = verdict_of(comparison)
    assert (found.most, found.least) == ((), ())
    assert (names((found.more,)), names(found.than)) == (["c"], ["a"])
    told = headline(comparison)[1]
    assert "c loses more (" in told
    assert ") than a" in told
    assert "does not rank all" in told


def test_one_classifier_is_told_with_its_points() -> None:
    comparison = comparison_of({"ncc": 0.8}, {"ncc": 0.5}, {"ncc": 0.8})
    (row,) = verdict_of(comparison).loss.lost.rows
    points = row.intervals["acc"]["sampler"]
    measured, told = headline(comparison)
    assert measured.startswith("1 classifier (1 encoder × 1 method) was tested on 3-way 1-shot tasks")
    assert told.startswith("On fewstab tasks (3-way 1-shot), ncc relies on attributes. It loses ")
    assert f"({points.mean:.1f} points [{points.low:.1f}, {points.high:.1f}])" in told
    assert "placebo" in told


def test_fifty_classifiers_fit_into_five_sentences() -> None:
    skill = {f"method{n:02d}": 0.9 if n % 2 else 0.6 for n in range(46)}
    skill |= {f"floor{n}": CHANCE for n in range(2)} | {f"ceiling{n}": 1.0 for n in range(2)}
    lost = dict.fromkeys(skill, 0.6)
    comparison = comparison_of(skill, after_losing(skill, lost), skill, tasks=60)
    sentences = headline(comparison)
    assert len(sentences) <= MOST_SENTENCES
    assert max(map(len, sentences)) < 600
    told = " ".join(sentences)
    assert sum(told.count(name) for name in skill) <= 20
    assert len(verdict_of(comparison).losing) > 40


def test_who_does_better_is_said_to_do_better() -> None:
    comparison = comparison_of({"ncc": 0.6, "ridge": 0.9}, {"ncc": 0.75, "ridge": 0.6}, {"ncc": 0.6, "ridge": 0.9})
    found = verdict_of(comparison)
    assert (names(found.losing), names(found.gaining)) == (["ridge"], ["ncc"])
    told = headline(comparison)[1]
    assert "ridge relies on attributes" in told
    assert "ncc does better, not worse" in told
    better = comparison_of({"ncc": 0.6}, {"ncc": 0.75})
    (sentence,) = headline(better)[1:]
    assert sentence.startswith("On fewstab tasks (3-way 1-shot), ncc does better, not worse")
    assert "95% sampler intervals" in sentence
    assert "lose" not in sentence


def contexts(*, identical: bool = False, random: bool = False) -> Comparison:
    inside = draw_tasks("iid", tasks=100)
    outside, hard = draw_tasks("ood", like=inside), draw_tasks("hard-ood", like=inside)
    if identical:
        hard = TaskSet(outside.table, hard.record)
    shares = {inside.digest: 0.9, outside.digest: 0.6}
    sets = [inside, outside, hard, *([draw_tasks(tasks=100)] if random else [])]
    results = [draw_results(task_set, {"ncc": shares.get(task_set.digest, 0.5)}, seed=1) for task_set in sets]
    return compare_sets(evaluated_sets(results), ("sampler",))


def test_identical_sets_are_said_to_be_one_and_told_once() -> None:
    comparison = contexts(identical=True)
    _, told = headline(comparison)
    assert "On ood tasks" in told
    assert "hard-ood" not in told
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]
    assert [verdict.loss.label for verdict in verdicts(comparison, "acc")] == ["ood"]


def test_contexts_are_told_against_iid_tasks_beside_random_ones() -> None:
    alone, beside = headline(contexts()), headline(contexts(random=True))
    assert alone[1:] == beside[1:]
    assert "compared with iid tasks" in alone[1]
    assert not any("compared with random" in sentence or "-1." in sentence for sentence in beside)


def test_without_a_reference_it_is_said_what_a_gap_needs() -> None:
    comparison = compare_sets(evaluated_sets([draw_results(draw_tasks("fewstab"), {"ncc": 0.5})]), ("sampler",))
    _, missing = headline(comparison)
    assert "no gap to report" in missing
    assert "on reference tasks" in missing
    assert next_steps(comparison) == []


def test_the_largest_design_of_each_data_set_is_told_where_there_are_many() -> None:
    results: list[Results] = [
        draw_results(draw_tasks(sampler, data_set=data_set, shot=shot, tasks=60), {"ncc": share}, seed=shot)
        for data_set in ("birds", "pets")
        for shot in (1, 2)
        for sampler, share in (("random", 0.8), ("fewstab", 0.5), ("hardest", 0.4))
    ]
    sentences = headline(compare_sets(evaluated_sets(results), ("sampler",)))
    assert len(sentences) <= MOST_SENTENCES
    told = sentences[1:]
    designs = ("birds, 3-way 2-shot", "pets, 3-way 2-shot")
    assert all(any(design in sentence for sentence in told) for design in designs)
    assert not any("1-shot" in sentence for sentence in told)


def test_where_no_interval_can_be_given_nothing_is_told() -> None:
    comparison = comparison_of({"ncc": 1.0}, {"ncc": 0.0}, tasks=20)
    told = headline(comparison)[1]
    assert "On fewstab tasks" in told
    assert "no statement is possible" in told
    assert "all 20 tasks have the same value" in told
    assert "The mean loss is 100.0 points" in told
    assert not any("every interval" in sentence for sentence in headline(comparison))


def test_what_would_tell_is_a_number_of_tasks_that_tells() -> None:
    """Drawn again with as many tasks, a loss that is as large as it looked is conclusive more often than not."""
    skill, biased = {"ncc": 0.8}, {"ncc": 0.77}
    few = comparison_of(skill, biased, tasks=60, seed=2)
    found = verdict_of(few)
    assert found.unclear
    assert found.needed is not None
    assert found.needed.tasks is not None
    look = found.loss.gap.rows[0].means["acc"] / 100
    total = 60 + found.needed.tasks
    more = float(f"{found.needed.tasks:.2g}")
    assert f"About {more:,.0f} more tasks would settle it" in headline(few)[1]
    again = [verdict_of(comparison_of(skill, {"ncc": 0.8 - look}, tasks=2 * total, seed=seed)) for seed in range(5)]
    assert sum(bool(one.losing) for one in again) >= 4


share = st.sampled_from([0.2, CHANCE, 0.4, 0.5, 0.7, 0.9, 1.0])


@settings(max_examples=25)
@given(
    st.lists(st.tuples(share, share, share), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([2, 12, 60]),
    st.integers(0, 5),
)
def test_no_statement_goes_beyond_what_is_conclusive(
    accuracies: list[tuple[float, float, float]], placebo: bool, tasks: int, seed: int
) -> None:
    random, biased, sham = ({f"m{n}": accuracy[at] for n, accuracy in enumerate(accuracies)} for at in range(3))
    comparison = comparison_of(random, biased, sham if placebo else None, tasks, seed)
    found = verdict_of(comparison)
    concluded = {one: told.conclusion for one, told in found.loss.concluded["acc", found.interval_name].items()}
    groups = [found.losing, found.gaining, found.unclear, found.at_chance]
    assert sorted(str(one) for group in groups for one in group) == sorted(map(str, concluded))
    assert {concluded[one] for one in found.losing} <= {"+"}
    assert {concluded[one] for one in found.gaining} <= {"-"}
    assert not set(found.most) & set(found.least)
    assert set(found.most) <= set(found.losing)
    assert bool(found.most) == bool(found.least)
    signs = {}
    for pair in found.loss.skill.pairs["acc", found.interval_name]:
        signs |= {(one.a, one.b): one.conclusion for one in (pair, pair.turned())}
    if found.most:
        assert signs[found.most[0], found.least[-1]] == "+"
    if found.more:
        assert found.more in found.losing
        assert {signs[found.more, one] for one in found.than} == {"+"}
    sentences = headline(comparison)
    assert 2 <= len(sentences) <= MOST_SENTENCES
    told = " ".join(sentences[1:])
    assert ("the most (" in told) == ("the least (" in told) == bool(found.most and len(found.losing) > 1)
    relies = re.search(r"\brel(?:y|ies) on", told)
    assert not relies or (found.losing and placebo) or "does not show whether" in told
    if not found.losing:
        for bound in ("loses any accuracy", "loses at most", "loses more than", "no skill to lose"):
            told = told.replace(bound, "")
        assert " loses " not in told
        assert " lose " not in told


def test_an_interval_that_excludes_zero_is_no_conclusion_without_the_correction() -> None:
    """Of three classifiers on two tasks, one seems to lose much, but not after the correction."""
    accuracies = {"m0": 0.2, "m1": 0.2, "m2": 0.9}
    comparison = comparison_of(accuracies, dict.fromkeys(accuracies, 0.2), tasks=2, seed=1)
    found = verdict_of(comparison)
    assert names(found.unclear) == ["m2"]
    row = found.loss.lost.row(found.unclear[0])
    assert row is not None
    lost = row.intervals["acc"]["sampler"]
    assert lost.low > 0
    told = headline(comparison)[1]
    assert "m2 loses any accuracy, after the correction" in told
    assert f"Without the correction, the loss of accuracy compared with random tasks is between {lost.low:.1f}" in told


def test_a_record_without_digests_is_no_reason_to_call_sets_the_same() -> None:
    results = [
        draw_results(draw_tasks(sampler, tasks=30), {"ncc": share})
        for sampler, share in (("random", 0.9), ("fewstab", 0.5))
    ]
    bare = [
        Results(pa.Table.from_batches(result.table.to_batches()), replace(result.record, sources={}))
        for result in results
    ]
    sentences = headline(compare_sets(evaluated_sets(bare), ("sampler",)))
    assert not any("the same tasks" in sentence for sentence in sentences)
