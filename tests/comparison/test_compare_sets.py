"""What is lost against the reference of each task set: in points, beyond a placebo, and as a share of the skill."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.core.records import Maker
from shotproof.results.evaluated import METRICS, evaluated_sets
from shotproof.results.results import Results
from shotproof.stats.block import Loss
from shotproof.stats.ranks import RankRange
from shotproof.tasks.taskset import TaskSet
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.9, "ridge": 0.7, "knn": 0.6}
ACC_CHANCE = 100 / 3


def compared(*results: Results, **options: Any) -> Comparison:
    return compare_sets(evaluated_sets(results), ("sampler",), **options)


def losses(*results: Results) -> dict[str, Loss]:
    (block,) = compared(*results).blocks
    return {loss.label: loss for loss in block.losses}


def worst_chance(queries: tuple[int, ...] = (4, 4, 4)) -> float:
    """The mean lowest class accuracy of guessing among three classes, over all numbers of right answers."""
    total = 0.0
    for right in product(*(range(count + 1) for count in queries)):
        likely = [stats.binom.pmf(one, count, 1 / 3) for one, count in zip(right, queries, strict=True)]
        total += math.prod(likely) * min(one / count for one, count in zip(right, queries, strict=True))
    return 100 * total


def every_sampler() -> dict[str, Results]:
    plain, inside = draw_tasks(tasks=40), draw_tasks("iid", tasks=40)
    sets = {
        "random": plain,
        "iid": inside,
        "ood": draw_tasks("ood", like=inside),
        "hard-ood": draw_tasks("hard-ood", like=inside),
        "fewstab": draw_tasks("fewstab", tasks=50),
        "hardest": draw_tasks("hardest", like=plain),
        "random(query_dirichlet=0.5)": draw_tasks("random(query_dirichlet=0.5)", tasks=30),
    }
    return {
        label: draw_results(tasks, {name: share - 0.05 * place for name, share in METHODS.items()}, seed=place)
        for place, (label, tasks) in enumerate(sets.items())
    }


def test_every_set_keeps_its_own_reference_beside_all_the_others() -> None:
    found = losses(*every_sampler().values())
    assert {label: (loss.reference, loss.axis, loss.gap.paired) for label, loss in found.items()} == {
        "ood": ("iid", "contexts", True),
        "hard-ood": ("iid", "contexts", True),
        "fewstab": ("random", "attributes", False),
        "hardest": ("random", "difficulty", True),
        "random(query_dirichlet=0.5)": ("random", "queries", False),
    }
    results = every_sampler()
    for label, loss in found.items():
        a, b = (values_of(results[name], "ncc", "wacc") for name in (loss.reference, label))
        test = stats.ttest_rel(a, b) if loss.gap.paired else stats.ttest_ind(a, b, equal_var=False)
        interval, bounds = loss.gap.rows[0].intervals["wacc"]["sampler"], test.confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-8)


@pytest.mark.parametrize("kept", [("iid", "hard-ood"), ("random", "fewstab"), ("random", "hardest")])
def test_nothing_changes_or_vanishes_when_more_is_shown(kept: tuple[str, str]) -> None:
    results = every_sampler()
    alone, beside = (losses(*of)[kept[1]] for of in ([results[label] for label in kept], results.values()))
    assert (alone.gap, alone.excess, alone.chance) == (beside.gap, beside.excess, beside.chance)
    assert [row.intervals for row in alone.skill.rows] == [row.intervals for row in beside.skill.rows]
    assert [row.intervals for row in alone.skill.rows] == [row.intervals for row in beside.skill.rows]
    rows = [
        [(row.classifier, row.interval) for row in compared(*given).rows("gap") if row.tasks == kept[1]]
        for given in ([results[label] for label in kept], results.values())
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == len(METHODS)


def test_the_share_of_the_skill_and_its_interval_by_hand() -> None:
    random, biased = (
        draw_results(draw_tasks(tasks=60), METHODS, seed=1),
        draw_results(draw_tasks("fewstab", tasks=80), {"ncc": 0.6, "ridge": 0.65, "knn": 0.35}),
    )
    (loss,) = losses(random, biased).values()
    assert loss.chance == pytest.approx({"acc": ACC_CHANCE, "wacc": worst_chance()})
    assert (loss.excess, loss.lost) == (None, loss.gap)
    for row in loss.skill.rows:
        for metric, chance in (("acc", ACC_CHANCE), ("wacc", worst_chance())):
            a, b = (values_of(one, row.classifier.method, metric) for one in (random, biased))
            above = a.mean() - chance
            share = (a.mean() - b.mean()) / above
            # The share changes by (1 - share) / above with the reference, and by -1 / above with the other.
            va = ((1 - share) / above) ** 2 * a.var(ddof=1) / len(a)
            vb = b.var(ddof=1) / len(b) / above**2
            freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
            interval = row.intervals[metric]["sampler"]  # type: ignore[index]
            assert row.means[metric] == interval.mean == pytest.approx(100 * share)  # type: ignore[index]
            assert interval.half_width == pytest.approx(100 * stats.t.ppf(0.975, freedom) * math.sqrt(va + vb))


def with_placebo(tasks: int = 60) -> tuple[Results, Results, Results]:
    """Random tasks, FewSTAB's, and FewSTAB's placebo, which is harder than random tasks."""
    biased = draw_tasks("fewstab", tasks=tasks)
    return (
        draw_results(draw_tasks(tasks=tasks), METHODS, seed=1),
        draw_results(biased, {"ncc": 0.5, "ridge": 0.6, "knn": 0.5}, seed=2),
        draw_results(draw_tasks("placebo", like=biased), {"ncc": 0.8, "ridge": 0.65, "knn": 0.55}, seed=3),
    )


def test_what_is_lost_beyond_a_placebo_is_paired_with_it() -> None:
    random, biased, sham = with_placebo()
    comparison = compared(random, biased, sham)
    (block,) = comparison.blocks
    (loss,) = block.losses
    assert (block.placebos, [group.label for group in block.measured]) == (
        {"fewstab": "placebo of fewstab"},
        ["random", "fewstab"],
    )
    assert loss.lost is loss.excess
    assert loss.placebo is not None
    assert loss.excess is not None
    for place, method in enumerate(METHODS):
        reference, other, placebo = (values_of(one, method, "acc") for one in (random, biased, sham))
        gaps = (reference.mean() - other.mean(), reference.mean() - placebo.mean(), placebo.mean() - other.mean())
        for group, expected in zip((loss.gap, loss.placebo, loss.excess), gaps, strict=True):
            assert group.rows[place].means["acc"] == pytest.approx(expected)
        bounds = stats.ttest_rel(placebo, other).confidence_interval(0.95)
        interval = loss.excess.rows[place].intervals["acc"]["sampler"]
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))
        share = loss.skill.rows[place].means["acc"]
        assert share == pytest.approx(100 * gaps[2] / (reference.mean() - ACC_CHANCE))
    for metric in METRICS:
        intervals = [row.intervals[metric]["sampler"] for row in loss.excess.rows]
        assert [row.interval for row in comparison.rows("excess", metric)] == intervals


def test_the_placebo_of_a_context_is_taken_on_both_sides() -> None:
    """The placebo's gap is between the placebos of iid and of ood; without one of them there is none."""
    inside = draw_tasks("iid", tasks=50)
    sets = {"iid": inside, "ood": draw_tasks("ood", like=inside)}
    shams = {label: draw_tasks("placebo", like=tasks) for label, tasks in sets.items()}
    given = {
        **{label: draw_results(sets[label], {"ncc": share}, seed=1) for label, share in (("iid", 0.9), ("ood", 0.6))},
        **{
            f"placebo of {label}": draw_results(shams[label], {"ncc": share}, seed=2)
            for label, share in (("iid", 0.8), ("ood", 0.7))
        },
    }
    (loss,) = losses(*given.values()).values()
    values = {label: values_of(one, "ncc", "acc") for label, one in given.items()}
    difference = values["iid"] - values["ood"] - (values["placebo of iid"] - values["placebo of ood"])
    expected = stats.t.interval(0.95, 49, difference.mean(), stats.sem(difference))
    assert loss.excess is not None
    interval = loss.excess.rows[0].intervals["acc"]["sampler"]
    assert (interval.low, interval.high) == pytest.approx(expected)
    del given["placebo of iid"]
    (without,) = losses(*given.values()).values()
    assert (without.placebo, without.excess, without.lost) == (None, None, without.gap)


