"""`shotproof share verify` and `sp.verify` on files: results, cards, bundles and folders."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import shotproof as sp
from shotproof.analysis.compare import compare
from shotproof.analysis.make_card import make_card
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.pipeline.verify import verify
from shotproof.results.evaluated import Classifier
from shotproof.stats.intervals import Estimate, Spread
from tests.changed_run import make_changed_run
from tests.drawn_cards import make_card as drawn_card
from tests.drawn_cards import with_estimates


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["share", "verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small profile: with a card of its first classifier, made as `profile` makes one."""
    folder = tmp_path_factory.mktemp("checked") / "mine"
    catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
    catalog.write(folder / "catalog.parquet")
    features.write(folder / "features.parquet")
    random = sp.sample(catalog, "random", tasks=10, query=4)
    hardest = sp.sample(catalog, "hardest", like=random, features=features, tasks=10, query=4)
    for name, tasks in {"random": random, "hardest": hardest}.items():
        tasks.write(folder / f"tasks-{name}.parquet")
        sp.evaluate(tasks, features, ["ncc", "knn"]).write(folder / f"results-{name}.parquet")
    inputs = sp.read(folder).inputs.quickly()
    comparison = compare(inputs, intervals=["images", "sampler"])
    make_card(comparison, inputs, Classifier("features", "ncc"), quick=True).write(folder / "card.json")
    return folder


def lied(folder: Path, path: Path) -> Path:
    """The results with the counts of one task changed."""
    results = sp.Results.read(folder / "results-random.parquet")
    table = results.table.drop_columns(["missed", "answered"])
    correct = table.column("n_correct").to_pylist()
    correct[5 * 3] = 0 if correct[5 * 3] else 1
    lie = table.set_column(table.column_names.index("n_correct"), "n_correct", pa.array(correct))
    sp.Results(lie, results.record).write(path)
    return path


def test_all_that_a_folder_claims_is_computed_again(folder: Path) -> None:
    found = verify(folder)
    assert (found.conclusion, found.problems, found.unchecked) == ("verified", (), {})
    card, results = (
        str(folder / "card.json"),
        [str(folder / f"results-{name}.parquet") for name in ("hardest", "random")],
    )
    assert found.verified["the counts were reproduced on every task"] == tuple(results)
    (of_card,) = (files for statement, files in found.verified.items() if statement.startswith("the card was"))
    assert of_card == (card,)
    (of_tasks,) = (files for statement, files in found.verified.items() if statement.startswith("every task satisfies"))
    assert len(of_tasks) == 2


def test_a_sample_leaves_the_intervals_and_says_so(folder: Path) -> None:
    found = verify(folder, sample=4)
    assert found.conclusion == "verified"
    assert len(found.verified["the counts were reproduced on 4 tasks of each set"]) == 2
    (reason,) = found.unchecked
    assert reason.startswith("the card's intervals, ranks and baselines: ")
    assert "--sample" in reason
    told = invoke(folder, "--sample", 2)
    assert told.exit_code == 0
    assert told.output.splitlines()[-1] == "8 verified, 0 wrong, 1 not checked"


def test_a_card_that_does_not_follow_from_its_counts_is_wrong(folder: Path, tmp_path: Path) -> None:
    """Its interval follows from its variance, which is not that of the data."""
    shutil.copytree(folder, tmp_path / "mine")
    card = sp.Card.read(folder)
    number = card.axes[0].estimates["accuracy"]["acc"]
    assert number.variance
    spread = Spread(number.variance / 9, (number.uncertainty or 0) / 81)
    interval = Estimate(number.mean or 0, spread).interval("images")
    narrow = replace(
        number, low=interval.low, high=interval.high, variance=spread.variance, uncertainty=spread.uncertainty, skew=0
    )
    axis = with_estimates(card.axes[0], accuracy={"acc": narrow})
    replace(card, axes=(axis, *card.axes[1:])).write(tmp_path / "mine" / "card.json")
    found = verify(tmp_path / "mine")
    assert found.conclusion == "wrong"
    assert found.problems[0].startswith(f"{tmp_path / 'mine' / 'card.json'}: random-5-shot: accuracy, acc, low: ")


def test_counts_that_were_changed_are_wrong(folder: Path, tmp_path: Path) -> None:
    file = lied(folder, tmp_path / "lie.parquet")
    given = [file, folder / "tasks-random.parquet", folder / "features.parquet"]
    found = invoke(*given)
    assert found.exit_code == 1
    assert f"wrong        {file}: method 'ncc': task 3, class " in found.output
    assert "1 of 10 tasks differ" in found.output
    assert found.output.splitlines()[-1] == "1 verified, 1 wrong, 1 not checked"
    printed = json.loads(invoke(*given, "--json").output)
    assert (len(printed["problems"]), printed["conclusion"]) == (1, "wrong")


