"""The gate fails on what is conclusive, passes what is within the limit, and says where nobody can tell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from shotproof.comparison.card import CardAxis, CardTasks
from shotproof.comparison.gate import Gate, GateLimits, Limits, gate
from shotproof.comparison.gate_formats import gate_json, github_annotations, junit_xml
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import Source
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis, with_estimates


def outcomes(found: Gate) -> dict[str, str]:
    return {f"{check.axis}: {check.quantity}": check.outcome for check in found.checks}


@pytest.mark.parametrize(("share", "expected"), [(7, "fail"), (9, "cannot tell"), (11, "cannot tell"), (13, "pass")])
def test_skill_lost_of_ten_percent_within_two_is_held_against_the_limit(share: float, expected: str) -> None:
    found = gate(make_card(), GateLimits(Limits(max_skill_lost=share)))
    assert outcomes(found) == {"fewstab: skill lost": expected}
    assert found.passes() == (expected != "fail")
    assert found.passes(strict=True) == (expected == "pass")


def test_gap_and_worst_class_have_limits_in_points_and_percent() -> None:
    found = gate(make_card(), GateLimits(Limits(max_gap=3, min_worst_class=55)))
    assert outcomes(found) == {
        "random-5-shot: worst-class accuracy": "pass",
        "fewstab: gap": "fail",
        "fewstab: worst-class accuracy": "cannot tell",
    }
    low = gate(make_card(), GateLimits(Limits(min_worst_class=58)))
    assert outcomes(low)["fewstab: worst-class accuracy"] == "fail"


def test_so_many_more_tasks_would_indeed_tell() -> None:
    axis = stress_axis(lost=10.0, error=2.0)
    told = gate(make_card(axis), GateLimits(Limits(max_skill_lost=12))).checks[0].sentence
    number = re.search(r"([\d,]+) more tasks", told)
    assert number is not None
    more = int(number[1].replace(",", ""))
    # The half-width falls with the square root of the number of tasks, and is to be 2 points.
    assert more == pytest.approx(600 * ((1.96 * 2.0 / 2.0) ** 2 - 1), rel=0.05)  # two digits are shown
    shrunk = stress_axis(lost=10.0, error=2.0 * (600 / (600 + 1.05 * more)) ** 0.5)
    assert gate(make_card(shrunk), GateLimits(Limits(max_skill_lost=12))).checks[0].outcome == "pass"


def test_where_tasks_would_not_help_more_images_are_asked_for_or_nothing() -> None:
    axis = with_estimates(stress_axis(), skill_lost={"acc": card_number(10.0, 2.0, task_error=0.1)})
    assert "images per class" in gate(make_card(axis), GateLimits(Limits(max_skill_lost=12))).checks[0].sentence
    told = gate(make_card(axis), GateLimits(Limits(max_skill_lost=10))).checks[0].sentence
    assert "too close to the limit" in told


def test_a_number_without_an_interval_cannot_be_told() -> None:
    nothing = replace(card_number(1.0, 1.0), mean=None, low=None, high=None, refused="nothing to lose: at chance")
    axis = with_estimates(stress_axis(), skill_lost={"acc": nothing})
    found = gate(make_card(axis), GateLimits(Limits(max_skill_lost=10)))
    assert outcomes(found) == {"fewstab: skill lost": "cannot tell"}
    assert "nothing to lose: at chance" in found.checks[0].sentence


def test_limits_of_one_axis_go_before_those_of_all_and_flags_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('only = ["attributes", "hardest"]\nmax_skill_lost = 5\n[axes.hardest]\nmax_skill_lost = 90\n')
    card = make_card(random_axis(), stress_axis(), stress_axis("hardest", lost=50.0), stress_axis("hard-ood"))
    limits = GateLimits.read(file)
    assert outcomes(gate(card, limits)) == {"fewstab: skill lost": "fail", "hardest: skill lost": "pass"}
    flags = limits.with_flags(Limits(max_skill_lost=20), ["fewstab"])
    assert outcomes(gate(card, flags)) == {"fewstab: skill lost": "pass"}


def test_tasks_that_are_hard_for_all_are_held_against_limits_only_if_they_are_named() -> None:
    card = make_card(random_axis(), stress_axis(), stress_axis("hardest", lost=60.0))
    limits = Limits(max_skill_lost=20, max_gap=15, min_worst_class=40)
    found = gate(card, GateLimits(limits))
    assert outcomes(found) == {
        "random-5-shot: worst-class accuracy": "pass",
        "fewstab: skill lost": "pass",
        "fewstab: gap": "pass",
        "fewstab: worst-class accuracy": "pass",
    }
    (note,) = found.notes
    assert note.startswith("hardest: not checked against")
    assert all(limit in note for limit in ("max_skill_lost", "max_gap", "min_worst_class"))
    assert "--axis hardest" in note
    for named in ("hardest", "difficulty"):
        assert set(outcomes(gate(card, GateLimits(limits, only=(named,)))).values()) == {"fail"}
        own = gate(card, GateLimits(limits, {named: Limits(max_skill_lost=50)}))
        assert outcomes(own)["hardest: skill lost"] == "fail"
        assert "hardest: gap" not in outcomes(own)
    with pytest.raises(InputError, match=r"nothing to check on hardest: .*--axis hardest"):
        gate(make_card(stress_axis("hardest")), GateLimits(Limits(max_gap=1)))


def test_a_drop_against_an_older_card_on_the_same_tasks() -> None:
    old, new = make_card(), make_card(random_axis(), stress_axis(lost=30.0))
    found = gate(new, GateLimits(), old)
    assert outcomes(found) == {"random-5-shot: drop in accuracy": "cannot tell", "fewstab: drop in accuracy": "fail"}
    assert outcomes(gate(new, GateLimits(Limits(max_drop=20)), old))["fewstab: drop in accuracy"] == "pass"


def with_tasks(axis: CardAxis, values: FloatArray, data_error: float) -> CardAxis:
    """The axis with these accuracies of its tasks, and what the data adds to the error of their mean."""
    task_error = float(values.std(ddof=1)) / len(values) ** 0.5
    number = card_number(float(values.mean()), (task_error**2 + data_error**2) ** 0.5, task_error)
    by_task = {"acc": tuple(values.tolist()), "wacc": tuple(values.tolist())}
    return with_estimates(replace(axis, by_task=by_task), accuracy={"acc": number, "wacc": number})


def test_cards_on_the_same_tasks_are_compared_task_by_task() -> None:
    generator = np.random.default_rng(0)
    hard = generator.normal(70, 10, 600)  # tasks are as hard for one as for the other
    old, new = (with_tasks(random_axis(), hard - drop + generator.normal(0, 1, 600), 0.05) for drop in (0.0, 0.5))
    paired, alone = (
        gate(make_card(card), GateLimits(Limits(max_drop=1)), make_card(old)).checks[0]
        for card in (new, replace(new, by_task={}))
    )
    assert (paired.outcome, alone.outcome) == ("pass", "cannot tell")
    assert "95% images, paired interval" in paired.sentence
    assert "not paired: a card lacks" in alone.sentence
    error = np.sqrt(np.subtract(old.by_task["acc"], new.by_task["acc"]).var(ddof=1) / 600 + 2 * 0.05**2)
    assert paired.interval.half_width == pytest.approx(1.96 * error, rel=0.01)


def test_what_the_data_adds_is_not_paired_away() -> None:
    values = np.random.default_rng(0).normal(70, 10, 600)
    old, new = with_tasks(random_axis(), values, 1.0), with_tasks(random_axis(), values - 0.5 * (values > 70), 1.0)
    found = gate(make_card(new), GateLimits(), make_card(old)).checks[0]
    assert found.interval.half_width == pytest.approx(1.96 * 2**0.5, rel=0.01)


def test_the_same_answers_on_every_task_are_no_drop() -> None:
    axis = with_tasks(random_axis(), np.random.default_rng(0).normal(70, 10, 600), 1.0)
    found = gate(make_card(axis), GateLimits(), make_card(axis)).checks[0]
    assert (found.outcome, found.interval.mean) == ("pass", 0.0)
    assert "no task differs" in found.sentence


def test_a_drop_is_never_better_known_than_either_accuracy() -> None:
    badly = card_number(80.0, 1.0)
    badly = replace(badly, uncertainty=2 * 1.0**4 / 2)  # two degrees of freedom
    own = badly.estimate.interval("images", 0.95)
    axis = with_estimates(random_axis(), accuracy={"acc": badly, "wacc": badly})
    for old, new in ((axis, random_axis()), (random_axis(), axis)):
        found = gate(make_card(new), GateLimits(), make_card(old)).checks[0]
        assert found.interval.half_width > own.half_width


def test_cards_of_other_tasks_are_refused_but_tasks_searched_in_other_features_are_noted() -> None:
    other = replace(stress_axis(), tasks=CardTasks("fewstab", "another digest", 600, 0))
    elsewhere = replace(make_card(other), sources={"catalog": Source("another catalog")})
    for card in (elsewhere, make_card(replace(other, shot=1))):
        with pytest.raises(Mismatch, match=r"fewstab: .*digest of fewstab and another digest"):
            gate(card, GateLimits(), make_card())
    (check,) = gate(make_card(other), GateLimits(), make_card()).checks
    assert "not paired: of other tasks" in check.sentence
    hardest = stress_axis("hardest")
    searched = [
        replace(hardest, tasks=CardTasks("hardest", f"tasks {own}", 600, 0, searched_in=own)) for own in ("a", "b")
    ]
    found = gate(make_card(random_axis(), searched[0]), GateLimits(), make_card(random_axis(), searched[1]))
    (note,) = found.notes
    assert note.startswith("hardest: not compared")
    assert "searched in the features" in note


def test_limits_of_all_axes_are_given_by_their_names() -> None:
    card = make_card(stress_axis("fewstab"), stress_axis("hardest"))
    named = gate(card, only=("fewstab",), max_skill_lost=12, min_worst_class=55)
    assert named == gate(card, GateLimits(Limits(max_skill_lost=12, min_worst_class=55), only=("fewstab",)))
    assert gate(card, GateLimits(Limits(max_gap=50)), max_gap=3) == gate(card, max_gap=3)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (GateLimits(), "nothing to check"),
        (GateLimits(Limits(max_gap=1), only=("fewstb",)), "unknown axis 'fewstb': did you mean 'fewstab'"),
        (GateLimits(Limits(max_gap=1), only=("contexts",)), "axis 'contexts' was not measured: no column looks like"),
        (GateLimits(Limits(max_gap=1), only=("random-5-shot",)), "nothing to check on random-5-shot"),
        (GateLimits(Limits(max_drop=1)), "max_drop: expected an older card.*--against"),
    ],
)
def test_a_gate_that_looks_at_nothing_is_an_error(limits: GateLimits, told: str) -> None:
    with pytest.raises(InputError, match=told):
        gate(make_card(), limits)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "max_skill_lost = 150",
            r"limits.toml: max_skill_lost: .* from 0 to 100, found 150",
        ),
        ("max_skil_lost = 0.1", "unknown key 'max_skil_lost': did you mean 'max_skill_lost'"),
        ("[axes.fewstab]\nmax_gap = true", r"\[axes.fewstab\], max_gap: expected a number, found True"),
        ("max_gap = nan", "max_gap: expected a number, found nan"),
        ("min_worst_class = 140", "min_worst_class: .* from 0 to 100, found 140"),
        ("axes = 3", r"axes: expected a table, found 3"),
        ("only = 3", "only: expected a list of text, found 3"),
        ("max_gap = ", "limits.toml"),
    ],
)
def test_a_file_of_limits_is_checked(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(InputError, match=told):
        GateLimits.read(tmp_path / "limits.toml")


def test_junit_has_one_case_per_check_whatever_the_labels_are() -> None:
    card = replace(make_card(random_axis(), stress_axis(), stress_axis("hard-ood")), name='<birds & "x">\x00')
    found = gate(card, GateLimits(Limits(max_gap=3, max_skill_lost=11)))
    suites = ElementTree.fromstring(junit_xml(found))
    cases = suites.findall("./testsuite/testcase")
    assert len(cases) == len(found.checks) == 4
    assert (suites.get("failures"), suites.get("skipped")) == ("2", "2")
    assert [case.find("failure") is not None for case in cases].count(True) == 2
    strict = ElementTree.fromstring(junit_xml(found, strict=True))
    assert (strict.get("failures"), strict.get("skipped")) == ("4", "0")


def test_annotations_are_lines_that_github_reads() -> None:
    found = gate(make_card(), GateLimits(Limits(max_gap=3, max_skill_lost=11)))
    warning, error = github_annotations(found)
    assert warning.startswith("::warning title=shotproof%3A fewstab::fewstab: ")
    assert "skill lost, 10.0%25 [8.0, 12.0]" in warning
    assert error.startswith("::error title=shotproof%3A fewstab::fewstab: gap of 6.0 points ")
    assert "95%25 images interval" in error
    assert all(line.startswith("::error") for line in github_annotations(found, strict=True))


def test_json_has_the_interval_and_the_outcome() -> None:
    content = gate_json(gate(make_card(), GateLimits(Limits(max_gap=3))))
    assert content["passes"] is False
    assert content["checks"][0]["outcome"] == "fail"
    assert content["checks"][0]["covers"] == "images"
