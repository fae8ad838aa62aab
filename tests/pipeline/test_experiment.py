from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shotproof.core.errors import InputError
from shotproof.features.encoders.pixels import Pixels
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_file import ExperimentFile
from shotproof.tasks.fewstab.fewstab_sampler import FewStab

WHOLE = """
[catalog]
root = "birds"
layout = "folder"
splits = "splits.csv"
name = "Birds"
[attributes.sets]
light = ["photometric"]
words = ["photometric", { name = "table", file = "words.csv" }]
[features]
encoders = ["pixels(size=4)", { name = "hf", model = "org/model" }]
transforms = ["l2"]
on_error = "skip"
[tasks]
split = "test"
shots = [1]
seeds = [0, 1]
samplers = [
  "random",
  { name = "fewstab", support = "attribute" },
  { name = "hardest(effort='high')", like = "random", encoder = "pixels", shots = [1], tasks = 50, way = 3 },
]
[evaluate]
methods = ["ridge(penalty=1)", { name = "knn", k = 3 }]
[runtime]
workers = 2
[output]
folder = "out"
title = "Birds"
intervals = ["sampler", "images"]
"""


def read(tmp_path: Path, text: str) -> Experiment:
    (tmp_path / "experiment.toml").write_text(text)
    return Experiment.read(tmp_path / "experiment.toml")


def test_every_part_becomes_a_record_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("item,attributes\n")
    experiment = read(tmp_path, WHOLE)
    assert (experiment.root, experiment.splits) == (tmp_path / "birds", tmp_path / "splits.csv")
    assert (experiment.name, experiment.folder) == ("Birds", tmp_path / "out")
    assert {name: [one.name for one in of] for name, of in experiment.detectors.items()} == {
        "light": ["photometric"],
        "words": ["photometric", "table"],
    }
    assert str(tmp_path / "words.csv") in experiment.detectors["words"][1].spelling
    assert experiment.encoders[0] == Pixels(size=4)
    assert [str(encoder) for encoder in experiment.encoders] == ["pixels(size=4)", "hf:org/model"]
    assert [str(method) for method in experiment.methods] == ["ridge(penalty=1)", "knn(k=3)"]
    assert experiment.runtime == {"workers": 2}
    assert experiment.intervals == ("sampler", "images")


def test_a_sampler_may_have_its_own_shape(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("")
    random, fewstab, hardest = read(tmp_path, WHOLE).draws
    assert (random.way, random.shots, random.query, random.tasks, random.seeds) == (5, (1,), 15, None, (0, 1))
    assert fewstab.sampler == FewStab(support="attribute")
    assert (hardest.like, hardest.encoder) == ("random", "pixels(size=4)")
    assert (hardest.way, hardest.tasks, hardest.split) == (3, 50, "test")


def test_the_schema_admits_the_file(tmp_path: Path) -> None:
    schema = ExperimentFile.json_schema()
    content = tomllib.loads(WHOLE)
    jsonschema.validate(content, schema)
    wrong: dict[str, Any] = tomllib.loads(WHOLE)
    wrong["tasks"]["samplers"][1]["suport"] = "attribute"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "task": {}}, schema)


