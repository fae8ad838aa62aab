from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.plan_curve import plan_curves
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import plan
from tests.report_files import ITEMS, LABELS, make_catalog, make_results, make_tasks


def test_the_pilot_is_the_most_accurate_classifier_on_random_tasks(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog, "random", tasks=60)
    results = [make_results(tasks, "a", {"ncc": 0.5, "knn": 0.4}), make_results(tasks, "bb", {"ncc": 0.3, "knn": 0.8})]
    (curve,) = plan_curves(compare(results), Inputs(results, catalogs=[catalog]))
    assert (str(curve.classifier), curve.query) == ("knn on bb", 4)
    moments = Pilot.of(results[1]).moments("knn")
    assert curve.plan == plan(moments, shot=1, way=3, classes=len(LABELS), items=ITEMS, queries=range(1, 31))


@pytest.mark.parametrize(("sampler", "accuracy"), [("fewstab", 0.5), ("random", 1.0)])
def test_results_that_allow_no_plan_give_none(tmp_path: Path, sampler: str, accuracy: float) -> None:
    catalog = make_catalog(tmp_path)
    results = [make_results(make_tasks(catalog, sampler), "pixels", {"ncc": accuracy})]
    assert plan_curves(compare(results), Inputs(results, catalogs=[catalog])) == []


def test_without_the_catalog_there_is_no_plan(tmp_path: Path) -> None:
    results = [make_results(make_tasks(make_catalog(tmp_path), "random"), "pixels", {"ncc": 0.5})]
    assert plan_curves(compare(results), Inputs(results)) == []
