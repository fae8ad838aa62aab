from __future__ import annotations

import csv
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.core.errors import UnknownName
from shotproof.evaluation.evaluated import evaluated_sets
from shotproof.evaluation.results import Results
from shotproof.stats.compare_sets import compare_sets
from shotproof.stats.comparison import Comparison
from shotproof.stats.export.tables import tables, to_arrow
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.9, "ridge": 0.6, "knn": 0.58}
BIASED = {"ncc": 0.5, "ridge": 0.5, "knn": 0.3}
DESIGN = {"data_set": "birds", "split": "test", "way": 3, "shot": 1, "query": 4, "dial": None}
FIRST = {"best": 1, "worst": 1, "of": 3}
TODAY = ("method", "metric", "mean", "rank_best", "rank_worst", "interval", "low", "high", "refused", "tasks")
TODAY_OF_PAIRS = (
    "a",
    "b",
    "metric",
    "interval",
    "difference",
    "low",
    "high",
    "conclusion",
    "p_value",
    "refused",
    "tasks",
)


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


def test_json_has_the_promised_keys_in_percent_points(comparison: Comparison) -> None:
    written = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert {
        "unit",
        "level",
        "metric",
        "holm",
        "tasks",
        "encoders",
        "covers",
        "refused",
        "notes",
        "methods",
        "pairs",
    } <= written.keys()
    assert {"gaps", "gap_pairs", "conclusive", "designs", "seeds", "detectors", "agreements"} <= written.keys()
    first = written["methods"][0]
    expected = {"method": "ncc", "rank": FIRST, "ranks": {"sampler": FIRST}, "tasks": "random", "seeds": [0, 1]}
    assert first.items() >= {**expected, **DESIGN, "encoder": "pixels", "detector": None, "tasks_in_all": 80}.items()
    interval = comparison.groups[0].rows[0].intervals["wacc"]["sampler"]
    assert first["intervals"]["wacc"]["sampler"] == [interval.low, interval.high]
    values = [values_of(draw_results(draw_tasks(tasks=40, seed=s), METHODS, seed=s), "ncc", "acc") for s in (0, 1)]
    assert first["acc"] == pytest.approx(np.mean(values))
    assert all(set(TODAY_OF_PAIRS) <= pair.keys() for pair in written["pairs"])
    assert {pair["conclusion"] for pair in written["pairs"]} <= {"+", "0", "-"}
    conclusive = {"metric": "acc", "interval": "sampler", "pairs": 3, "tasks": "random"}
    conclusive["conclusive"] = comparison.groups[0].conclusive("acc", "sampler")
    assert written["conclusive"][0].items() >= {**conclusive, **DESIGN}.items()
    assert written["tasks"][1]["detector"] == "captions"
    references = {"fewstab [captions]": "random", "fewstab [photometric]": "random"}
    assert [design["references"] for design in written["designs"]] == [references, {}]
    lost = [row for row in written["gaps"] if row["tasks"] == "random - fewstab [captions]"]
    assert [(row["quantity"], row["axis"]) for row in lost] == [("gap", "attributes")] * 3 + [
        ("skill", "attributes")
    ] * 3
    assert {round(row["chance"]["acc"], 6) for row in lost} == {33.333333}


def test_what_is_not_there_is_null(comparison: Comparison) -> None:
    alone = comparison.to_json()["methods"][-1]
    assert alone["data_set"] == "sounds"
    assert alone["intervals"]["acc"]["sampler"] is None
    assert alone["refused"]["acc"]["sampler"].startswith("one task has no variance")
    row = tables(comparison)["methods"][-1]
    assert (row["low"], row["high"]) == (None, None)


@pytest.mark.parametrize("table", ["methods", "pairs", "gaps", "gap_pairs", "seeds", "detectors", "agreements"])
def test_pandas_and_arrow_equal_the_tidy_rows(comparison: Comparison, table: str) -> None:
    rows, frame, arrow = tables(comparison)[table], comparison.to_pandas(table), to_arrow(comparison, table)
    assert len(rows) == len(frame) == arrow.num_rows > 0
    assert list(frame.columns) == arrow.column_names
    for row, of_frame, of_arrow in zip(rows, frame.to_dict("records"), arrow.to_pylist(), strict=True):
        assert row.keys() == of_frame.keys() == of_arrow.keys()
        for name, value in row.items():
            expected = " ".join(map(str, value)) if isinstance(value, list) else value
            assert of_arrow[name] == expected
            if expected is None:
                assert of_frame[name] is None or math.isnan(of_frame[name])
            else:
                assert of_frame[name] == expected


def test_a_table_without_rows_keeps_its_columns(comparison: Comparison) -> None:
    empty = Comparison(0.95, "acc", True, ("sampler",), [])
    for name in tables(comparison):
        assert to_arrow(empty, name).schema == to_arrow(comparison, name).schema


def test_csv_parses_back_with_todays_columns_first(comparison: Comparison) -> None:
    parts = comparison.to_csv().split("\n\n")
    written = {name: rows for name, rows in tables(comparison).items() if rows}
    parsed = {name: list(csv.DictReader(part.splitlines())) for name, part in zip(written, parts, strict=True)}
    assert tuple(parsed["methods"][0])[:10] == tuple(parsed["gaps"][0])[:10] == TODAY
    assert tuple(parsed["pairs"][0])[:11] == TODAY_OF_PAIRS
    for name, rows in written.items():
        for text, row in zip(parsed[name], rows, strict=True):
            assert {key: _read(text[key], value) for key, value in row.items()} == row


def _read(text: str, like: Any) -> Any:
    if isinstance(like, list):
        return [int(each) for each in text.split()]
    return None if like is None and text == "" else type(like)(text)


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
        (row["method"], row["metric"]): (row["rank_best"], row["rank_worst"]) for row in tables(comparison)["methods"]
    }
    assert ranks["steady", "wacc"] == (1, 1)
    assert ranks["lopsided", "wacc"] == (2, 2)
    for row in comparison.to_json()["methods"]:
        best, worst = ranks[row["method"], "acc"]
        assert row["rank"] == {"best": best, "worst": worst, "of": 2}


def test_there_is_one_row_per_seed_with_the_mean_and_deviation(comparison: Comparison) -> None:
    rows = [row for row in tables(comparison)["seeds"] if row["method"] == "ncc" and row["metric"] == "acc"]
    assert [(row["tasks"], row["seed"]) for row in rows] == [("random", 0), ("random", 1)]
    means = [row["mean"] for row in rows]
    assert rows[0]["mean_over_seeds"] == pytest.approx(np.mean(means))
    assert rows[0]["deviation"] == pytest.approx(np.std(means, ddof=1))


def test_an_unknown_table_is_named(comparison: Comparison) -> None:
    with pytest.raises(UnknownName, match="unknown table 'gap': did you mean 'gaps'"):
        comparison.to_pandas("gap")
