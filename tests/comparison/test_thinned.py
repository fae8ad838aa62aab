from __future__ import annotations

import re
from pathlib import Path

import pytest

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.thinned import thinned
from tests.drawn_results import draw_results, draw_tasks
from tests.report_files import write_report

METHODS = {f"method{number:03}": 40 + number / 4 for number in range(56)}


def classifiers(comparison: Comparison) -> list[str]:
    return sorted({row.classifier.method for group in comparison.groups for row in group.rows})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "report.html"


@pytest.fixture(scope="module")
def whole(page: Path) -> Comparison:
    """56 methods on random and on hard tasks: 1,540 pairs for each metric, set and loss."""
    random = draw_tasks(tasks=6)
    hard = draw_tasks("hardest", tasks=6)
    results = [draw_results(tasks, METHODS) for tasks in (random, hard)]
    return write_report(page, results, intervals="sampler", placebo=False)


def test_a_page_of_many_classifiers_shows_some_from_best_to_worst_and_says_so(whole: Comparison, page: Path) -> None:
    text = page.read_text()
    shown = thinned(whole)
    few, many = classifiers(shown), classifiers(whole)
    assert len(many) == 56
    assert 2 < len(few) < 56
    assert f"{len(few)} of the 56 classifiers" in text
    assert "56 classifiers" in " ".join(re.findall(r'<p class="lead">(.*?)</p>', text))  # statements are on all
    assert len(text) < 10e6
    assert set(re.findall(r"<th scope=\"row\">(method\d+)<", text)) == set(few)


def test_what_is_shown_has_the_numbers_of_the_whole_and_no_more_pairs_than_allowed(whole: Comparison) -> None:
    shown = thinned(whole, most_pairs=300)
    rows = {row.classifier: row for row in whole.groups[0].rows}
    assert all(rows[row.classifier] == row for row in shown.groups[0].rows)
    pairs = set(whole.groups[0].pairs["acc", "sampler"])
    assert set(shown.groups[0].pairs["acc", "sampler"]) <= pairs
    groups = [*shown.groups, *(group for block in shown.blocks for loss in block.losses for group in loss.groups)]
    assert 100 < sum(len(of) for group in groups for of in group.pairs.values()) <= 300
    means = sorted(row.means["acc"] for row in whole.groups[0].rows)
    assert {means[0], means[-1]} <= {row.means["acc"] for row in shown.groups[0].rows} or len(shown.groups) > 1
    assert thinned(shown) is shown
    assert thinned(whole, most_pairs=300).to_json() == shown.to_json()