def test_a_placebo_that_some_classifiers_lack_is_left_out_and_named_and_no_classifier_vanishes() -> None:
    biased = draw_tasks("fewstab", tasks=60)
    random = draw_results(draw_tasks(tasks=60), METHODS, seed=1)
    sham = draw_results(draw_tasks("placebo", like=biased), {"ncc": 0.9, "knn": 0.6}, seed=3)
    comparison = compared(random, draw_results(biased, dict.fromkeys(METHODS, 0.5), seed=2), sham)
    (loss,) = comparison.blocks[0].losses
    assert (loss.excess, loss.placebo) == (None, None)
    assert [row.classifier.method for row in loss.skill.rows] == list(METHODS)
    assert [note.split(":")[0] for note in comparison.notes] == ["placebo of fewstab"]
    assert [row.classifier.method for row in comparison.rows("skill_lost")] == list(METHODS)


@pytest.mark.parametrize("placebo", [False, True])
@pytest.mark.parametrize("metric", ["acc", "wacc"])
def test_the_delta_method_agrees_with_the_bootstrap_over_tasks(metric: Any, placebo: bool) -> None:
    random, biased, sham = with_placebo(tasks=400)
    (loss,) = losses(random, biased, *([sham] if placebo else [])).values()
    draws = np.random.default_rng(0)
    for row in loss.skill.rows[:2]:
        reference, other, shuffled = (
            values_of(one, row.classifier.method, metric) for one in (random, biased, sham if placebo else random)
        )
        first, second = (draws.integers(0, 400, (4000, 400)) for _ in range(2))
        above = reference[first].mean(axis=1) - loss.chance[metric]
        # A placebo is paired with its tasks; without one, what is lost is lost from the reference itself.
        base = shuffled[second].mean(axis=1) if placebo else reference[first].mean(axis=1)
        shares = 100 * (base - other[second].mean(axis=1)) / above
        interval = row.intervals[metric]["sampler"]
        assert interval.half_width / stats.t.ppf(0.975, 399) == pytest.approx(shares.std(ddof=1), rel=0.06)
        assert interval.mean == pytest.approx(shares.mean(), abs=4 * shares.std() / math.sqrt(4000) + 0.2)


