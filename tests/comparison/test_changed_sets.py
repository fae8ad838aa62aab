from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.analysis.make_card import make_card
from shotproof.comparison.card import Card
from shotproof.comparison.change_tables import change_tables
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.gate import GateLimits, Limits, gate
from shotproof.comparison.sentences import headline
from shotproof.comparison.summary import summary
from shotproof.comparison.verdicts import verdicts
from shotproof.report.figures.card_figure import badge_text
from shotproof.results.evaluated import evaluated_sets
from tests.changed_run import CHANGES, ChangedRun, make_changed_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return make_changed_run(tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def card(run: ChangedRun) -> Card:
    return make_card(run.comparison, run.inputs, run.comparison.classifiers[0])


def test_the_background_comes_first_with_what_pasting_costs_and_the_background_gives(run: ChangedRun) -> None:
    _, first, *others = headline(run.comparison)
    assert first.startswith("If only the background changes, to that of another class of the task")
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
    assert not any("only-background" in sentence for sentence in card.verdict)
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
