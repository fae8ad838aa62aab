"""Cures of studies and runs: their files, how they are applied, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli.app import app
from shotproof.core.errors import InputError, InsufficientData, UnknownName
from shotproof.core.records import MethodRecord
from shotproof.cures.cure import CURE_FILE, Cure
from shotproof.cures.remedy import select_items
from shotproof.cures.search import LEVEL
from shotproof.features.features import Features
from shotproof.pipeline.cure import CURE_FOLDER, cure_inputs, encoder_called, join_features, read_cure
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.study import Study, run
from shotproof.report.pages.cure_page import CURE_PAGE
from shotproof.results.results import Results
from tests.cured_run import ENCODER, EXPERIMENT, WORLD, world_catalog, write_world
from tests.drawn_layers import draw_masked
from tests.experiment_files import write_experiment
from tests.pipeline.shapes_experiment import bytes_of

NAP = "nap(by='words', directions=(10,))"
REMEDIES = [NAP, "preprocess", "center-contexts", "encoder"]
TASKS = 20
Parts = list[Any]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an experiment with a section [cure], after its run."""
    file = write_world(tmp_path_factory.mktemp("cured"))
    run(file)
    return file


@pytest.fixture
def finished(finished_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished_run.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / finished_run.name


def test_a_run_tries_remedies_and_then_has_nothing_to_do(finished: Path) -> None:
    out = finished.parent / "out"
    cure = Cure.read(out)
    assert cure.recommended == NAP
    assert [row.remedy for row in cure.tried] == REMEDIES[:-1]
    assert [row.remedy for row in cure.not_tried] == REMEDIES[-1:]
    assert cure.parts == {"fit": 6, "choose": 6, "confirm": 8}
    assert (cure.encoder, cure.method, cure.design, cure.tasks) == (ENCODER, "ncc", "3-way 2-shot", 60)
    assert read_cure(out) == cure
    written = bytes_of(out)
    assert {CURE_FILE, CURE_PAGE, f"{CURE_FOLDER}/nap-by-words-directions-10.parquet"} <= written.keys()
    lines: list[str] = []
    again = run(finished, log=lines.append)
    assert again.made == []
    assert CURE_FILE in again.reused
    assert bytes_of(out) == written
    assert any(line.startswith("cure") and NAP in line and "up to date" in line for line in lines)


def test_the_report_has_a_section_on_the_cure(finished: Path) -> None:
    cure = Cure.read(finished.parent / "out")
    page = (finished.parent / "out" / "report.html").read_text().replace("<wbr>", "").replace("&#39;", "'")
    section = page.partition('<section id="cure"')[2].partition("</section>")[0]
    assert '<a href="#cure">' in page
    for row in cure.tried:
        assert row.remedy in section
        assert f"{abs(row.effects[0].difference.high):.1f}" in section
    assert "take this" in section
    assert "center-contexts(base='cure/center-contexts-base.parquet'" not in section  # only what is to be taken
    assert "fitted(file='cure/nap-by-words-directions-10.parquet')" in section


def steps_of(apply: Sequence[str]) -> list[str]:
    """The transforms of the flags that apply a remedy."""
    return [line.removeprefix('--transform "').removesuffix('"') for line in apply]


@pytest.mark.parametrize("remedy", REMEDIES[:-1])
def test_what_is_written_applies_the_remedy(finished: Path, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = finished.parent / "out"
    row = Cure.read(out).row(remedy)
    assert row is not None
    monkeypatch.chdir(out)
    catalog, study = sp.Catalog.read("catalog.parquet"), Study.of(out)
    features = select_items(study.inputs.features[0], catalog.in_split("test").item_column)
    random = next(tasks for tasks in study.tasks if tasks.record.sampler_name == "random")
    treated = sp.transform(features, steps_of(row.apply))
    accuracy = sp.evaluate(random, treated, "ncc").counts("ncc").accuracy()
    assert np.mean(accuracy) == pytest.approx(row.accuracy_after.mean)
    before = sp.evaluate(random, features, "ncc").counts("ncc").accuracy()
    assert np.mean(before) == pytest.approx(row.accuracy_before.mean)


def test_the_command_and_python_agree_with_the_run(finished: Path) -> None:
    out = finished.parent / "out"
    expected = json.loads((out / CURE_FILE).read_text())
    (out / CURE_FILE).unlink()
    only = [flag for remedy in REMEDIES for flag in ("--only", remedy)]
    done = CliRunner().invoke(app, ["cure", str(out), *only, "--tasks", str(TASKS), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == expected
    assert json.loads((out / CURE_FILE).read_text()) == expected
    inputs = Study.of(out).inputs
    parts: Parts = [*inputs.results, *inputs.tasks, *inputs.catalogs, *inputs.features, *inputs.attributes]
    in_memory = sp.cure(parts, remedies=REMEDIES, tasks=TASKS)
    without_files = [replace(row, apply=()) for row in in_memory.tried]
    assert without_files == [replace(row, apply=()) for row in Cure.read(out).tried]
    assert (in_memory.recommended, in_memory.parts) == (NAP, expected["parts"])
    assert in_memory.treatments[NAP].steps


def test_items_of_other_classes_are_encoded_if_the_run_left_them_out(finished_run: Path, tmp_path: Path) -> None:
    write_world(tmp_path)
    file = write_experiment(
        tmp_path,
        EXPERIMENT,
        ('file = "catalog.parquet"', 'file = "catalog.parquet"\nsplit = "test"'),
        (f'["{NAP}", "preprocess", "center-contexts", "encoder"]', f'["{NAP}"]'),
    )
    study = run(file, quick=True)
    assert len(study.inputs.features[0]) == 8 * WORLD.items
    cure, whole = Cure.read(tmp_path / "out"), Cure.read(finished_run.parent / "out")
    assert cure.parts == whole.parts
    row, same = cure.row(NAP), whole.row(NAP)
    assert row is not None
    assert same is not None
    assert row.treatment == same.treatment
    assert row.score == pytest.approx(same.score)
    assert row.accuracy_after.mean == pytest.approx(same.accuracy_after.mean)


CHANGED = """
[catalog]
file = "catalog.parquet"
[features]
encoders = ["pixels(size=4)"]
[tasks]
split = "test"
way = 2
shots = [1]
query = 2
tasks = 20
samplers = ["random", "changed(change='mixed-random')"]
placebo = false
[evaluate]
methods = ["ncc"]
[cure]
remedies = ["nap(by='changes', directions=(2, 4))", "copies(copies=2)"]
tasks = 10
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""


def test_changed_items_of_other_classes_are_encoded_to_fit_and_choose_on(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for split in ("test", "train"):
        for row in draw_masked(tmp_path / split, items=6, correlated=False).table.to_pylist():
            places = {name: f"{split}/{row[name]}" for name in ("item", "path", "mask")}
            rows.append({**row, **places, "split": split, "label": f"{split} {row['label']}"})
    sp.Catalog(pa.Table.from_pylist(rows), tmp_path).write(tmp_path / "catalog.parquet")
    (tmp_path / "experiment.toml").write_text(CHANGED)
    run(tmp_path / "experiment.toml", quick=True)
    cure = Cure.read(tmp_path / "out")
    assert cure.parts == {"fit": 2, "choose": 2, "confirm": 4}
    assert not cure.not_tried
    nap, copies = cure.tried
    assert nap.treatment in {
        f"{before}nap(by='changes', directions={count})" for before in ("", "l2 > ") for count in (2, 4)
    }
    assert nap.score is not None
    assert copies.treatment == "2 copies by mixed-random"
    assert [effect.axis for row in cure.tried for effect in row.effects] == ["mixed-random"] * 2


def test_items_to_fit_and_choose_on_are_shown_on_backgrounds_of_others(tmp_path: Path) -> None:
    drawn = draw_masked(tmp_path, items=20, correlated=False)
    labels = [f"{label}-{row % 2}" for row, label in enumerate(drawn.table.column("label").to_pylist())]
    splits = ["test" if label.startswith("class0") else "train" for label in labels]
    table = drawn.table.drop_columns(["label", "split"])
    table = table.append_column("label", pa.array(labels)).append_column("split", pa.array(splits))
    catalog = sp.Catalog(table, drawn.root)
    with sp.runtime(cache=None, workers=1, progress=False):
        study = sp.Study(catalog, encoder="pixels(size=4)")
        study.evaluate("ncc", on=["random"], way=2, shots=[1], query=3, tasks=20)
        study.change("mixed-random")
        section = CureSection(remedies=("nap(by='changes')",), tasks=10)
        cure = cure_inputs(study.inputs.quickly(), study.experiment, section)
    assert cure.not_tried == ()
    (row,) = cure.tried
    assert [effect.axis for effect in row.effects] == ["mixed-random"]
    assert row.score is not None  # the classes to choose on have changed items, too


# What is refused, from results in memory.


@pytest.fixture(scope="module")
def catalog() -> sp.Catalog:
    return world_catalog()


@pytest.fixture(scope="module")
def features() -> Features:
    return sp.encode(WORLD.catalog(), ENCODER)


@pytest.fixture(scope="module")
def parts(catalog: sp.Catalog, features: Features) -> Parts:
    """Random and FewSTAB tasks of two shots, and results on them."""
    words = WORLD.attributes()
    made: Parts = [catalog, features, words]
    for shot in (1, 2):
        shape: dict[str, Any] = {"way": 3, "shot": shot, "query": 4, "tasks": 8, "split": "test"}
        sets = sp.sample(catalog, "random", **shape), sp.sample(catalog, "fewstab", attributes=words, **shape)
        made += [*sets, *(sp.evaluate(tasks, features, "ncc") for tasks in sets)]
    return made


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"remedies": ["wcnn"]}, "'wccn'"),
        ({"remedies": ["suport"]}, "'supports'"),
        ({"method": "ncd"}, "'ncc'"),
        ({"encoder": "dial(share=0.7, dimensions=32)"}, ENCODER),
        ({"shot": 5}, "expected one of 1, 2, found 5"),
        ({"shot": 0}, "shot: expected a whole number from 1"),
        ({"tasks": 1}, "tasks: expected a whole number"),
        ({"level": 1.0}, "level"),
        ({"seed": -1}, "seed"),
    ],
)
def test_unknown_names_and_values_are_refused_with_what_was_expected(
    parts: Parts, options: dict[str, Any], hint: str
) -> None:
    with pytest.raises(InputError) as refused:
        sp.cure(parts, **options)
    assert hint in str(refused.value)


def test_the_shots_to_treat_can_be_named(parts: Parts) -> None:
    lines: list[str] = []
    study = Study.of(parts, halvings=2)
    cure = study.cure(remedies=["head(methods=('cosine',))"], tasks=4, shot=1, log=lines.append)
    assert cure.design == "3-way 1-shot"
    assert lines[0] == "classes: fit on 6 classes, choose on 6 classes, confirm on 8 classes"
    assert (cure.level, [row.treatment for row in cure.tried]) == (LEVEL, ["head cosine"])


def test_without_a_task_set_that_measures_reliance_there_is_nothing_to_lower(parts: Parts) -> None:
    random = [part for part in parts if not isinstance(part, Results) or part.record.tasks.sampler_name == "random"]
    with pytest.raises(InputError, match=r"no task set measures reliance.*fewstab, ood or changed"):
        sp.cure(random)


def test_too_few_classes_are_refused_with_the_number(parts: Parts, catalog: sp.Catalog, features: Features) -> None:
    test = catalog.in_split("test")
    labels = test.table.column("label").to_pylist()
    kept = test.filter(pa.array([label != labels[0] for label in labels]))
    words = WORLD.attributes()
    shape: dict[str, Any] = {"way": 3, "shot": 1, "query": 4, "tasks": 4}
    sets = sp.sample(kept, "random", **shape), sp.sample(kept, "fewstab", attributes=words, **shape)
    results = [sp.evaluate(tasks, features, "ncc") for tasks in sets]
    with pytest.raises(InsufficientData, match=r"needs 8 classes .* the data has 7"):
        sp.cure([kept, features, words, *sets, *results])


def test_a_method_that_adapts_a_network_cannot_be_treated(parts: Parts) -> None:
    changed: Parts = []
    for part in parts:
        if isinstance(part, Results):
            place = part.table.column_names.index("method")
            table = part.table.set_column(place, "method", pa.array(["finetune"] * len(part.table)))
            part = Results(table, replace(part.record, methods=(MethodRecord("finetune"),)))
        changed.append(part)
    with pytest.raises(InputError, match=r"'finetune' works on a network.*--method"):
        sp.cure(changed)


def test_a_classifier_that_was_not_evaluated_is_refused(parts: Parts, features: Features) -> None:
    other = Features.from_array(features.table.column("item").to_pylist(), features.array, name="other")
    more = [sp.evaluate(tasks, other, "knn") for tasks in parts if isinstance(tasks, sp.TaskSet)]
    with pytest.raises(InputError, match="'knn' was not evaluated on encoder"):
        sp.cure([*parts, other, *more], method="knn", encoder=ENCODER)


def test_a_study_that_evaluated_nothing_says_so(catalog: sp.Catalog, features: Features) -> None:
    with pytest.raises(InputError, match="nothing was evaluated"):
        sp.Study(catalog, encoder=features).cure()
    with pytest.raises(UnknownName, match="'head'"):
        sp.Study(catalog, encoder=features).cure(remedies=["heed"])


def test_what_cannot_be_tried_is_named_with_its_reason_and_the_rest_is_tried(parts: Parts) -> None:
    study = Study.of(parts, halvings=2)
    cure = study.cure(remedies=["nap(by='changes')", "copies", "encoder", "head(methods=('cosine',))"], tasks=4)
    assert [row.remedy for row in cure.tried] == ["head(methods=('cosine',))"]
    assert cure.design == "3-way 2-shot"  # the most shots
    reasons = {row.remedy: row.reason for row in cure.not_tried}
    assert "encoder" in reasons["nap(by='changes')"]
    assert "changed" in reasons["copies"]
    assert "encoders" in reasons["encoder"]


def test_features_are_joined_without_items_that_are_there() -> None:
    first = Features.from_array(["a", "b"], np.eye(2), name="mine")
    second = Features.from_array(["b", "c"], 2 * np.eye(2), name="mine")
    joined = join_features(first, second)
    assert joined.table.column("item").to_pylist() == ["a", "b", "c"]
    assert joined.array.tolist() == [[1, 0], [0, 1], [0, 2]]
    assert joined.name == "mine"
    assert joined.digest == Features.from_array(["a", "b", "c"], joined.array, name="mine").digest


def test_a_damaged_cure_of_a_run_is_refused_by_its_reader(finished: Path) -> None:
    out = finished.parent / "out"
    (out / CURE_FILE).write_text("{}")
    with pytest.raises(InputError, match=r"cure\.json"):
        read_cure(out)
    (out / CURE_FILE).unlink()
    assert read_cure(out) is None
    assert read_cure(None) is None


@pytest.mark.parametrize("name", ["model:nets/a.model", "model:a.model", "a"])
def test_an_encoder_is_found_by_its_short_name(name: str) -> None:
    assert encoder_called(name, ["lite0", "model:nets/a.model", "model:nets/b.model"]) == "model:nets/a.model"


@pytest.mark.parametrize("name", ["lite1", "model:c.model", "a"])
def test_an_encoder_that_is_not_one_of_the_results_is_named(name: str) -> None:
    with pytest.raises(UnknownName, match=rf"encoder of the results '{name}'.*lite0"):
        encoder_called(name, ["lite0", "model:first/a.model", "model:second/a.model"])
