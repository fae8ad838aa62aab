from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from shotproof.stats.intervals import Estimate, Interval
from shotproof.stats.pairs import Pair, compare_pairs, conclude, holm

# statsmodels collects garbage in each call, which takes its time in a large process.
few_examples = settings(max_examples=5)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@few_examples
@given(p_values)
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    expected = multipletests(values, method="holm")[1]
    np.testing.assert_allclose(holm(np.array(values)), expected, atol=1e-10)


def drawn(seed: int, methods: int = 4, tasks: int = 50) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    difficulty = random.normal(0, 0.1, tasks)
    return {f"m{i}": 0.5 + 0.02 * i + difficulty + random.normal(0, 0.05, tasks) for i in range(methods)}


@few_examples
@given(st.integers(0, 50), st.floats(0.5, 0.999))
def test_pairs_agree_with_scipys_paired_test(seed: int, level: float) -> None:
    values = drawn(seed)
    differences = {(a, b): Estimate.over_tasks(values[a] - values[b]) for a, b in combinations(values, 2)}
    pairs = compare_pairs(differences, "sampler", level, correct=False)
    assert [(pair.a, pair.b) for pair in pairs] == list(combinations(values, 2))
    for pair in pairs:
        test = stats.ttest_rel(values[pair.a], values[pair.b])
        bounds = test.confidence_interval(level)
        assert pair.p_value == pytest.approx(test.pvalue, abs=1e-10)
        assert (pair.interval.low, pair.interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-10)
        assert (pair.conclusion != "0") == (pair.interval.low > 0 or pair.interval.high < 0)
    corrected = compare_pairs(differences, "sampler", level)
    adjusted = multipletests([pair.p_value for pair in pairs], 1 - level, method="holm")
    assert [pair.p_value for pair in corrected] == pytest.approx(adjusted[1], abs=1e-10)
    after, before = (sum(pair.conclusion != "0" for pair in given) for given in (corrected, pairs))
    assert after == adjusted[0].sum() <= before


def test_conclusions_have_the_sign_of_the_difference() -> None:
    better = np.array([0.7, 0.8, 0.9, 0.85])
    worse = better - np.array([0.1, 0.12, 0.1, 0.11])
    differences = {("a", "b"): Estimate.over_tasks(better - worse), ("b", "a"): Estimate.over_tasks(worse - better)}
    first, second = compare_pairs(differences, "sampler")
    assert (first.conclusion, second.conclusion) == ("+", "-")
    assert first.turned() == second
    assert first.turned().turned() == first


def test_methods_that_never_differ_are_inconclusive_with_a_reason() -> None:
    same = np.array([0.7, 0.8, 0.9])
    (pair,) = compare_pairs({("a", "b"): Estimate.over_tasks(same - same)}, "sampler")
    assert (pair.conclusion, pair.p_value) == ("0", 1.0)
    assert "same value" in str(pair.interval.refused)


@few_examples
@given(st.integers(0, 50))
def test_conclusions_on_single_estimates_are_corrected_for_those_that_have_an_interval(seed: int) -> None:
    values = [one - 0.55 for one in drawn(seed, methods=5).values()]
    constant = Estimate.over_tasks(np.ones(50))
    found = conclude([*(Estimate.over_tasks(one) for one in values), constant], 0.95)
    p_values = [stats.ttest_1samp(one, 0).pvalue for one in values]
    corrected = multipletests(p_values, method="holm")[1]
    expected = ["0" if p > 0.05 else "+" if one.mean() > 0 else "-" for p, one in zip(corrected, values, strict=True)]
    assert found == [*expected, "0"]  # without a variance nothing is concluded, and nothing is corrected for it
    alone = conclude([Estimate.over_tasks(one) for one in values], 0.95, correct=False)
    assert [sign != "0" for sign in alone] == [p <= 0.05 for p in p_values]


def test_a_pair_turned_and_one_of_what_is_better_the_lower_it_is() -> None:
    pair = Pair("a", "b", Interval(2.0, 1.0, 4.0), 0.01, "+")
    assert pair.turned() == Pair("b", "a", Interval(-2.0, -4.0, -1.0), 0.01, "-")
    assert pair.negated() == Pair("a", "b", Interval(-2.0, -4.0, -1.0), 0.01, "-")
    assert pair.negated().negated() == pair.turned().turned() == pair
