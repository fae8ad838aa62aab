from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from shotproof.cli.report import report
from shotproof.errors import InputError, Mismatch
from shotproof.report.comparison import compare_results
from shotproof.report.wording import percent
from tests.report_files import make_experiment

app = typer.Typer()
app.command()(report)


def write_files(folder: Path) -> tuple[list[str], list[str]]:
    """Arguments for all results, and for all tasks and the catalog."""
    results, tasks, catalog = make_experiment(folder)
    names, options = [], ["--catalog", str(folder / "catalog.parquet")]
    for number, given in enumerate(results):
        names.append(str(folder / f"results{number}.parquet"))
        given.write(names[-1])
    for number, task_set in enumerate(tasks):
        options += ["--tasks", str(folder / f"tasks{number}.parquet")]
        task_set.write(options[-1])
    catalog.write(options[1])
    return names, options


def test_prints_the_table_and_says_where_the_page_is(tmp_path: Path) -> None:
    names, options = write_files(tmp_path)
    output = tmp_path / "report.html"
    result = CliRunner().invoke(app, [*names, *options, "-o", str(output)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    comparison = compare_results(make_experiment(tmp_path)[0])
    lines = result.output.splitlines()
    for row in comparison.rows:
        assert row.reference is not None
        assert row.biased is not None
        assert row.accuracy_gap is not None
        shown = [row.reference.accuracy, row.biased.accuracy, row.reference.worst, row.biased.worst, row.accuracy_gap]
        cells = [*f"{row.method} on {row.encoder}".split(), *(percent(interval.mean) for interval in shown)]
        assert any(line.split()[: len(cells)] == cells for line in lines)
    assert f"report: {output}" in lines
    assert 'class="task"' in output.read_text()


def test_json_is_the_comparison_alone(tmp_path: Path) -> None:
    names, _ = write_files(tmp_path)
    result = CliRunner().invoke(app, [*names, "-o", str(tmp_path / "r.html"), "--json"])
    assert json.loads(result.output) == json.loads(json.dumps(compare_results(make_experiment(tmp_path)[0]).to_json()))


def test_bad_input_is_an_error_of_our_own(tmp_path: Path) -> None:
    names, options = write_files(tmp_path)
    missing = CliRunner().invoke(app, [str(tmp_path / "result0.parquet"), "-o", str(tmp_path / "r.html")])
    assert isinstance(missing.exception, InputError)
    assert "did you mean 'results0.parquet'?" in str(missing.exception)
    swapped = CliRunner().invoke(app, [options[3], "-o", str(tmp_path / "r.html")])
    assert isinstance(swapped.exception, InputError)
    assert "results file" in str(swapped.exception)
    unmatched = CliRunner().invoke(app, [names[0], *options, "-o", str(tmp_path / "r.html")])
    assert isinstance(unmatched.exception, Mismatch)
    assert not (tmp_path / "r.html").exists()