def test_pairs_and_ranks_of_skill_are_by_the_share_and_the_least_lost_is_first() -> None:
    tasks = {"random": draw_tasks(tasks=200), "fewstab": draw_tasks("fewstab", tasks=200)}
    # In points `a` loses most; as a share of what it knows above chance, `b` does.
    accuracy = {"random": {"a": 0.95, "b": 0.5, "c": 0.9}, "fewstab": {"a": 0.77, "b": 0.36, "c": 0.88}}
    given = {label: draw_results(one, accuracy[label], seed=len(label)) for label, one in tasks.items()}
    (loss,) = losses(*given.values()).values()
    points, shares = ({row.classifier.method: row.means["acc"] for row in one.rows} for one in (loss.gap, loss.skill))
    assert points["a"] > points["b"] > points["c"]
    assert shares["b"] > shares["a"] > shares["c"]
    assert {row.classifier.method: str(row.rank("acc")) for row in loss.skill.rows} == {
        **{"c": "1 of 3", "a": "2 of 3", "b": "3 of 3"}
    }
    assert [row.rank("acc") for row in loss.gap.rows] == [None] * 3
    first = loss.skill.pairs["acc", "sampler"][0]
    assert (str(first.a), str(first.b), first.conclusion) == ("a on pixels", "b on pixels", "-")
    assert first.interval.mean == pytest.approx(shares["a"] - shares["b"])
    values = {(label, name): values_of(one, name, "acc") for label, one in given.items() for name in ("a", "b")}
    slopes = {}
    for name in ("a", "b"):
        above = values["random", name].mean() - ACC_CHANCE
        slopes[name] = ((1 - shares[name] / 100) / above, -1 / above)
    parts = [
        100 * (slopes["a"][place] * values[label, "a"] - slopes["b"][place] * values[label, "b"])
        for place, label in enumerate(("random", "fewstab"))
    ]
    variance = sum(part.var(ddof=1) / len(part) for part in parts)
    assert first.interval.half_width == pytest.approx(stats.t.ppf(0.975, 397) * math.sqrt(variance), rel=0.01)


def test_who_is_at_chance_has_nothing_to_lose_and_no_rank() -> None:
    results = [
        draw_results(draw_tasks(sampler, tasks=100), {"ncc": 1 / 3, "ridge": share, "knn": share - 0.1}, seed=seed)
        for seed, (sampler, share) in enumerate((("random", 0.8), ("fewstab", 0.6)))
    ]
    comparison = compared(*results)
    (loss,) = comparison.blocks[0].losses
    ncc, ridge, _ = loss.skill.rows
    for metric in ("acc", "wacc"):
        refused = ncc.intervals[metric]["sampler"]  # type: ignore[index]
        assert refused.refused == "nothing to lose: at chance on random tasks"
        assert math.isnan(ncc.means[metric])  # type: ignore[index]
        assert ncc.rank(metric) is None  # type: ignore[arg-type]
        assert ridge.rank(metric) == RankRange(1, 2, 2)  # type: ignore[arg-type]
    signs = {(str(pair.a), str(pair.b)): pair for pair in loss.skill.pairs["acc", "sampler"]}
    assert signs["ncc on pixels", "ridge on pixels"].conclusion == "0"
    assert signs["ncc on pixels", "ridge on pixels"].interval.refused == "nothing to lose: at chance on random tasks"
    assert signs["ridge on pixels", "knn on pixels"].interval.refused is None
    written = [row for row in comparison.to_json()["estimates"] if row["quantity"] == "skill_lost"]
    assert [row["mean"] is None for row in written if row["metric"] == "acc"] == [True, False, False]
    assert loss.gap.rows[0].intervals["acc"]["sampler"].refused is None  # in points there is a number


