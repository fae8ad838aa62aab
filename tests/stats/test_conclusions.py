"""Conclusions are corrected for all that a page could say of losses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.verdicts import verdicts
from shotproof.results.evaluated import evaluated_sets
from tests.drawn_results import draw_results, draw_tasks

METHODS = {"ncc": 0.9, "ridge": 0.8, "knn": 0.7}


def compared(lost: dict[str, float], tasks: int = 40, seed: int = 0, correct: bool = True):
    """Three classifiers on random tasks and on others, each with so much accuracy less."""
    plain = draw_tasks(tasks=tasks, seed=seed)
    results = [draw_results(plain, METHODS, seed=seed)]
    for number, (sampler, less) in enumerate(lost.items()):
        drawn = draw_tasks(sampler, tasks=tasks, seed=seed)
        results.append(
            draw_results(drawn, {name: p - less for name, p in METHODS.items()}, seed=seed + 100 * number + 7)
        )
    return compare_sets(evaluated_sets(results), ("sampler",), correct=correct)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_losses_of_all_task_sets_are_one_family_and_pairs_another(seed: int) -> None:
    comparison = compared({"fewstab": 0.05, "hardest": 0.1}, seed=seed)
    losses = [loss for block in comparison.blocks for loss in block.losses]
    concluded = [one for loss in losses for one in loss.concluded["acc", "sampler"].values()]
    expected = multipletests([one.interval.estimate.p_value() for one in concluded], alpha=0.03, method="holm")[0]
    assert [one.conclusion != "0" for one in concluded] == expected.tolist()
    pairs = [pair for loss in losses for pair in loss.skill.pairs["acc", "sampler"]]
    raw = [one.interval.estimate.p_value() for loss in losses for one in loss.skill.pairs["acc", "sampler"]]
    told, corrected = multipletests(raw, alpha=0.005, method="holm")[:2]
    assert [pair.conclusion != "0" for pair in pairs] == told.tolist()
    assert [pair.p_value for pair in pairs] == pytest.approx(corrected.tolist())


def test_pages_of_many_losses_are_wrong_no_more_often_than_pages_of_one() -> None:
    wrong = sum(
        any(
            verdict.losing or verdict.gaining
            for verdict in verdicts(compared({"fewstab": 0.0, "hardest": 0.0}, seed=3 * seed))
        )
        for seed in range(60)
    )
    assert wrong <= 7  # 2.4 are expected at most; the chance of more than 7 is 0.002


def test_without_correction_each_stands_for_itself() -> None:
    comparison = compared({"fewstab": 0.05, "hardest": 0.1}, correct=False)
    for block in comparison.blocks:
        for loss in block.losses:
            for one in loss.concluded["acc", "sampler"].values():
                assert (one.conclusion != "0") == (one.interval.estimate.p_value() <= 0.05)
                assert np.sign(one.interval.estimate.mean) == {"+": 1, "-": -1}.get(
                    one.conclusion, np.sign(one.interval.estimate.mean)
                )
