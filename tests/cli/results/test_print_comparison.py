"""`shotproof compare` with a page, and what it prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.analysis.compare import compare
from shotproof.cli.app import app
from shotproof.cli.results.print_comparison import print_card
from shotproof.comparison.card import CardRemedy, CardTasks
from shotproof.comparison.numbers import percent
from shotproof.core.errors import InputError, Mismatch
from shotproof.results.evaluated import METRICS
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.changed_run import make_changed_run
from tests.drawn_cards import make_card
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def write_files(folder: Path) -> tuple[list[str], list[str]]:
    """Arguments for all results, and for all tasks and the catalog."""
    results, tasks, catalog = make_experiment(folder)
    names, options = [], [str(folder / "catalog.parquet")]
    for number, result in enumerate(results):
        names.append(str(folder / f"results{number}.parquet"))
        result.write(names[-1])
    for number, task_set in enumerate(tasks):
        options += [str(folder / f"tasks{number}.parquet")]
        task_set.write(options[-1])
    catalog.write(options[0])
    return names, options


def test_prints_the_table_and_says_where_the_page_is(tmp_path: Path) -> None:
    names, options = write_files(tmp_path)
    output = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["compare", *names, *options, "-o", str(output)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    comparison = compare(make_experiment(tmp_path)[0])
    lines = result.output.splitlines()
    for row in comparison.rows("gap", "acc"):
        sides = [
            comparison.number(row, "accuracy", by, tasks) for by in METRICS for tasks in (row.reference, row.tasks)
        ]
        shown = [interval for interval in (*sides, row.interval) if interval]
        assert len(shown) == 5
        cells = [*str(row.classifier).split(), *(percent(interval.mean) for interval in shown)]
        assert any(line.split()[: len(cells)] == cells for line in lines)
    assert f"report: {output}" in lines
    assert 'class="task"' in output.read_text()


def test_json_is_the_comparison_alone(tmp_path: Path) -> None:
    names, _ = write_files(tmp_path)
    result = CliRunner().invoke(app, ["compare", *names, "-o", str(tmp_path / "r.html"), "--json"])
    assert json.loads(result.output) == json.loads(json.dumps(compare(make_experiment(tmp_path)[0]).to_json()))


def test_bad_input_is_an_error_of_our_own(tmp_path: Path) -> None:
    names, options = write_files(tmp_path)
    missing = CliRunner().invoke(app, ["compare", str(tmp_path / "result0.parquet"), "-o", str(tmp_path / "r.html")])
    assert isinstance(missing.exception, InputError)
    assert "did you mean 'results0.parquet'?" in str(missing.exception)
    without = CliRunner().invoke(app, ["compare", options[1], "-o", str(tmp_path / "r.html")])
    assert isinstance(without.exception, InputError)
    assert "no results to compare" in str(without.exception)
    unmatched = CliRunner().invoke(app, ["compare", names[0], *options, "-o", str(tmp_path / "r.html")])
    assert isinstance(unmatched.exception, Mismatch)
    assert not (tmp_path / "r.html").exists()


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    write_files(tmp_path)
    result = CliRunner().invoke(app, ["compare", str(tmp_path), "-o", str(tmp_path / "r.html")])
    assert result.exit_code == 0, result.output
    assert 'class="task"' in (tmp_path / "r.html").read_text()


def test_figures_go_into_their_folder(tmp_path: Path) -> None:
    names, _ = write_files(tmp_path)
    folder = tmp_path / "figures"
    result = CliRunner().invoke(app, ["compare", names[0], "-o", str(tmp_path / "r.html"), "--figures", str(folder)])
    assert f"figures: {folder}" in result.output.splitlines()
    assert {path.suffix for path in folder.iterdir()} == {".svg", ".pdf", ".png"}


def test_a_page_by_another_name_is_refused(tmp_path: Path) -> None:
    names, _ = write_files(tmp_path)
    result = CliRunner().invoke(app, ["compare", *names, "-o", str(tmp_path / "report.pdf")])
    assert isinstance(result.exception, InputError)
    assert "--figures FOLDER" in str(result.exception)
    assert not (tmp_path / "report.pdf").exists()


def test_seeds_and_detectors_are_printed(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    names = []
    for seed in (0, 1):
        for detector in ("captions", "photometric"):
            tasks = make_tasks(catalog, seed=seed + 2 * len(detector), detector=detector)
            tasks = TaskSet(tasks.table, replace(tasks.record, seed=seed))
            names.append(str(tmp_path / f"{detector}{seed}.parquet"))
            make_results(tasks, "pixels", {"ncc": 0.9, "svm": 0.75, "ridge": 0.6, "knn": 0.3}).write(names[-1])
    result = CliRunner().invoke(app, ["compare", *names, "-o", str(tmp_path / "r.html")])
    assert result.exit_code == 0, result.output
    comparison = compare([Results.read(name) for name in names])
    row = comparison.groups[0].rows[0]
    told = f"{row.means['acc']:.1f} {row.spread('acc'):.1f}"
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert any(line.startswith("fewstab [captions] ") and told in line for line in lines)
    agreement = "fewstab with captions and with photometric: Spearman's correlation 1.00 over 4 classifiers."
    assert f"3-way 1-shot tasks, {agreement}" in result.output


def test_many_changes_are_one_table(tmp_path: Path) -> None:
    folder = make_changed_run(tmp_path / "pictures", tasks=10).write(tmp_path / "run")
    names = [str(file) for file in sorted(folder.glob("results-*.parquet"))]
    result = CliRunner().invoke(app, ["compare", *names])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    table = lines.index(next(line for line in lines if line.startswith("change severity against")))
    first = [line.split()[:3] for line in lines[table + 2 : table + 9]]
    mixed = ["only-background", "mixed-same", "mixed-rival"]
    assert [words[0] for words in first] == ["unchanged", *mixed, "blur", "blur", "noise"]
    assert [words[1:3] for words in first if words[0] == "blur"] == [["3", "unchanged"], ["5", "unchanged"]]
    assert sum(line.startswith("change severity against") for line in lines) == 1
    assert not any("Acc blur" in line for line in lines)


def test_the_table_of_a_card_names_references_if_one_is_not_random_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    plain = make_card()
    random, fewstab = plain.axes
    iid = replace(fewstab, name="hard-ood", reference=CardTasks("iid", "digest of iid", 600, 0))
    tables = []
    for card in (plain, make_card(random, fewstab, iid)):
        print_card(card)
        lines = (line.split() for line in capsys.readouterr().out.splitlines() if line.strip())
        tables.append({words[0]: words for words in lines})
    without, named = tables
    assert "against" not in without["axis"]
    assert named["axis"][1] == "against"
    assert (named["fewstab"][1], named["hard-ood"][1]) == ("random", "iid")


def test_a_card_states_its_remedies_first(capsys: pytest.CaptureFixture[str]) -> None:
    remedy = CardRemedy("features", "nap(by='words', directions=15)", 130)
    print_card(replace(make_card(), remedies=(remedy,)))
    text = capsys.readouterr().out
    assert 0 < text.index("nap(by='words', directions=15), fitted on 130 classes") < text.index("cosine on lite0 was")
    print_card(make_card())
    assert "remed" not in capsys.readouterr().out
