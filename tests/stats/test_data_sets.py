"""Several data sets: their names, and means over them, against numbers by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from shotproof.analysis.compare import compare
from shotproof.comparison.comparison import Comparison
from shotproof.core.records import Source, TasksRecord
from shotproof.results.origin import Design
from shotproof.results.results import Results
from shotproof.stats.data_sets import with_data_set_names
from shotproof.stats.intervals import Estimate
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.8, "ridge": 0.7, "knn": 0.4}


def results_of(data_set: str, sampler: str = "random", lower: float = 0.0, tasks: int = 30) -> Results:
    shares = {name: share - lower for name, share in METHODS.items()}
    return draw_results(draw_tasks(sampler, data_set=data_set, tasks=tasks), shares, seed=len(data_set))


def compared() -> tuple[list[Results], Comparison]:
    given = [results_of("birds"), results_of("fungi", lower=0.2, tasks=50), results_of("textures", tasks=20)]
    return given, compare(given)


def test_the_mean_over_data_sets_is_of_their_means() -> None:
    given, comparison = compared()
    (across,) = comparison.data_sets
    assert [name for name, _ in across.rows] == ["birds", "fungi", "textures", "mean of 3"]
    for row in across.mean.rows:
        for metric, named in row.intervals.items():
            of_each = [values_of(one, row.classifier.method, metric) for one in given]
            assert row.means[metric] == pytest.approx(np.mean([values.mean() for values in of_each]))
            # Independent means: variances add up, and Satterthwaite's degrees of freedom.
            parts = np.array([stats.sem(values) ** 2 / 9 for values in of_each])
            freedom = parts.sum() ** 2 / (parts**2 / [len(values) - 1 for values in of_each]).sum()
            half = stats.t.ppf(0.975, freedom) * np.sqrt(parts.sum())
            assert named["sampler"].half_width == pytest.approx(half)
    for pair, (a, b) in zip(across.mean.pairs["acc", "sampler"], combinations(METHODS, 2), strict=True):
        differences = [values_of(one, a, "acc") - values_of(one, b, "acc") for one in given]
        assert pair.interval.mean == pytest.approx(np.mean([difference.mean() for difference in differences]))
    assert [str(row.rank("acc")) for row in across.mean.rows] == ["1 of 3", "2 of 3", "3 of 3"]


def test_the_mean_is_exported_with_every_data_set() -> None:
    given, comparison = compared()
    table = comparison.to_pandas("data_sets").query("metric == 'acc' and method == 'ncc'")
    assert table["data_set"].tolist() == ["birds", "fungi", "textures", "mean of 3"]
    means = [values_of(one, "ncc", "acc").mean() for one in given]
    assert table["mean"].tolist() == pytest.approx([*means, np.mean(means)])
    assert [row["data_set"] for row in comparison.to_json()["data_sets"]].count("mean of 3") == 6
    last = comparison.to_latex().split(r"\begin{table")[-1]
    assert f"mean of 3 & \\textbf{{{np.mean(means):.1f}}}" in last
    assert comparison.design_name(comparison.designs[1]) == "fungi, 3-way 1-shot"
    assert compare(given[0]).data_sets == []


def test_gaps_have_means_too_and_classifiers_that_are_not_everywhere_are_left_out() -> None:
    given = [
        results_of(name, sampler, 0.3 * (sampler == "fewstab"))
        for name in ("a", "b")
        for sampler in ("random", "fewstab")
    ]
    given[3] = draw_results(draw_tasks("fewstab", data_set="b", tasks=30), {"knn": 0.2, "ncc": 0.5}, seed=1)
    comparison = compare(given)
    by_title = {across.mean.title: across for across in comparison.data_sets}
    assert list(by_title) == ["random", "fewstab", "gap, random - fewstab", "skill lost, random - fewstab"]
    gap = by_title["gap, random - fewstab"].mean
    assert [row.classifier.method for row in gap.rows] == ["ncc", "knn"]
    expected = np.mean(
        [values_of(given[n], "knn", "wacc").mean() - values_of(given[n + 1], "knn", "wacc").mean() for n in (0, 2)]
    )
    assert gap.rows[1].means["wacc"] == pytest.approx(expected)
    # Data set b has the two in the other order: their difference keeps its sign.
    (pair,) = gap.pairs["acc", "sampler"]
    assert pair.interval.mean == pytest.approx(gap.rows[0].means["acc"] - gap.rows[1].means["acc"])


def test_data_sets_of_one_name_or_none_are_numbered_and_not_named_by_digests() -> None:
    def design(name: str, catalog: str | None, dial: float | None = None) -> Design:
        return Design(name, catalog, "test", 5, 1, 15, dial)

    def names(*designs: Design) -> list[str]:
        return [with_data_set_name.data_set for with_data_set_name in with_data_set_names(dict.fromkeys(designs))]

    assert names(design("birds", "c1"), design("birds", "c2"), design("dogs", "c3")) == [
        "birds (1)",
        "birds (2)",
        "dogs",
    ]
    assert names(design("", "c2"), design("", "c1")) == ["data set 1", "data set 2"]
    assert names(design("", None)) == [""]
    assert names(design("", "c1"), design("dogs", "c3")) == ["data set 1", "dogs"]
    assert names(design("calls", "c1", 0.2), design("calls", "c2", 0.4)) == ["calls", "calls"]
    unnamed = []
    for number in (1, 2):
        made = results_of("x" * number)
        record = made.record.tasks
        bare = TasksRecord(
            sources={"catalog": Source(record.sources["catalog"].digest)},
            sampler=record.sampler,
            way=3,
            shot=1,
            query=4,
        )
        unnamed.append(Results(made.table, type(made.record)(made.record.name, made.record.sources, tasks=bare)))
    comparison = compare(unnamed)
    assert [comparison.design_name(design) for design in comparison.designs] == [
        "data set 1, 3-way 1-shot",
        "data set 2, 3-way 1-shot",
    ]
    assert "catalog-of" not in str(comparison.to_csv())


def test_an_average_is_refused_where_a_part_is() -> None:
    fine, constant = Estimate.over_tasks([1.0, 2.0, 4.0]), Estimate.over_tasks([3.0, 3.0])
    assert Estimate.average([fine, constant]).refused == constant.refused
    assert Estimate.average([fine]) == fine
    assert fine.negated().negated() == fine
