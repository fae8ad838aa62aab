from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shotproof.analysis.make_card import make_card
from shotproof.comparison.card import Card, CardAxis, CardTasks
from shotproof.comparison.change_tables import change_tables
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.gate import GateLimits, Limits, gate
from shotproof.comparison.leaderboard import make_leaderboard
from shotproof.comparison.leaderboard_rows import ResultsFile, measure_results
from shotproof.comparison.sentences import axis_sentence, card_sentences, headline
from shotproof.comparison.summary import summary
from shotproof.comparison.verdicts import verdicts
from shotproof.report.figures.card_figure import badge_text
from shotproof.results.applied_change import AppliedChange
from shotproof.results.evaluated import evaluated_sets
from shotproof.stats.block import Block, Concluded, Group, Loss
from shotproof.stats.intervals import Interval
from tests.changed_run import CHANGES, ChangedRun, make_changed_run
from tests.drawn_cards import card_number, random_axis, stress_axis, with_estimates
from tests.drawn_cards import make_card as drawn_card
from tests.drawn_results import draw_results, draw_tasks


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return make_changed_run(tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def card(run: ChangedRun) -> Card:
    return make_card(run.comparison, run.inputs, run.comparison.classifiers[0])


def test_the_background_comes_first_with_what_pasting_costs_and_the_background_gives(run: ChangedRun) -> None:
    _, first, *others = headline(run.comparison)
    assert re.match(r"If only the background changes, .*another class", first)
    assert "rely on the background" in first
    assert "compared with mixed-same tasks" in first
    assert "Cutting and pasting alone costs" in first
    assert "The background alone gives" in first
    assert not any("mixed-same" in sentence or "ackground alone" in sentence for sentence in others)
    assert any("relies on the background" in sentence for sentence in summary(run.comparison))


def test_the_numbers_beside_the_background_are_those_of_the_table(run: ChangedRun) -> None:
    (table,) = change_tables(run.comparison)
    rows = {row.change: row for row in table.rows if row.severity is None}
    alone = sorted(cell.accuracy.mean - 100 / 3 for cell in rows["only-background"].cells if cell.accuracy)
    first = headline(run.comparison)[1]
    assert f"gives {alone[0]:.1f}" in first
    assert f"{alone[-1]:.1f} points above chance" in first


def test_without_an_equally_pasted_set_nothing_is_called_reliance(run: ChangedRun) -> None:
    kept = [results for results, change in zip(run.results, ("random", *CHANGES), strict=True) if "mixed" not in change]
    comparison = compare_sets(evaluated_sets(kept), ("sampler",))
    assert not any(verdict.shows_reliance for verdict in verdicts(comparison))
    sentences = headline(comparison)
    assert not any("on the background" in sentence for sentence in sentences)
    assert not any("lose" in sentence for sentence in sentences if "ackground alone" in sentence)


def test_many_changes_are_counted_instead_of_named(run: ChangedRun, card: Card) -> None:
    assert "30 random tasks and 30 tasks with each of 6 changes." in headline(run.comparison)[0]
    assert "random-2-shot and 6 changes" in card.verdict[0]


def test_one_table_has_a_row_per_change_and_what_it_is_compared_with(run: ChangedRun) -> None:
    (table,) = change_tables(run.comparison)
    assert [(row.change, row.severity, row.reference) for row in table.rows] == [
        ("unchanged", None, None),
        ("only-background", None, "unchanged"),
        ("mixed-same", None, "unchanged"),
        ("mixed-rival", None, "mixed-same"),
        ("blur", 3, "unchanged"),
        ("blur", 5, "unchanged"),
        ("noise", 3, "unchanged"),
    ]
    block = run.comparison.blocks[0]
    for row in table.rows:
        for classifier, cell in zip(table.classifiers, row.cells, strict=True):
            measured = block.group(row.label).row(classifier)
            assert cell.accuracy is not None
            assert measured is not None
            assert cell.accuracy.mean == measured.means["acc"]
            assert (cell.skill_lost is None) == (row.reference is None)


def test_a_card_has_an_axis_per_change_and_does_not_call_the_background_alone_a_loss(card: Card) -> None:
    axes = {axis.name: axis for axis in card.axes}
    assert set(CHANGES) <= set(axes)
    assert axes["mixed-rival"].verdict.startswith("It relies on the background. ")
    assert axes["only-background"].verdict.startswith("The background alone ")
    assert axes["only-background"].advice == ""
    assert not any("on only-background" in sentence for sentence in card.verdict)
    assert "only-background" not in badge_text(card)
    assert Card.from_json(card.to_json()) == card


def test_limits_name_changes_with_their_severity(card: Card, tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text('[axes.mixed-rival]\nmax_skill_lost = 1\n[axes."blur(severity=5)"]\nmax_skill_lost = 99\n')
    checks = {check.axis: check for check in gate(card, GateLimits.read(limits)).checks}
    assert set(checks) == {"mixed-rival", "blur(severity=5)"}
    assert checks["mixed-rival"].outcome == "fail"
    worst = gate(card, GateLimits(Limits(min_worst_class=99.0)))
    assert "only-background" not in {check.axis for check in worst.checks}


def changed_results(*sets: tuple[str, str, float], unchanged: float = 0.9) -> Comparison:
    """Three classifiers on random tasks, and on sets of `changed` of this spelling, each drawn like another set."""
    tasks = {"random": draw_tasks(tasks=300)}
    accuracies = {"random": unchanged}
    for sampler, like, accuracy in sets:
        tasks[sampler], accuracies[sampler] = draw_tasks(sampler, like=tasks[like]), accuracy
    results = [
        draw_results(tasks[name], {"ncc": accuracies[name], "svm": accuracies[name] - 0.05}, seed=seed)
        for seed, name in enumerate(tasks)
    ]
    return compare_sets(evaluated_sets(results), ("sampler",))


RANDOM_PLATES = "changed(change='mixed-random')"
RIVAL, SAME, FOREGROUND = (f"changed(change='{change}')" for change in ("mixed-rival", "mixed-same", "only-foreground"))


@pytest.mark.parametrize("reference", [FOREGROUND, "random"])
def test_only_against_an_equally_pasted_set_does_only_the_background_change(reference: str) -> None:
    between = [] if reference == "random" else [(reference, "random", 0.8)]
    told = " ".join(headline(changed_results(*between, (RIVAL, reference, 0.5))))
    assert "only the background changes" not in told
    assert "rely on the background" not in told
    name = reference if reference == "random" else "only-foreground"
    assert f"compared with {name} tasks" in told
    assert "n the background of another class" in told
    swapped = " ".join(headline(changed_results((SAME, "random", 0.8), (RIVAL, SAME, 0.5))))
    assert "If only the background changes, " in swapped


def test_a_swap_on_both_sides_of_what_was_pasted_in_the_queries_is_no_reliance() -> None:
    rival, same = ((f"changed(change='{change}', side='both')") for change in ("mixed-rival", "mixed-same"))
    unequal = changed_results((SAME, "random", 0.8), (rival, SAME, 0.5))
    assert not any(verdict.shows_reliance for verdict in verdicts(unequal))
    assert "task on both sides" in " ".join(headline(unequal))
    equal = changed_results((same, "random", 0.8), (rival, same, 0.5))
    assert [verdict.loss.label for verdict in verdicts(equal) if verdict.shows_reliance] == [
        "mixed-rival on both sides"
    ]
    told = headline(equal)[1]
    assert re.match(r"If only the background changes, .*another class.*, on both sides", told)
    assert "Cutting and pasting alone costs" in told  # of the same side


def test_two_swaps_against_one_set_do_not_repeat_what_pasting_costs() -> None:
    results = changed_results((SAME, "random", 0.8), (RIVAL, SAME, 0.4), (RANDOM_PLATES, SAME, 0.78))
    assert " ".join(headline(results)).count("Cutting and pasting alone") == 1


@pytest.mark.parametrize("side", ["", ", side='both'"])
def test_two_swaps_that_cost_the_same_classifiers_are_one_sentence(side: str) -> None:
    rival, same, random = (f"{name[:-1]}{side})" for name in (RIVAL, SAME, RANDOM_PLATES))
    statement = headline(changed_results((same, "random", 0.8), (rival, same, 0.4), (random, same, 0.6)))[1]
    assert f"If only the background changes{', on both sides' * bool(side)}, they lose" in statement
    assert re.search(
        r" [\d.]+% to [\d.]+% of .* another class of the task, and [\d.]+% to [\d.]+% .* any item, .* mixed-same",
        statement,
    )


def test_what_a_set_is_changed_from_and_the_side_stay_in_the_table() -> None:
    blurs = [f"changed(change='blur(severity={severity})', side='both')" for severity in (1, 5)]
    (table,) = change_tables(changed_results(*((blur, "random", 0.7) for blur in blurs)))
    assert [(row.change, row.severity) for row in table.rows[1:]] == [
        ("blur on both sides", 1),
        ("blur on both sides", 5),
    ]


def with_images(comparison: Comparison, refused: Collection[str]) -> Comparison:
    """The comparison with `images` intervals too: those of the sampler, but none for the task sets that are named."""
    new: Any = "images"

    def interval(number: Interval, label: str) -> Interval:
        nothing = Interval(number.mean, float("nan"), float("nan"), new, number.level, "too many items")
        return nothing if label in refused else replace(number, covers=new)

    def group(of: Group) -> Group:
        label = str(of.against or of.label)
        rows = [
            replace(
                row,
                intervals={m: {new: interval(by["sampler"], label), **by} for m, by in row.intervals.items()},
                ranks={m: {new: by["sampler"], **by} for m, by in row.ranks.items()},
            )
            for row in of.rows
        ]
        return replace(
            of, rows=rows, pairs={(m, kind): pairs for (m, _), pairs in of.pairs.items() for kind in (new, "sampler")}
        )

    def loss(of: Loss) -> Loss:
        concluded = {}
        for (metric, interval_name), by_classifier in of.concluded.items():
            concluded[metric, interval_name] = by_classifier
            concluded[metric, new] = {
                classifier: Concluded(interval(one.interval, of.label), one.conclusion)
                for classifier, one in by_classifier.items()
            }
        return replace(of, gap=group(of.gap), skill=group(of.skill), concluded=concluded)

    def block(of: Block) -> Block:
        return replace(of, groups=[group(each) for each in of.groups], losses=[loss(each) for each in of.losses])

    return replace(comparison, interval_names=(new, "sampler"), blocks=[block(each) for each in comparison.blocks])


def test_a_swap_that_holds_for_these_images_is_told_with_one_that_holds_for_new_ones() -> None:
    plain = changed_results((SAME, "random", 0.8), (RIVAL, SAME, 0.4), (RANDOM_PLATES, SAME, 0.6))
    _, told, *others = headline(with_images(plain, {"mixed-rival"}))
    first, second = told.split("Basis: 95% sampler intervals, valid for these items only.")
    assert re.match(r"If only the background changes, .*another class", first)
    assert re.fullmatch(
        r" On the background of any other item, both classifiers lose [\d.]+% to [\d.]+% of .* new items "
        r"\(95% images intervals\)\.",
        second,
    )
    assert not any("background" in other for other in others)
    shares = [
        row.means["acc"]
        for block in plain.blocks
        for loss in block.losses
        for row in loss.skill.rows
        if loss.label == "mixed-random"
    ]
    assert f"{min(shares):.1f}% to {max(shares):.1f}%" in second
    everywhere = " ".join(headline(with_images(plain, set())))
    assert "which also holds for new" not in everywhere
    nowhere = " ".join(headline(plain))
    assert "new items" not in nowhere


def test_where_new_images_show_no_loss_that_is_said() -> None:
    plain = changed_results((SAME, "random", 0.8), (RIVAL, SAME, 0.4), (RANDOM_PLATES, SAME, 0.8))
    told = headline(with_images(plain, {"mixed-rival"}))[1]
    assert re.search(
        r"On the background of any other item, .* not show a loss for new items: .* -[\d.]+ and [\d.]+ points "
        r"\(95% images intervals\)\.$",
        told,
    )


def changed_axis(
    change: str,
    reference: str | None = None,
    lost: float = 10.0,
    error: float = 1.0,
    accuracy: float | None = None,
    side: str = "query",
) -> CardAxis:
    """An axis of a card with this change, against unchanged tasks or against another change."""
    axis = stress_axis(lost=lost, error=error)
    before = None if reference is None else AppliedChange(reference)
    axis = replace(
        axis,
        name=change,
        axis="changes",
        tasks=CardTasks(change, f"digest of {change}", 600, 0, changed=AppliedChange(change, side)),
        reference=CardTasks(reference or "random", f"digest of {reference or 'random'}", 600, 0, changed=before),
        estimates={
            quantity: numbers for quantity, numbers in axis.estimates.items() if quantity not in ("excess", "placebo")
        },
        is_shuffled=False,
    )
    if accuracy is not None:
        axis = with_estimates(axis, accuracy={"acc": card_number(accuracy, error)})
    return replace(axis, verdict=axis_sentence(axis, "acc", "image"))


def covering(axis: CardAxis, interval_name: str) -> CardAxis:
    """The axis with another kind of interval."""
    estimates = {
        quantity: {metric: replace(number, covers=interval_name) for metric, number in numbers.items()}
        for quantity, numbers in axis.estimates.items()
    }
    axis = replace(axis, estimates=estimates)
    return replace(axis, verdict=axis_sentence(axis, "acc", "image"))


def test_a_card_leads_with_what_the_background_costs_and_gives() -> None:
    axes = (
        random_axis(),
        changed_axis("blur", lost=40.0),
        changed_axis("only-background", lost=60.0, accuracy=44.0),
        changed_axis("mixed-same", lost=11.8),
        changed_axis("mixed-rival", "mixed-same", lost=36.4),
    )
    _, _, told, losing, *_ = card_sentences(drawn_card(*axes))
    assert re.fullmatch(
        r"It relies on the background\. If only the background changes, .*another class.* 36\.4% \[34\.4, 38\.4\] .*"
        r"\(21\.8 points \[20\.7, 23\.0\]\), compared with mixed-same tasks\. "
        r"Cutting and pasting alone costs 11\.8% \[9\.8, 13\.8\] .*"
        r"The background alone gives 24\.0 points \[22\.0, 26\.0\] above chance\. Basis: 95% images intervals\.",
        told,
    )
    assert re.match(r"It conclusively loses .*on blur \(40\.0% \[38\.0, 42\.0\]\)\.", losing)


def test_a_card_without_a_swap_still_tells_what_the_background_gives() -> None:
    told = " ".join(card_sentences(drawn_card(random_axis(), changed_axis("only-background", accuracy=44.0))))
    assert "The background alone gives 24.0 points [22.0, 26.0] above chance." in told
    assert "only-background (" not in told


def test_a_card_tells_what_holds_for_new_images_too() -> None:
    rival = covering(changed_axis("mixed-rival", "mixed-same", lost=36.4), "sampler")
    random = changed_axis("mixed-random", "mixed-same", lost=27.4)
    told = " ".join(card_sentences(drawn_card(random_axis(), changed_axis("mixed-same"), random, rival)))
    assert re.search(
        r"compared with mixed-same tasks\. .* any other item, it loses 27\.4% \[25\.4, 29\.4\] .* new images "
        r"\(95% images interval\)\.",
        told,
    )
    assert "Basis: 95% sampler and images intervals, the former valid for these images only." in told
    assert told.count("27.4%") == 1


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [
        (30.0, "The background alone gives 10.0 points [8.0, 12.0] above chance."),
        (16.7, "is 3.3 points [1.3, 5.3] below chance."),
        (19.0, "not shown to help: accuracy minus chance is -1.0 points [-3.0, 1.0]."),
    ],
)
def test_the_background_alone_is_above_chance_below_it_or_neither(accuracy: float, expected: str) -> None:
    assert changed_axis("only-background", accuracy=accuracy).verdict.endswith(expected)


@pytest.mark.parametrize(
    ("lost", "error", "expected"),
    [
        (10.0, 1.0, "Cutting and pasting alone costs 10.0% [8.0, 12.0] of the accuracy above chance."),
        (-19.6, 45.2, "no clear cost: it is -19.6% [-108.2, 69.0] of"),
    ],
)
def test_pasting_has_a_cost_or_no_clear_one(lost: float, error: float, expected: str) -> None:
    axes = (
        random_axis(),
        changed_axis("mixed-same", lost=lost, error=error),
        changed_axis("mixed-rival", "mixed-same"),
    )
    assert expected in card_sentences(drawn_card(*axes))[2]
    of_sounds = card_sentences(replace(drawn_card(*axes), medium="sound"))[2]
    assert expected.replace("Cutting and pasting alone", "Mixing again alone") in of_sounds
    assert "pasting" not in of_sounds


def test_several_classifiers_are_counted_where_only_some_are_clear() -> None:
    plain = changed_results((SAME, "random", 0.9), (RIVAL, SAME, 0.4))
    assert "no clear cost: it is between -" in headline(plain)[1]
    assert "Mixing again alone has no clear cost" in headline(replace(plain, medium="sound"))[1]
    alone = "changed(change='only-background')"
    below = changed_results((SAME, "random", 0.8), (RIVAL, SAME, 0.5), (alone, "random", 0.2))
    assert re.search(r"the background alone, .* [\d.]+ to [\d.]+ points below chance\.", headline(below)[1])


def test_a_background_that_decides_every_task_has_no_interval_and_this_is_told() -> None:
    tasks = {"random": draw_tasks(tasks=30)}
    for sampler, like in ((SAME, "random"), (RIVAL, SAME)):
        tasks[sampler] = draw_tasks(sampler, like=tasks[like])
    accuracies = {"random": 1.0, SAME: 1.0, RIVAL: 0.0}
    results = [draw_results(tasks[name], {"ncc": accuracy}) for name, accuracy in accuracies.items()]
    comparison = compare_sets(evaluated_sets(results), ("sampler",))
    (sentence,) = summary(comparison)
    assert "No statement is possible on whether ncc relies on the background" in sentence
    assert "all 30 tasks have the same value" in sentence
    assert "The mean loss is 100.0 points" in headline(comparison)[1]
    axis = changed_axis("mixed-rival", "mixed-same")
    axis = with_estimates(axis, gap={"acc": Interval(100.0, math.nan, math.nan, refused="all tasks are alike")})
    verdict = axis_sentence(replace(axis, conclusion="0"), "acc", "image")
    assert "No statement is possible on whether it relies on the background: all tasks are alike." in verdict
    assert "The mean loss is 100.0 points" in verdict


def test_general_limits_hold_for_swaps_of_the_background_and_for_no_other_change() -> None:
    given = drawn_card(
        random_axis(),
        changed_axis("blur", lost=40.0),
        changed_axis("mixed-same", lost=40.0),
        changed_axis("mixed-rival", "mixed-same", lost=40.0),
        changed_axis("mixed-random", "mixed-same", lost=5.0),
        changed_axis("mixed-random(seed=1)", lost=40.0),  # against unchanged tasks: pasting costs something too
        changed_axis("mixed-rival(seed=1)", "mixed-same", lost=40.0, side="both"),
    )
    found = gate(given, max_skill_lost=15)
    assert {check.axis: check.outcome for check in found.checks} == {"mixed-rival": "fail", "mixed-random": "pass"}
    assert len(found.notes) == 4
    named = gate(given, max_skill_lost=15, only=["blur"])
    assert [check.axis for check in named.checks] == ["blur"]


def test_axes_of_a_leaderboard_name_what_they_are_compared_with(run: ChangedRun) -> None:
    files = [ResultsFile(f"{number}.parquet", results) for number, results in enumerate(run.results)]
    board = make_leaderboard(list(measure_results(files, {})))
    references = {axis.name: axis.sets.reference and axis.sets.reference.sampler for axis in board.axes}
    assert references["mixed-rival"] == "mixed-same"
    assert [axis.name for axis in board.axes if axis.sets.swaps_background] == ["mixed-rival"]
    assert references["mixed-same"] == references["blur"] == "random"
    lost = {
        board.axes[column.axis].name: column
        for column in board.columns
        if (column.quantity, column.metric) == ("skill_lost", "acc")
    }
    (table,) = change_tables(run.comparison)
    (rival,) = (row for row in table.rows if row.change == "mixed-rival")
    expected = sorted(cell.skill_lost.mean for cell in rival.cells if cell.skill_lost)
    assert sorted(number.mean for number in lost["mixed-rival"].intervals if number) == pytest.approx(expected)