def unequal(tasks: TaskSet, queries: tuple[int, int, int]) -> TaskSet:
    """With so many queries of the classes of each task."""
    rows = [
        {**row, "query": [f"{row['label']}/query{n}" for n in range(queries[row["slot"]])]}
        for row in tasks.table.to_pylist()
    ]
    return TaskSet(pa.Table.from_pylist(rows), tasks.record)


def test_chance_that_differs_between_the_sets_is_taken_off() -> None:
    """With one query, the worst class is at 0% or 100%, by guessing too; that much is no loss."""
    plain = draw_results(draw_tasks(tasks=150), {"ncc": 0.8}, seed=1)
    drawn = unequal(draw_tasks("random(query_dirichlet=0.5)", tasks=150), (1, 4, 7))
    other = draw_results(drawn, {"ncc": 0.8}, seed=2)
    (loss,) = losses(plain, other).values()
    a, b = (values_of(one, "ncc", "wacc") for one in (plain, other))
    chances = worst_chance(), worst_chance((1, 4, 7))
    assert chances[0] != pytest.approx(chances[1], abs=0.5)
    expected = 100 * ((a.mean() - chances[0]) - (b.mean() - chances[1])) / (a.mean() - chances[0])
    assert loss.skill.rows[0].means["wacc"] == pytest.approx(expected)
    assert loss.gap.rows[0].means["wacc"] == pytest.approx(a.mean() - b.mean())
    assert loss.skill.rows[0].means["acc"] == pytest.approx(
        100
        * (values_of(plain, "ncc", "acc").mean() - values_of(other, "ncc", "acc").mean())
        / (values_of(plain, "ncc", "acc").mean() - ACC_CHANCE)
    )


def test_whether_something_is_lost_is_concluded_beyond_what_guessing_loses() -> None:
    """A gap that is no larger than that of guessing is not conclusive, however narrow its interval."""
    queries = (1, 1, 10)
    plain, drawn = draw_tasks(tasks=600), unequal(draw_tasks("random(query_dirichlet=0.5)", tasks=600), queries)
    difference = worst_chance() - worst_chance(queries)
    assert difference > 2
    wanted = 40.0

    def with_worst(tasks: TaskSet, mean: float) -> Results:
        """Tasks whose worst class is right altogether in such a share of them, and else not at all."""
        drawn = draw_results(tasks, {"ncc": 1.0})
        right = np.random.default_rng(0).permutation(len(tasks)) < round(len(tasks) * mean / 100)
        rows = [
            {**row, "n_correct": row["n_correct"] if right[row["task"]] or row["slot"] else 0}
            for row in drawn.table.to_pylist()
        ]
        return replace(drawn, table=pa.Table.from_pylist(rows))

    results = with_worst(plain, wanted + difference), with_worst(drawn, wanted)
    (loss,) = losses(*results).values()
    assert loss.skill.rows[0].means["wacc"] == pytest.approx(0, abs=1)
    (concluded,) = loss.concluded["wacc", "sampler"].values()
    assert concluded.conclusion == "0"


@pytest.mark.parametrize(
    ("renamed", "sampler"), [("random", Maker("fewstab", "random")), ("random", Maker("")), ("iid", Maker(""))]
)
def test_a_record_that_renames_its_sampler_is_compared_as_far_as_it_can_be(renamed: str, sampler: Maker) -> None:
    inside = draw_tasks("iid")
    sets = [inside, draw_tasks("ood", like=inside), draw_tasks("random"), draw_tasks("fewstab", detector="words")]
    results = [draw_results(tasks, {"ncc": 0.6}) for tasks in sets]
    for place, result in enumerate(results):
        if result.record.tasks.sampler_name == renamed:
            tasks = replace(result.record.tasks, sampler=sampler)
            results[place] = replace(result, record=replace(result.record, tasks=tasks))
    (block,) = compare_sets(evaluated_sets(results), ("sampler",)).blocks
    assert all(loss.reference != loss.label for loss in block.losses)
