from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shotproof.analysis.compare import compare
from shotproof.report.pages.replicates import seeds_rows
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_the_mean_is_over_all_tasks_and_the_spread_over_seeds(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    by_sampler = {
        sampler: [
            make_results(make_tasks(catalog, sampler, seed=seed), "pixels", {"ncc": share}, seed=3) for seed in range(3)
        ]
        for sampler, share in (("random", 0.8), ("fewstab", 0.4))
    }
    rows = seeds_rows(compare([one for results in by_sampler.values() for one in results]))
    assert [row.set_name for row in rows] == [
        f"{name}, 3-way 1-shot" for name in ("random", "fewstab", "gap, random - fewstab")
    ]
    accuracy = {
        name: [one.counts("ncc").accuracy_by_task().mean() for one in results] for name, results in by_sampler.items()
    }
    expected = [accuracy["random"], accuracy["fewstab"], np.subtract(accuracy["random"], accuracy["fewstab"])]
    for row, means in zip(rows, expected, strict=True):
        assert (row.classifier, row.seeds) == ("ncc", 3)
        assert row.means["acc"] == pytest.approx(np.mean(means))
        assert row.spreads["acc"] == pytest.approx(np.std(means, ddof=1))


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    assert seeds_rows(compare(make_experiment(tmp_path)[0])) == []
