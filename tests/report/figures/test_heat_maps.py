from __future__ import annotations

import re
from pathlib import Path

from shotproof.analysis.compare import compare
from shotproof.comparison.numbers import percent
from shotproof.report.figures.heat_maps import best_first, heat_map, heat_maps
from shotproof.stats.intervals import Interval
from tests.report_files import make_experiment


def test_every_classifier_has_a_cell_in_every_task_set(tmp_path: Path) -> None:
    comparison = compare(make_experiment(tmp_path)[0])
    maps = dict(heat_maps(comparison))
    assert len(maps) == 2 * 3  # of each of two designs: random, fewstab, and what is lost
    for row in comparison.rows("gap", "acc"):
        design, accuracy = comparison.design_name(row.design), comparison.number(row, "accuracy", "acc")
        assert accuracy is not None
        assert f"{row.classifier}: {percent(accuracy.mean)} " in maps[f"Acc (%), fewstab, {design}"]
        lost = maps[f"Loss of Acc (points), random - fewstab, {design}"]
        assert f"{row.classifier}: {percent(row.interval.mean)} " in lost


def test_there_is_no_map_of_one_encoder(tmp_path: Path) -> None:
    results = [given for given in make_experiment(tmp_path)[0] if given.record.features.classifier == "pixels"]
    assert heat_maps(compare(results)) == []


def test_the_darkest_cell_is_the_highest_and_the_best_method_comes_first() -> None:
    means = {("a", "low"): 20.0, ("b", "low"): 30.0, ("a", "high <i>"): 90.0, ("b", "high <i>"): 60.0}
    cells = {key: Interval(mean, mean, mean, "sampler", 0.95) for key, mean in means.items()}
    drawn = heat_map(cells, "Acc", best_first(cells))
    opacities = [float(match) for match in re.findall(r'fill-opacity="([\d.]+)"', drawn)]
    assert len(opacities) == 4
    assert opacities.index(max(opacities)) == 0
    assert opacities.index(min(opacities)) == 2
    assert "<i>" not in drawn


def test_preprocessing_is_told_line_by_line_and_with_its_options_where_columns_differ_by_them() -> None:
    encoders = [
        "lite0",
        "lite0 > center(base='b.parquet@1f2e3d4c') > l2",
        "lite0 > power(power=0.5)",
        "lite0 > power(power=1)",
    ]
    cells = {(encoder, "ncc"): Interval(50, 50, 50, "sampler", 0.95) for encoder in encoders}
    labels = re.findall(r">([^<]*)<title>lite0", heat_map(cells, "Acc", ["ncc"]))
    assert labels[:4] == ["lite0", "lite0", "&gt; center", "&gt; l2"]
    assert labels[4] == labels[6] == "lite0"
    assert labels[5] != labels[7]
