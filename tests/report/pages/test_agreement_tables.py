from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shotproof.analysis.compare import compare
from shotproof.report.pages.agreement_tables import detector_tables, seed_rows
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_each_detector_has_a_column(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    methods = {"ncc": 0.9, "svm": 0.75, "ridge": 0.6, "knn": 0.3}
    sets = [make_tasks(catalog, seed=seed, detector=name) for seed, name in enumerate(("captions", "photometric"))]
    random = make_tasks(catalog, "random", seed=5)
    results = [make_results(tasks, "pixels", methods) for tasks in (random, *sets)]
    (table,) = detector_tables(compare(results))
    assert table.name == "3-way 1-shot"
    assert table.columns == ["wAcc-A [captions]", "wAcc-A [photometric]"]
    for method, intervals in table.rows:
        means = [result.counts(method).worst_by_task().mean() for result in results[1:]]
        assert [interval.mean for interval in intervals if interval] == pytest.approx(means)
    (agreement,) = table.agreements
    assert agreement.detectors == ("captions", "photometric")
    assert agreement.correlation == 1.0


def test_variants_of_a_sampler_have_tables_of_their_own(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    variants = [(name, {"tolerance": number}) for number in (1, 2) for name in ("captions", "photometric")]
    results = [
        make_results(make_tasks(catalog, seed=seed, detector=name, options=options), "pixels", {"ncc": 0.9, "knn": 0.3})
        for seed, (name, options) in enumerate(variants)
    ]
    tables = detector_tables(compare(results))
    assert [[agreement.sampler for agreement in table.agreements] for table in tables] == [
        ["fewstab(tolerance=1)"],
        ["fewstab(tolerance=2)"],
    ]


def test_one_detector_has_no_table(tmp_path: Path) -> None:
    assert detector_tables(compare(make_experiment(tmp_path)[0])) == []


def test_the_mean_is_over_all_tasks_and_the_spread_over_seeds(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    by_sampler = {
        sampler: [
            make_results(make_tasks(catalog, sampler, seed=seed), "pixels", {"ncc": share}, seed=3) for seed in range(3)
        ]
        for sampler, share in (("random", 0.8), ("fewstab", 0.4))
    }
    rows = seed_rows(compare([result for results in by_sampler.values() for result in results]))
    assert [row.title for row in rows] == ["random", "fewstab", "gap, random - fewstab"]
    accuracy = {
        name: [result.counts("ncc").accuracy_by_task().mean() for result in results]
        for name, results in by_sampler.items()
    }
    expected = [accuracy["random"], accuracy["fewstab"], np.subtract(accuracy["random"], accuracy["fewstab"])]
    for row, means in zip(rows, expected, strict=True):
        assert (row.classifier.method, row.seeds) == ("ncc", [0, 1, 2])
        assert row.interval.mean == pytest.approx(np.mean(means))
        assert row.deviation == pytest.approx(np.std(means, ddof=1))


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    assert seed_rows(compare(make_experiment(tmp_path)[0])) == []
