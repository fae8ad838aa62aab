"""Tasks of unequal ways, shots and queries, and classes without queries, from the task set to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

from shotproof.analysis.compare import compare
from shotproof.analysis.explored_tasks import choose_tasks
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.planning.pilot import Pilot
from shotproof.results.answers import answers_on
from shotproof.results.evaluated import values_of
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.drawn_images import draw_catalog
from tests.report_files import write_report
from tests.tasks.uniform.test_depletion import catalog_of

DESIGN: dict[str, Any] = {"way": 3, "shot": 2, "query": 3, "tasks": 25}


@pytest.fixture(scope="module")
def data() -> tuple[Catalog, Features]:
    catalog = catalog_of([24] * 12)
    rng = np.random.default_rng(2)
    values = np.repeat(rng.normal(size=(12, 6)), 24, axis=0) + 1.5 * rng.normal(size=(288, 6))
    return catalog, Features.from_array(catalog.items, values)


def unequal(catalog: Catalog) -> TaskSet:
    return sample(catalog, "random(query_dirichlet=0.3)", **DESIGN)


def variable(catalog: Catalog) -> TaskSet:
    return sample(catalog, "meta-dataset(max_way=6)", tasks=25)


@pytest.fixture(params=[unequal, variable])
def tasks(request: pytest.FixtureRequest, data: tuple[Catalog, Features]) -> TaskSet:
    made: TaskSet = request.param(data[0])
    return made


def test_evaluation_counts_every_class_and_metrics_go_by_those_with_queries(
    tasks: TaskSet, data: tuple[Catalog, Features], tmp_path: Path
) -> None:
    value = dict(zip(data[0].items, data[1].array.astype(float), strict=True))
    evaluate(tasks, data[1], ["ncc", "knn"]).write(tmp_path / "results.parquet")
    results = Results.read(tmp_path / "results.parquet")
    rows = tasks.table.to_pylist()
    accuracies, worst, correct = [], [], []
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        centroids = [np.mean([value[i] for i in row["support"]], axis=0) for row in rows[start:stop]]
        shares = []
        for slot, row in enumerate(rows[start:stop]):
            near = [int(cdist([value[i]], centroids).argmin()) for i in row["query"]]
            correct.append(near.count(slot))
            shares += [100 * near.count(slot) / len(near)] if near else []
        accuracies.append(np.mean(shares))
        worst.append(min(shares))
    counts = results.counts("ncc")
    assert counts.n_correct.tolist() == correct
    assert counts.n_query.tolist() == [len(row["query"]) for row in rows]
    values = values_of(results, "ncc")
    np.testing.assert_allclose(values["acc"], accuracies)
    np.testing.assert_allclose(values["wacc"], worst)
    answered = answers_on(tasks, [evaluate(tasks, data[1], "ncc")])
    shown = [accuracies[chosen.position] for chosen in choose_tasks(answered, 25)]
    assert shown == pytest.approx(sorted(accuracies))


def test_all_intervals_are_given_or_refused_in_words(tasks: TaskSet, data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    results = evaluate(tasks, features, ["ncc", "knn"])
    inputs = Inputs([results], [tasks], [catalog], [features], halvings=4)
    table = compare(inputs, intervals=("sampler", "images", "classes", "depletion"))
    assert list(table.refused) == ["depletion"]
    assert "without replacement; these are" in table.refused["depletion"]
    for row in table.groups[0].rows:
        assert all(row.intervals["acc"][name].half_width > 0 for name in ("sampler", "images", "classes"))


def test_a_plan_says_what_it_needs(data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    with pytest.raises(InputError, match=r"pilot: expected .* way in all tasks, found 5 to 6"):
        Pilot.of(evaluate(variable(catalog), features, "ncc"))
    with pytest.raises(InputError, match=r"pilot: expected .* number of queries in all tasks, found 0 to"):
        Pilot.of(evaluate(unequal(catalog), features, "ncc"))


def test_equal_and_unequal_queries_are_compared(data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    results = [
        evaluate(made, features, ["ncc", "knn"]) for made in (sample(catalog, "random", **DESIGN), unequal(catalog))
    ]
    table = compare(results)
    assert [group.name for group in table.gaps] == ["random - random(query_dirichlet=0.3)"]
    gap = table.gaps[0].rows[0].means["wacc"]
    first, second = (np.mean(values_of(result, "ncc")["wacc"]) for result in results)
    assert gap == pytest.approx(first - second)


def test_a_design_that_varies_is_named_so(data: tuple[Catalog, Features]) -> None:
    design = Origin.of(evaluate(variable(data[0]), data[1], "ncc")).design
    assert (design.way, design.shot, design.query) == (None, None, None)
    assert design.shape == "variable-way variable-shot"


def test_the_report_is_written(tmp_path: Path) -> None:
    drawn = draw_catalog(tmp_path, 48)
    labels = pa.array([f"class{number % 6}" for number in range(48)])
    catalog = Catalog(drawn.table.set_column(drawn.table.column_names.index("label"), "label", labels), drawn.root)
    values = np.random.default_rng(0).normal(size=(48, 4))
    features = Features.from_array(catalog.items, values)
    sets = [sample(catalog, "meta-dataset", tasks=12), sample(catalog, "random(query_dirichlet=0.3)", **DESIGN)]
    write_report(
        tmp_path / "report.html",
        [evaluate(task_set, features, ["ncc", "knn"]) for task_set in sets],
        tasks=sets,
        catalog=catalog,
    )
    page = (tmp_path / "report.html").read_text()
    assert "variable-way variable-shot" in page
    assert "None-way" not in page
    assert "nan" not in page.lower().split()


def test_a_task_needs_a_query_and_a_class_a_list(data: tuple[Catalog, Features]) -> None:
    tasks = unequal(data[0])
    rows = tasks.table.to_pylist()
    for row in rows[:3]:
        row["query"] = []
    with pytest.raises(InputError, match=r"column 'query': every class needs .*at least one item"):
        TaskSet(pa.Table.from_pylist(rows, tasks.table.schema))


def test_the_checker_adds_up_unequal_queries(data: tuple[Catalog, Features]) -> None:
    tasks = unequal(data[0])
    rows = tasks.table.to_pylist()
    full = next(row for row in rows if row["query"])
    full["query"] = full["query"][1:]
    changed = TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record)
    assert [v.message for v in check_tasks(changed, data[0])] == ["8 query items, but the design has 3 times 3"]


def test_the_command_line_says_which_sizes_apply(data: tuple[Catalog, Features], tmp_path: Path) -> None:
    data[0].write(tmp_path / "catalog.parquet")
    command = ["sample", str(tmp_path / "catalog.parquet"), "--sampler", "meta-dataset", "--tasks", "90"]
    output = ["-o", str(tmp_path / "tasks.parquet")]
    plain = CliRunner().invoke(app, [*command, *output])
    assert "90 meta-dataset tasks, 5 to 12 ways, 1 to" in plain.stdout
    assert "does not apply" not in plain.output
    told = CliRunner().invoke(app, [*command, "--way", "7", *output])
    assert "note: sampler 'meta-dataset'" in told.output
    assert "--way 7 does not apply" in told.output