def test_bytes_that_contradict_the_digest_of_their_metadata_are_wrong(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "mine")
    file = tmp_path / "mine" / "features.parquet"
    table = pq.read_table(file)
    swapped = table.take(pa.array([1, 0, *range(2, len(table))])).column("feature")
    pq.write_table(table.set_column(table.column_names.index("feature"), "feature", swapped), file)
    found = verify(tmp_path / "mine")
    assert found.conclusion == "wrong"
    assert found.problems[0].startswith(f"{file}: its content has digest ")


def test_a_results_file_that_names_another_sampler_is_wrong(folder: Path) -> None:
    results = sp.Results.read(folder / "results-hardest.parquet")
    renamed = replace(results.record.tasks.sampler, name="random", spelling="random")  # type: ignore[type-var]
    lie = sp.Results(results.table, replace(results.record, tasks=replace(results.record.tasks, sampler=renamed)))
    (problem,) = verify([lie, folder / "tasks-hardest.parquet", folder / "features.parquet"]).problems
    assert "sampler: the results state 'random'" in problem
    assert problem.endswith("states 'hardest'")


def test_what_was_not_computed_again_is_not_said_to_hold(folder: Path, tmp_path: Path) -> None:
    results, tasks = folder / "results-random.parquet", folder / "tasks-random.parquet"
    found = verify([results, tasks])
    assert found.conclusion == "not verified"
    (reason,) = found.open
    assert "features are missing" in reason
    told = invoke(results, tasks)
    assert told.output.splitlines()[-2:] == [
        f"not checked  {results}: {reason}",
        "1 verified, 0 wrong, 2 not checked",
    ]
    assert isinstance(told.exception, InputError)  # which the command tells in one line, with status 2
    assert json.loads(invoke(results, tasks, "--json").output)["conclusion"] == "not verified"
    shutil.copytree(folder, tmp_path / "mine")
    (tmp_path / "mine" / "features.parquet").unlink()
    assert verify(tmp_path / "mine").unchecked[reason] == tuple(
        str(tmp_path / "mine" / name) for name in ("results-hardest.parquet", "results-random.parquet", "card.json")
    )


def test_results_on_other_features_are_not_computed_again(folder: Path) -> None:
    catalog = sp.Catalog.read(folder / "catalog.parquet")
    others = sp.Features.from_array(catalog.items, np.ones((len(catalog), 2)))
    (reason,) = verify([folder / "results-random.parquet", folder / "tasks-random.parquet", others]).open
    assert reason.endswith(f"as well (found: {others.digest})")


def test_transforms_that_results_name_are_applied_again(tmp_path: Path) -> None:
    catalog = sp.worlds.ShapesWorld(classes=6, items=10, size=16).write(tmp_path / "shapes")
    features = sp.encode(catalog, "pixels(size=4)")
    tasks = sp.sample(catalog, "random", tasks=10, query=3)
    transformed = sp.transform(features, ["l2"])
    results = sp.evaluate(tasks, transformed, "ncc")
    assert results.digest != sp.evaluate(tasks, features, "ncc").digest
    assert verify([results, tasks, features]).conclusion == "verified"


def test_a_card_alone_is_not_verified_by_agreeing_with_itself(tmp_path: Path) -> None:
    drawn_card().write(tmp_path / "card.json")
    found = verify(tmp_path / "card.json")
    assert all("excess" in problem for problem in found.problems)
    card = replace(drawn_card(), axes=drawn_card().axes[:1])
    (reason,) = verify(card).open
    assert "task sets to check it against are missing" in reason


def test_a_card_alone_is_computed_again_on_features(folder: Path) -> None:
    tasks = [folder / f"tasks-{name}.parquet" for name in ("random", "hardest")]
    found = verify([folder / "card.json", *tasks, folder / "features.parquet"])
    assert found.conclusion == "verified"
    assert any("accuracies of the card were reproduced" in statement for statement in found.verified)


def test_methods_that_adapt_a_model_are_computed_again(drawn_networks: Path) -> None:
    catalog, model = sp.Catalog.read(drawn_networks / "catalog.parquet"), drawn_networks / "first.model"
    tasks = sp.sample(catalog, "random", split="train", way=2, shot=1, query=2, tasks=3)
    results = sp.evaluate(tasks, methods="finetune(steps=1)", catalog=catalog, model=model, allow_seen=True)
    assert verify([results, tasks, catalog, model]).conclusion == "verified"
    (reason,) = verify([results, tasks]).open
    assert re.fullmatch(r"method 'finetune\(steps=1\)' .*: pass the model and the catalog", reason)
    (reason,) = verify([results, tasks, catalog, drawn_networks / "second.model"]).open
    assert reason.startswith(f"the model with digest {sp.Model.read(model).digest} is missing")


