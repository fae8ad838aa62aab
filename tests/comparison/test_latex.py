from __future__ import annotations

import re

import pytest

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.latex import escape
from shotproof.comparison.wide import best_of
from shotproof.results.evaluated import Classifier, evaluated_sets
from shotproof.results.results import Results
from tests.drawn_results import draw_results, draw_tasks

METHODS = {"ncc": 0.9, "ridge": 0.62, "knn": 0.6}


def compared(*results: Results, correct: bool = True) -> Comparison:
    return compare_sets(evaluated_sets(results), ("sampler",), correct=correct)


def with_gaps() -> Comparison:
    biased = draw_results(draw_tasks("fewstab", tasks=60, detector="a_b"), {"ncc": 0.5, "ridge": 0.5, "knn": 0.5})
    return compared(draw_results(draw_tasks(tasks=60), METHODS, seed=1), biased)


def rows_of(latex: str) -> dict[str, list[str]]:
    """The cells of each row of the body, by the first one."""
    body = latex.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    lines = [line.removesuffix(r"\\").split("&") for line in body.strip().splitlines() if line != r"\midrule"]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_cells_are_means_with_half_widths_in_as_many_columns_as_the_heading() -> None:
    comparison = with_gaps()
    latex = comparison.to_latex()
    row = comparison.groups[0].rows[1]
    interval = row.intervals["acc"]["sampler"]
    assert rows_of(latex)["ridge"][0] == rf"{interval.mean:.1f} {{\scriptsize$\pm${interval.half_width:.1f}}}"
    assert {len(cells) for cells in rows_of(latex).values()} == {8}
    assert r"\begin{tabular}{lcccccccc}" in latex
    assert latex.count(r"\multicolumn{2}{c}") == 4
    assert r"\begin{table*}[t]" in latex  # over both columns of text
    assert r"gap, random $-$ fewstab" in latex
    assert r"skill lost, random $-$ fewstab" in latex


def test_all_that_none_is_conclusively_better_than_are_bold() -> None:
    comparison = with_gaps()
    bold = {name: [r"\textbf" in cell for cell in cells] for name, cells in rows_of(comparison.to_latex()).items()}
    random, fewstab = comparison.groups
    (loss,) = comparison.blocks[0].losses
    gap = loss.gap
    for place, group in enumerate((random, fewstab, gap, loss.skill)):
        for at, metric in enumerate(("acc", "wacc")):
            best = best_of(group, metric, "sampler")  # type: ignore[arg-type]
            assert {name for name, cells in bold.items() if cells[2 * place + at]} == {one.method for one in best}
    assert best_of(random, "acc", "sampler") == {Classifier("pixels", "ncc")}
    assert {one.method for one in best_of(fewstab, "acc", "sampler")} == set(METHODS)  # nothing tells them apart
    assert {one.method for one in best_of(gap, "acc", "sampler")} == {"ridge", "knn"}  # the lowest, and a tie


def test_nothing_is_bold_where_there_is_nothing_to_choose_from() -> None:
    alone = compared(draw_results(draw_tasks(), {"ncc": 0.5}))
    constant = compared(draw_results(draw_tasks(), {"ncc": 1.0, "ridge": 1.0}))
    for comparison in (alone, constant):
        assert r"\textbf" not in comparison.to_latex()
        assert "Bold" not in comparison.to_latex()
    assert "No interval: all 20 tasks have the same value" in constant.to_latex()


def test_the_caption_states_the_interval_and_what_bold_means() -> None:
    caption = re.findall(r"\\caption\{(.*)\}", with_gaps().to_latex())[0]
    assert "birds, 3-way 1-shot, 4 queries per class, split test" in caption
    assert r"half-width of the 95\% interval 'sampler'" in caption
    assert "New tasks" in caption
    assert "skill lost in percent" in caption
    for part in ("Bold", "conclusively higher (for losses, lower)", "paired tests", "corrected"):
        assert part in caption


def test_it_is_balanced_and_escaped() -> None:
    tasks = draw_tasks(data_set="50% of {birds} & a_b #1 ~x^2 \\ <y>")
    latex = compared(
        *(draw_results(tasks, {"ridge(penalty=1_0)": 0.5, "[knn]": 0.7}, e) for e in ("l_0", "p$"))
    ).to_latex()
    bare = re.sub(r"\\[\\{}&%$#_]", "", latex)  # what was escaped, and ends of lines
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("#%^~<>_") & set(re.sub(r"\$[<>]\$", "", bare))
    for environment in ("table", "tabular"):
        assert latex.count(rf"\begin{{{environment}}}") == latex.count(rf"\end{{{environment}}}") == 1
    ends = [line.count("&") for line in re.sub(r"\\&", "", latex).splitlines() if line.endswith(r"\\")]
    assert set(ends) == {2, 3}  # the heading of groups spans two columns
    assert r"l\_0 & ridge(penalty=1\_0) &" in latex
    assert "\n & {[}knn{]} &" in latex  # a bare bracket after a line's end would be its argument


def test_there_is_one_table_per_design_and_one_for_two_detectors() -> None:
    methods = {"ncc": 0.8, "knn": 0.6, "ridge": 0.4, "svm": 0.2}
    results = [
        draw_results(draw_tasks("fewstab", tasks=200, detector=detector, data_set=data_set), methods)
        for detector in ("captions", "photometric")
        for data_set in ("birds", "sounds")
    ]
    latex = compared(*results).to_latex()
    # And for each detector's tasks the two data sets with their mean.
    assert latex.count(r"\begin{table}") == 4 + 2
    assert "fewstab & captions, photometric & 1.00 & -- & --" in latex
    assert len(set(re.findall(r"\\label\{(.*)\}", latex))) == 4 + 2


def test_the_deviation_over_seeds_stands_beside_the_half_width() -> None:
    results = [draw_results(draw_tasks(seed=seed), METHODS, seed=seed) for seed in (0, 1, 2)]
    comparison = compared(*results)
    row = comparison.groups[0].rows[0]
    cell = rows_of(comparison.to_latex())["ncc"][0]
    assert cell.endswith(
        rf"{{\scriptsize$\pm${row.intervals['acc']['sampler'].half_width:.1f} ({row.spread('acc'):.1f})}}"
    )
    assert "random (60, 3 seeds)" in comparison.to_latex()


@pytest.mark.parametrize(("text", "expected"), [("a_b", r"a\_b"), ("\\", r"\textbackslash{}"), ("50%", r"50\%")])
def test_special_characters(text: str, expected: str) -> None:
    assert escape(text) == expected
