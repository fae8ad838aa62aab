from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import Maker, MethodRecord, Source, TasksRecord
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation import item_tensors
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, Method, make_method
from shotproof.results.results import SCHEMA, Results
from shotproof.tasks.taskset import TaskSet
from tests.drawn_tasks import draw_task_set


def one_by_one(tasks: TaskSet, features: Features, spec: str) -> list[dict[str, Any]]:
    """The rows of the results, from one call of the method per task."""
    vector = dict(zip(features.table.column("item").to_pylist(), features.array.astype(np.float64), strict=True))
    rows = []
    for start, end in zip(tasks.starts, tasks.starts[1:], strict=False):
        classes = tasks.table.slice(start, end - start).to_pylist()
        support = np.stack([vector[item] for row in classes for item in row["support"]])
        labels = np.repeat([row["slot"] for row in classes], [len(row["support"]) for row in classes])
        for row in classes:
            query = np.stack([vector[item] for item in row["query"]])
            tensors = (torch.from_numpy(array).unsqueeze(0) for array in (support, labels, query))
            answer = make_method(spec).scores(*tensors, len(classes))[0].argmax(-1).tolist()
            missed = [position for position, slot in enumerate(answer) if slot != row["slot"]]
            kept = {name: row[name] for name in ("task", "slot", "label")}
            counts = {"n_query": len(query), "n_correct": len(query) - len(missed), "missed": missed}
            counts["answered"] = [answer[position] for position in missed]
            rows.append({"method": spec, **kept, **counts})
    return rows


@pytest.mark.parametrize("spec", [*DEFAULT_METHODS, "sklearn:sklearn.linear_model.RidgeClassifier(alpha=3)"])
def test_counts_are_those_of_a_loop_over_tasks(spec: str) -> None:
    tasks, features = draw_task_set()
    expected = one_by_one(tasks, features, spec)
    assert evaluate(tasks, features, [spec]).table.to_pylist() == expected
    assert any(row["missed"] for row in expected)


def test_rows_are_ordered_by_method_task_and_slot() -> None:
    tasks, features = draw_task_set()
    together = evaluate(tasks, features, ["ridge", "ncc"])
    apart = [evaluate(tasks, features, method).table for method in ("ridge", make_method("ncc"))]
    assert together.table.schema.equals(SCHEMA)
    assert together.table.equals(pa.concat_tables(apart))


def test_no_result_depends_on_the_chunk_nor_on_how_products_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, features = draw_task_set(tasks=60)
    specs = [*DEFAULT_METHODS, DecisionTreeClassifier(splitter="random")]
    whole = evaluate(tasks, features, specs)
    for gram_items, chunk in product((0, 12_000), (1, 7)):
        monkeypatch.setattr(item_tensors, "MOST_GRAM_ITEMS", gram_items)
        assert evaluate(tasks, features, specs, chunk=chunk).table.equals(whole.table)


def test_the_first_tasks_have_the_same_results_alone() -> None:
    tasks, features = draw_task_set()
    specs = ["logistic", RandomForestClassifier(n_estimators=2)]
    few, all_of_them = (evaluate(chosen, features, specs).table for chosen in (tasks.first(5), tasks))
    within = all_of_them.filter(pc.less(all_of_them.column("task"), 15))
    assert few.equals(within)


def test_the_seed_matters_to_methods_that_draw_alone() -> None:
    tasks, features = draw_task_set()
    specs = ["ncc", RandomForestClassifier(n_estimators=2)]
    first, again, second = (evaluate(tasks, features, specs, seed=seed) for seed in (0, 0, 1))
    assert first.table.equals(again.table)
    assert first.counts("ncc").n_correct.tolist() == second.counts("ncc").n_correct.tolist()
    assert not first.table.equals(second.table)


def test_items_that_are_copies_tie_and_the_lowest_class_wins() -> None:
    tasks, features = draw_task_set(d=50)
    row = np.random.default_rng(0).normal(size=50)
    same = Features.from_array(features.table.column("item").to_pylist(), np.tile(row, (len(features), 1)))
    results = evaluate(tasks, same, ["ncc", "cosine", "knn", "logistic(C=0.1)"]).table
    right = pc.equal(results.column("n_correct"), results.column("n_query"))
    # Logistic regression has a bias, which favors the class with the most shots.
    lowest = pc.equal(results.column("slot"), 0)
    no_bias = pc.not_equal(results.column("method"), "logistic(C=0.1)")
    assert right.filter(no_bias).equals(lowest.filter(no_bias))


@pytest.mark.parametrize("gram_items", [0, 12_000])
def test_distances_survive_a_large_offset(gram_items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_tensors, "MOST_GRAM_ITEMS", gram_items)
    tasks, features = draw_task_set(tasks=60)
    items = features.table.column("item").to_pylist()
    grid = np.round(features.array * 64) / 64  # exact in float32 with or without the offset
    plain, moved = (evaluate(tasks, Features.from_array(items, grid + offset), ["ncc"]) for offset in (0, 8192))
    assert plain.table.equals(moved.table)