@pytest.mark.strangers
def test_code_that_results_name_is_not_imported_unless_it_is_trusted(folder: Path, tmp_path: Path) -> None:
    results = sp.Results.read(folder / "results-random.parquet")
    code = tmp_path / "alien.py"
    code.write_text("import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n")
    rows = results.rows_of("ncc")
    table = rows.set_column(0, "method", pa.array([f"{code}:head"] * len(rows)))
    lie = sp.Results(pa.concat_tables([table, results.rows_of("knn")]), results.record)
    found = verify([lie, folder / "tasks-random.parquet", folder / "features.parquet"])
    (reason,) = found.open
    assert reason.startswith(f"method '{code}:head' runs custom code")
    assert "--trust" in reason
    assert found.conclusion == "not verified"
    assert not (tmp_path / "imported").exists()


def test_no_model_is_read_because_results_name_it(folder: Path, tmp_path: Path) -> None:
    results = sp.Results.read(folder / "results-random.parquet")
    rows = results.rows_of("ncc")
    (tmp_path / "secret").write_text("a secret")
    lie = sp.Results(
        rows.set_column(0, "method", pa.array([f"model:{tmp_path / 'secret'}"] * len(rows))), results.record
    )
    found = verify([lie, folder / "tasks-random.parquet", folder / "features.parquet"])
    (reason,) = found.open
    assert reason.startswith(f"method 'model:{tmp_path / 'secret'}' is the head of a model")


def test_a_bundle_is_verified_with_its_tasks(tmp_path: Path) -> None:
    catalog = sp.worlds.ShapesWorld(classes=5, items=8, size=16).write(tmp_path / "shapes")
    tasks = sp.sample(catalog, "random", shot=1, query=2, tasks=4)
    results = sp.evaluate(tasks, sp.encode(catalog, "pixels"), "ncc")
    for name, written in {"catalog": catalog, "tasks": tasks, "results": results}.items():
        written.write(tmp_path / "run" / f"{name}.parquet")  # type: ignore[attr-defined]
    sp.bundle(tmp_path / "run", tmp_path / "shapes.zip")
    found = invoke(tmp_path / "shapes.zip")
    assert found.exit_code == 0
    assert found.output.splitlines()[-1] == "2 verified, 0 wrong, 0 not checked"
    content = bytearray((tmp_path / "shapes.zip").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "shapes.zip").write_bytes(content)
    with pytest.raises(InputError, match="bundle "):
        verify(tmp_path / "shapes.zip")


def test_every_other_kind_of_file_is_refused_with_what_to_do_with_it(folder: Path, tmp_path: Path) -> None:
    for name in ("x.model", "experiment.toml", "x.npz", "run.json", "page.html"):
        (tmp_path / name).write_text("x")
    alone = "nothing to check: expected task sets, results, .* only used to check these"
    expected = {
        folder / "features.parquet": alone,
        folder / "catalog.parquet": alone,
        tmp_path / "x.model": alone,
        tmp_path / "x.npz": alone,
        tmp_path / "experiment.toml": "contains nothing that can be checked",
        tmp_path / "run.json": "of a run: pass its folder",
        tmp_path / "page.html": "contains nothing that can be checked",
        tmp_path / "missing.parquet": "does not exist",
        tmp_path: "contains no run",
    }
    for path, told in expected.items():
        with pytest.raises(InputError, match=told):
            verify(path)
    with pytest.raises(InputError, match="nothing to check"):
        verify([])
    refused = invoke(folder / "tasks-random.parquet")
    assert "catalog.parquet that the tasks" in str(refused.exception)


def test_a_run_with_changed_items_is_recomputed(tmp_path: Path) -> None:
    folder = make_changed_run(tmp_path / "pictures", tasks=6).write(tmp_path / "run")
    checked = verify(folder, sample=3)
    assert not checked.problems
    assert not checked.open
    found = sp.TaskSet.read(folder / "tasks-4.parquet")
    rows = found.table.to_pylist()
    rows[0]["query_change"][0] = "blur(severity=1)"
    sp.TaskSet(pa.Table.from_pylist(rows, found.table.schema), found.record).write(folder / "tasks-4.parquet")
    assert any("has the change 'blur(severity=1)'" in problem for problem in verify(folder, sample=3).problems)


def test_changed_tasks_must_be_those_that_they_name(tmp_path: Path) -> None:
    run = make_changed_run(tmp_path / "pictures", tasks=6)
    blurred = run.of("blur")
    fewer = sp.TaskSet(blurred.table.slice(3), blurred.record)
    problems = verify([fewer, run.tasks[0], run.catalog]).problems
    assert any("its items are not" in problem for problem in problems)
    assert not verify([blurred, run.tasks[0], run.catalog]).problems
