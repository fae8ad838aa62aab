"""The papers' figures agree with each other, as far as papers print sums and differences of their own figures."""

from __future__ import annotations

import csv

import pytest
from reproduction.papers import ARTEFACT, COLUMNS, MINIMUM, PAPERS, SOUND, read_figures
from reproduction.sections.fewstab import ABLATIONS, METHODS

from shotproof.results.metrics import rank_correlation

NAMES = [method.name for method in METHODS]
FILES = sorted(path.stem for path in PAPERS.glob("*.csv") if path.stem != "spuraudio-statements")


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_the_columns_and_each_figure_once(name: str) -> None:
    with (PAPERS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["sound"] for row in rows} <= {SOUND, MINIMUM, ARTEFACT}
    assert len(read_figures(name)) == len(rows) > 0


@pytest.mark.parametrize("shot", [1, 5])
def test_gaps_and_the_rank_correlation_follow_from_the_accuracies(shot: int) -> None:
    paper = read_figures("fewstab-cub")
    random, biased = ([paper[name, shot, one].value for name in NAMES] for one in ("wAcc-R", "wAcc-A"))
    for name, first, second in zip(NAMES, random, biased, strict=True):
        assert paper[name, shot, "gap"].value == pytest.approx(first - second, abs=0.011)
    printed = read_figures("fewstab-rank-correlations")["all ten", shot, "Spearman of wAcc-A and wAcc-R, CUB"]
    assert printed.value == pytest.approx(rank_correlation(random, biased), abs=0.0051)


@pytest.mark.parametrize("which", list(ABLATIONS))
def test_mean_drops_follow_from_the_methods(which: str) -> None:
    paper, main = read_figures("fewstab-cub-ablations"), read_figures("fewstab-cub")
    drops = [main[name, 5, "wAcc-R"].value - paper[name, 5, f"wAcc-A, {which}"].value for name in NAMES]
    assert paper["mean of ten", 5, f"drop, {which}"].value == pytest.approx(sum(drops) / 10, abs=0.011)