def test_half_precision_features_are_taken() -> None:
    tasks, features = draw_task_set()
    half = Features.from_array(features.table.column("item").to_pylist(), features.array.astype(np.float16))
    single = Features.from_array(features.table.column("item").to_pylist(), half.array.astype(np.float32))
    assert evaluate(tasks, half, DEFAULT_METHODS).table.equals(evaluate(tasks, single, DEFAULT_METHODS).table)


def test_a_slice_of_tasks_from_a_file_evaluates_as_itself(tmp_path: Path) -> None:
    tasks, features = draw_task_set()
    tasks.first(4).write(tmp_path / "tasks.parquet")
    read = evaluate(TaskSet.read(tmp_path / "tasks.parquet"), features, "ncc")
    assert read.table.equals(evaluate(tasks.first(4), features, "ncc").table)
    assert read.record.tasks_digest == tasks.first(4).digest


def test_provenance() -> None:
    tasks, features = draw_task_set()
    tasks = TaskSet(tasks.table, TasksRecord(name="mine", sampler=Maker("random"), stated_digest="of the file"))
    results = evaluate(tasks, features, ["ridge(penalty=2)", LogisticRegression(class_weight={0: 2})], seed=4)
    ridge, regression = results.record.methods
    assert ridge == MethodRecord("ridge(penalty=2)", {"penalty": 2}, warnings=0)
    assert regression.options["class"] == "sklearn.linear_model._logistic.LogisticRegression"
    assert results.record.seed == 4
    assert results.record.tasks == TasksRecord(name="mine", sampler=Maker("random"))
    assert results.record.sources["tasks"] == Source(tasks.digest, "mine")
    assert results.record.sources["features"] == Source(features.digest, features.name)


def test_the_same_evaluation_gives_the_same_bytes(tmp_path: Path) -> None:
    tasks, features = draw_task_set()
    for name, chunk in (("a", None), ("b", 3)):
        evaluate(tasks, features, DEFAULT_METHODS, chunk=chunk).write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Results.read(tmp_path / "a").methods == list(DEFAULT_METHODS)


def test_warnings_of_a_method_are_counted_and_told_once() -> None:
    tasks, features = draw_task_set()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = evaluate(tasks, features, ["ncc", LogisticRegression(max_iter=1)])
    assert len(told) == 1
    assert "'LogisticRegression(max_iter=1)' warned 20 times: ConvergenceWarning: lbfgs" in str(told[0].message)
    assert [method.warnings for method in results.record.methods] == [0, 20]


def test_zero_vectors_are_told_once_and_evaluated() -> None:
    tasks, features = draw_task_set()
    values = features.array.copy()
    zero = tasks.table.column("support")[0].as_py()[0]
    values[features.table.column("item").to_pylist().index(zero)] = 0
    with pytest.warns(RuntimeWarning, match=r"features of 'features': 1 of \d+ items are zero"):
        results = evaluate(tasks, Features.from_array(features.table.column("item").to_pylist(), values), ["ncc"])
    has_it = [zero in [*row["support"], *row["query"]] for row in tasks.table.to_pylist()]
    others = ~np.isin(tasks.task_of_row, tasks.task_of_row[np.array(has_it)])
    counts, usual = (one.table.column("n_correct").to_numpy() for one in (results, evaluate(tasks, features, "ncc")))
    assert 0 < others.sum() < len(others)
    assert np.array_equal(counts[others], usual[others])


@dataclass(frozen=True)
class Returns(Method):
    about = "whatever a test wants"

    value: str
    extra: int = 0

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        return torch.full((*query.shape[:2], way + self.extra), float(self.value))


def test_methods_that_break_the_contract_are_named() -> None:
    tasks, features = draw_task_set()
    with pytest.raises(InputError, match=r"method 'Returns\(value='nan'\)': .*not a number"):
        evaluate(tasks, features, [Returns("nan")])
    with pytest.raises(InputError, match="expected scores of shape"):
        evaluate(tasks, features, [Returns("0", extra=1)])


def test_a_method_that_rules_out_every_class_gives_the_lowest() -> None:
    tasks, features = draw_task_set()
    counts = evaluate(tasks, features, [Returns("-inf")]).table
    assert pc.all(pc.equal(pc.equal(counts.column("n_correct"), 0), pc.greater(counts.column("slot"), 0))).as_py()


def test_bad_input() -> None:
    tasks, features = draw_task_set()
    with pytest.raises(InputError, match="method 'ncc' is given twice"):
        evaluate(tasks, features, ["ncc", "ridge", " ncc "])
    with pytest.raises(InputError, match="no method to evaluate"):
        evaluate(tasks, features, [])
    with pytest.raises(InputError, match="chunk: expected a whole number from 1 to 10,000,000, found 0"):
        evaluate(tasks, features, ["ncc"], chunk=0)
    with pytest.raises(InputError, match="device 'gpu' cannot be used"):
        evaluate(tasks, features, ["ncc"], runtime=Runtime(device="gpu"))
    with pytest.raises(Mismatch, match="the features lack"):
        evaluate(tasks, Features(features.table.slice(40)), ["ncc"])