START = '[catalog]\nroot = "a"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "experiment.toml: .*section 'catalog'"),
        ("[catalog]\n", r"experiment.toml, \[catalog\]: expected root"),
        ('[catalog]\nroot = "a"\nfile = "b"\nlayout = "folder"\n', "expected either layout or file"),
        (
            f'{START}[tasks]\nfiles = ["a.parquet", "b/a.parquet"]\n',
            "files: expected each once, found 'a.parquet' twice",
        ),
        (f"{START}[tasks]\nfiles = 3\n", r"\[tasks\], files: expected a list of paths, at least one, found 3"),
        ('[catalog]\nfile = "a"\nlable = "b"\n', "unknown key 'lable'"),
        (f"{START}[task]\n", "experiment.toml: unknown section 'task': did you mean 'tasks'"),
        (f"{START}[tasks]\nshot = [1]\n", "unknown key 'shot': did you mean 'shots'"),
        (f"{START}[tasks]\nworkers = 2\n", r"unknown key 'workers': it belongs in \[runtime\]"),
        (f'{START}[features]\ndevice = "cpu"\n', r"unknown key 'device': it belongs in \[runtime\]"),
        (
            f'{START}[features]\nstages = "some"\n[tasks]\nsamplers = ["random"]\n',
            r"\[features\], stages: expected all or a list of whole numbers from 1 to .*, at least one, found 'some'",
        ),
        (
            f'{START}[features]\nencoders = ["pixels"]\nstages = "all"\n[tasks]\nsamplers = ["random"]\n',
            r"none of the encoders \(pixels\) has stages",
        ),
        (
            f'{START}[output]\nprojection = "umap"\n[tasks]\nsamplers = ["random"]\n',
            "projection: expected pca or tsne or none, found 'umap'",
        ),
        (f"{START}[tasks]\nseeds = [0]\nseed = 1\n", "unknown key 'seed': did you mean 'seeds'"),
        (
            f'{START}[tasks]\nsamplers = ["random"]\n[output]\nmismatch = "pool"\n',
            "mismatch: expected class or pooled, found 'pool': did you mean 'pooled'",
        ),
        (f'{START}[tasks]\nway = "5"\n', "way: expected a whole number from 2 to 10,000, found '5'"),
        (f"{START}[tasks]\nway = true\n", "way: expected a whole number from 2 to 10,000, found True"),
        (
            f"{START}[tasks]\nshots = []\n",
            r"shots: expected a list of whole numbers from 1 .*, at least one, found \[\]",
        ),
        (f'{START}[tasks]\nshots = ["1"]\n', "shots: expected a list of whole numbers"),
        (f"{START}[tasks]\nsamplers = [1]\n", 'samplers: expected "NAME'),
        (f"{START}[tasks]\nsamplers = [{{ rounds = 1 }}]\n", 'expected "NAME'),
        (f'{START}[tasks]\nsamplers = ["fewstabb"]\n', "unknown sampler 'fewstabb': did you mean 'fewstab'"),
        (f'{START}[tasks]\nsamplers = ["random", "random"]\n', "samplers: expected each once, found 'random' twice"),
        (f'{START}[tasks]\nsamplers = [{{ name = "random", shot = 1 }}]\n', "unknown key 'shot': did you mean 'shots'"),
        (f'{START}[tasks]\nsamplers = [{{ name = "fewstab", suport = 1 }}]\n', "no option 'suport': did you mean"),
        (
            f'{START}[tasks]\nsamplers = ["random", {{ name = "hardest", like = "randm" }}]\n',
            "no earlier sampler 'randm'",
        ),
        (f'{START}[tasks]\nsamplers = [{{ name = "hardest", encoder = "lite" }}]\n', "no encoder 'lite'"),
        (
            f'{START}[attributes]\ndetectors = ["photometric"]\n'
            '[tasks]\nsamplers = [{ name = "fewstab", attributes = "x" }]\n',
            "there is no attributes 'x'",
        ),
        (f'{START}[features]\nencoders = ["pixels(size=0)"]\n', "size: expected a whole number"),
        (f'{START}[features]\nencoders = ["pixels", "pixels(size=8)", "pixels"]\n', "'pixels' twice"),
        (
            f'{START}[features]\non_error = "skp"\n',
            "expected raise or skip, found 'skp': did you mean 'skip'",
        ),
        (f'{START}[evaluate]\nmethods = ["knnn"]\n', r"\[evaluate\], methods: unknown method 'knnn': did you"),
        (f'{START}[evaluate]\nmethods = ["ridge(penalty=-1)"]\n', "penalty: expected a number above 0, found -1"),
        (f'{START}[attributes]\nfile = "a"\ndetectors = ["photometric"]\n', "not several"),
        ("catalog = 1\n", r"\[catalog\]: expected a table, found 1"),
        ("[catalog\n", "experiment.toml is not .* TOML: "),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Experiment.read(tmp_path / "experiment.toml")
