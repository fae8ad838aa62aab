from __future__ import annotations

import csv
import json
import math

import numpy as np
import pyarrow as pa
import pytest

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.comparison_tables import to_arrow
from shotproof.core.errors import UnknownName
from shotproof.results.evaluated import evaluated_sets
from shotproof.results.results import Results
from shotproof.stats.intervals import Interval
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.9, "ridge": 0.6, "knn": 0.58}
BIASED = {"ncc": 0.5, "ridge": 0.5, "knn": 0.3}
DESIGN = {"data_set": "birds", "split": "test", "way": 3, "shot": 1, "query": 4, "dial": None}
TABLES = ("estimates", "pairs", "seeds", "detectors", "agreements")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two seeds of random tasks, two detectors, and a second data set."""
    results = [draw_results(draw_tasks(tasks=40, seed=seed), METHODS, seed=seed) for seed in (0, 1)]
    results += [
        draw_results(draw_tasks("fewstab", tasks=50, detector=detector), BIASED, seed=seed)
        for seed, detector in enumerate(("captions", "photometric"))
    ]
    results.append(draw_results(draw_tasks(data_set="sounds", tasks=1), {"ncc": 0.5}))
    return compare_sets(evaluated_sets(results), ("sampler",))


def test_json_has_what_was_compared_beside_the_tables(comparison: Comparison) -> None:
    written = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert {"unit", "level", "metric", "holm", "encoders", "covers", "refused", "notes", *TABLES} <= written.keys()
    assert written["tasks"][1]["detector"] == "captions"
    references = {"fewstab [captions]": "random", "fewstab [photometric]": "random"}
    assert [design["references"] for design in written["designs"]] == [references, {}]


def test_an_estimate_says_what_it_is_of(comparison: Comparison) -> None:
    first = comparison.estimates.to_pylist()[0]
    expected = {"classifier": "ncc", "method": "ncc", "encoder": "pixels", "tasks": "random", "reference": None}
    expected |= {"quantity": "accuracy", "metric": "acc", "rank_best": 1, "rank_worst": 1, "rank_of": 3, **DESIGN}
    assert first.items() >= {**expected, "seeds": [0, 1], "task_count": 80, "detector": None}.items()
    values = [values_of(draw_results(draw_tasks(tasks=40, seed=s), METHODS, seed=s), "ncc", "acc") for s in (0, 1)]
    assert first["mean"] == pytest.approx(np.mean(values))
    assert first["variance"] == first["task_variance"] == pytest.approx(np.var(values, ddof=1) / 80, rel=0.01)
    again = Interval(**{name: first[name] for name in ("mean", "low", "high", "variance", "uncertainty", "skew")})
    assert again.estimate.interval().low == pytest.approx(first["low"])


def test_what_is_lost_has_a_reference_and_a_conclusion(comparison: Comparison) -> None:
    lost = comparison.to_pandas().query("tasks == 'fewstab [captions]' and metric == 'acc' and reference == 'random'")
    assert lost["quantity"].tolist() == ["gap"] * 3 + ["skill_lost"] * 3
    assert set(lost["axis"]) == {"attributes"}
    assert lost["chance"].tolist() == pytest.approx([100 / 3] * 6)
    gaps = lost[lost["quantity"] == "gap"].set_index("method")
    assert gaps.loc["ncc", "conclusion"] == "+"
    assert lost[lost["quantity"] == "skill_lost"]["conclusion"].isna().all()


def test_a_pair_is_the_difference_of_two_estimates(comparison: Comparison) -> None:
    keys = ["tasks", "quantity", "metric", "interval", "data_set"]
    means = comparison.to_pandas().set_index([*keys, "classifier"])["mean"]
    for pair in comparison.pairs.to_pylist():
        a, b = (means.loc[(*(pair[key] for key in keys), pair[side])] for side in "ab")
        assert pair["mean"] == pytest.approx(a - b)
        assert pair["conclusion"] in "+0-"


def test_what_is_not_there_is_null(comparison: Comparison) -> None:
    alone = next(row for row in comparison.estimates.to_pylist() if row["data_set"] == "sounds")
    assert (alone["low"], alone["high"], alone["variance"]) == (None, None, None)
    assert alone["refused"].startswith("one task has no variance")


@pytest.mark.parametrize("table", TABLES)
def test_json_pandas_and_csv_have_the_rows_and_columns_of_one_table(comparison: Comparison, table: str) -> None:
    rows, frame = comparison.to_json()[table], comparison.to_pandas(table)
    assert rows == to_arrow(comparison, table).to_pylist()
    assert len(rows) == len(frame) > 0
    parts = [list(csv.DictReader(part.splitlines())) for part in comparison.to_csv().split("\n\n")]
    (parsed,) = [part for part in parts if [*part[0]] == [*rows[0]] and len(part) == len(rows)]
    for row, of_frame, text in zip(rows, frame.to_dict("records"), parsed, strict=True):
        assert row.keys() == of_frame.keys() == text.keys()
        for name, value in row.items():
            if isinstance(value, list):
                assert value == list(of_frame[name]) == [int(part) for part in text[name].split()]
            elif value is None:
                assert text[name] == ""
                assert of_frame[name] is None or math.isnan(of_frame[name])
            else:
                assert of_frame[name] == value
                assert type(value)(text[name]) == value


def test_a_table_without_rows_keeps_its_columns(comparison: Comparison) -> None:
    empty = Comparison(0.95, "acc", True, ("sampler",), [])
    for name in TABLES:
        assert to_arrow(empty, name).schema == to_arrow(comparison, name).schema


def test_ranks_of_a_row_are_by_its_own_metric() -> None:
    tasks = draw_tasks(tasks=60)
    flip = draw_results(tasks, {"steady": 0.75})
    rows = flip.table.to_pylist()
    # A method that is right on two classes and never on the third: a higher Acc than another's with a lower wAcc.
    other = [
        {**row, "method": "lopsided", "n_correct": 0 if row["slot"] == 0 and row["task"] % 9 else 4} for row in rows
    ]
    comparison = compare_sets(evaluated_sets([Results(pa.Table.from_pylist(rows + other), flip.record)]), ("sampler",))
    ranks = {
        (row["method"], row["metric"]): (row["rank_best"], row["rank_worst"])
        for row in comparison.estimates.to_pylist()
    }
    assert ranks["steady", "wacc"] == (1, 1)
    assert ranks["lopsided", "wacc"] == (2, 2)


def test_there_is_one_row_per_seed_with_the_mean_and_deviation(comparison: Comparison) -> None:
    rows = [
        row for row in to_arrow(comparison, "seeds").to_pylist() if row["method"] == "ncc" and row["metric"] == "acc"
    ]
    assert [(row["tasks"], row["seed"]) for row in rows] == [("random", 0), ("random", 1)]
    means = [row["mean"] for row in rows]
    assert rows[0]["mean_over_seeds"] == pytest.approx(np.mean(means))
    assert rows[0]["deviation"] == pytest.approx(np.std(means, ddof=1))


def test_an_unknown_table_is_named(comparison: Comparison) -> None:
    with pytest.raises(UnknownName, match="unknown table 'estimate': did you mean 'estimates'"):
        comparison.to_pandas("estimate")
