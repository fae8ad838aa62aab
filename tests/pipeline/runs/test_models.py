"""Experiments whose methods adapt a network: the models of the file beside heads on features."""

from __future__ import annotations

from pathlib import Path

import pytest

import shotproof as sp
from shotproof.models.model import Model
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import run
from tests.experiment_files import assert_refused, up_to_results, write_experiment
from tests.pipeline.model_files import FIRST, write_model
from tests.small_networks import BACKBONE

EXPERIMENT = """
[catalog]
file = "catalog.parquet"
[features]
encoders = ["pixels(size=4)"]
[tasks]
split = "val"
way = 3
shots = [1]
query = 3
tasks = 4
samplers = ["random"]
[evaluate]
methods = ["ncc", "finetune(steps=1)"]
model = "first.model"
[runtime]
cache = "cache"
workers = 1
device = "cpu"
[output]
folder = "out"
intervals = ["sampler"]
"""


def experiment(folder: Path, *changes: tuple[str, str]) -> Path:
    return write_experiment(folder, EXPERIMENT, *changes)


def result(method: str, on: str) -> str:
    return f"results/random-3way-1shot/{file_name(on)}/{file_name(method)}.parquet"


def test_adaptations_are_evaluated_beside_heads_and_only_what_is_new_is_made(folder: Path) -> None:
    first = run(experiment(folder))
    shown = set(first.compare().to_pandas()["classifier"])
    assert shown == {"pixels(size=4): ncc", f"{FIRST}: finetune(steps=1)"}
    written = sp.read(folder / "out" / result("finetune(steps=1)", FIRST))
    tasks = sp.read(folder / "out" / "tasks-random-3way-1shot.parquet")
    catalog = sp.read(folder / "out" / "catalog.parquet")
    with sp.runtime(cache=None, workers=1, progress=False, device="cpu"):
        direct = sp.evaluate(tasks, catalog=catalog, model=folder / "first.model", methods="finetune(steps=1)")
    assert written.table.equals(direct.table)
    assert written.record.source("model") == Model.read(folder / "first.model").digest
    assert run(experiment(folder)).made == []
    more = run(experiment(folder, ('"ncc"', '"ncc", "tsa(steps=1)"')))
    assert up_to_results(more.made) == [result("tsa(steps=1)", FIRST)]
    write_model(folder / "first.model", seed=2)
    assert run(experiment(folder), dry_run=True).made == [result("finetune(steps=1)", FIRST)]


def test_a_pretrained_backbone_is_a_model_by_its_name_and_a_file_goes_before_it(folder: Path) -> None:
    file = experiment(
        folder, ('model = "first.model"', 'models = ["first.model", "lite0", "hf:org/name.v1", "gone.model"]')
    )
    found = Experiment.read(file).models
    assert found == (folder / "first.model", "lite0", "hf:org/name.v1", folder / "gone.model")


def test_models_of_one_name_are_told_apart_by_their_files(folder: Path) -> None:
    file = experiment(folder, ('model = "first.model"', 'models = ["first.model", "second.model", "anil.model"]'))
    done = run(file)
    names = [f"{FIRST} [first]", f"{FIRST} [second]", f"anil on {BACKBONE}"]
    assert {name for name in up_to_results(done.made) if "finetune" in name} == {
        result("finetune(steps=1)", name) for name in names
    }
    shown = set(done.compare().to_pandas()["classifier"])
    assert shown == {"pixels(size=4): ncc", *(f"{name}: finetune(steps=1)" for name in names)}


def test_with_adaptations_alone_nothing_is_encoded(folder: Path) -> None:
    file = experiment(folder, ('"ncc", ', ""), ('[features]\nencoders = ["pixels(size=4)"]\n', ""))
    assert run(file, dry_run=True).made == [
        "catalog.parquet",
        "tasks-random-3way-1shot.parquet",
        result("finetune(steps=1)", FIRST),
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('model = "first.model"', ""), "[evaluate], methods: 'finetune(steps=1)' adapts a network: name a model, mo"),
        ((', "finetune(steps=1)"', ""), "[evaluate], model: no method adapts a network: use the model as an encoder"),
        (("first.model", "frist.model"), "[evaluate], model: model "),
        (('model = "first.model"', 'model = "first.model"\nmodels = ["anil.model"]'), "[evaluate]: expected either"),
        (('model = "first.model"', 'models = ["anil.model", "anil.model"]'), "[evaluate], models: expected each once"),
        (("finetune(steps=1)", "boil"), "[evaluate], methods: method 'boil' needs a model of objective 'boil'"),
        (("finetune(steps=1)", "ett"), "[evaluate], methods: method 'ett': backbone 'conv64f"),
        (('"val"', '"train"'), f"[evaluate], model: model '{FIRST}' was trained on 6 classes of these tasks"),
        (('["pixels(size=4)"]', '["model:anil.model"]'), "[features], encoders: the model of 'model:"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(folder: Path, change: tuple[str, str], expected: str) -> None:
    changes = [change]
    if "encoders" in expected:  # the classes of training, on heads alone
        changes += [('"val"', '"train"'), (', "finetune(steps=1)"', ""), ('model = "first.model"\n', "")]
    assert_refused(experiment(folder, *changes), expected)


def test_seen_classes_can_be_allowed(folder: Path) -> None:
    file = experiment(
        folder, ('"val"', '"train"'), ('model = "first.model"', 'model = "first.model"\nallow_seen = true')
    )
    name = result("finetune(steps=1)", FIRST)
    assert name in up_to_results(run(file).made)


def test_adaptations_are_not_evaluated_anew_but_their_own_open_tasks_count(folder: Path) -> None:
    both = ('["random"]', '[{ name = "random", tasks = 20 }, "depletion"]')
    done = run(experiment(folder, both, ("tasks = 4\n", ""), ('["sampler"]', '["sampler", "depletion", "images"]')))
    random = next(group for group in done.compare().groups if group.label == "random")
    intervals = random.rows[0].intervals["acc"]
    assert intervals["depletion"].refused is None
    assert intervals["images"].refused == (
        "method 'finetune(steps=1)' adapts a network and is not re-evaluated on other tasks"
    )
    assert len(random.triples["acc"].pairs) == 1
    alone = run(experiment(folder, ("tasks = 4", "tasks = 20"), ('["sampler"]', '["sampler", "depletion"]'))).compare()
    assert alone is not None
    assert "adapts a network" in alone.refused["depletion"]
