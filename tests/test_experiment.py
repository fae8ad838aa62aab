from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.errors import InputError
from shotproof.experiment import Experiment

WHOLE = """
[catalog]
root = "birds"
layout = "folder"
splits = "splits.csv"
[attributes]
detectors = ["photometric", { name = "table", file = "words.csv" }]
[features]
encoders = ["pixels", "hf:org/model"]
batch_size = 8
[tasks]
split = "test"
shots = [1]
samplers = ["random", { name = "fewstab", support = "attribute" }]
[evaluate]
methods = ["ridge(penalty=1)"]
[output]
folder = "out"
title = "Birds"
"""


def read(tmp_path: Path, text: str) -> Experiment:
    (tmp_path / "experiment.toml").write_text(text)
    return Experiment.read(tmp_path / "experiment.toml")


def test_paths_are_relative_to_the_file_and_options_go_with_their_names(tmp_path: Path) -> None:
    experiment = read(tmp_path, WHOLE)
    assert experiment.catalog["root"] == str(tmp_path / "birds")
    assert experiment.catalog["splits"] == str(tmp_path / "splits.csv")
    assert experiment.detectors == [("photometric", {}), ("table", {"file": str(tmp_path / "words.csv")})]
    assert experiment.encoders == ["pixels", "hf:org/model"]
    assert experiment.encode_settings == {"batch_size": 8}
    assert experiment.samplers == [("random", {}), ("fewstab", {"support": "attribute"})]
    assert experiment.folder == tmp_path / "out"
    assert (experiment.way, experiment.shots, experiment.query, experiment.tasks) == (5, [1], 15, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected a section \[catalog\]"),
        ("[catalog]\n", "either root"),
        ('[catalog]\nroot = "a"\nfile = "b"\n', "either root"),
        ('[catalog]\nroot = "a"\n[task]\n', r"unknown section \[task\]: did you mean 'tasks'"),
        ('[catalog]\nroot = "a"\n[tasks]\nshot = [1]\n', "unknown key 'shot': did you mean 'shots'"),
        ('[catalog]\nroot = "a"\n[tasks]\nway = "5"\n', "way must be int, not '5'"),
        ('[catalog]\nroot = "a"\n[tasks]\nway = true\n', "way must be int, not True"),
        ('[catalog]\nroot = "a"\n[tasks]\nshots = []\n', "shots must be a list of int"),
        ('[catalog]\nroot = "a"\n[tasks]\nshots = ["1"]\n', "shots must be a list of int"),
        ('[catalog]\nroot = "a"\n[tasks]\nsamplers = [1]\n', "samplers has 1, expected"),
        ('[catalog]\nroot = "a"\n[attributes]\nfile = "a"\ndetectors = ["table"]\n', "not both"),
        ("catalog = 1\n", r"catalog must be a section"),
        ("[catalog\n", "experiment.toml: "),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Experiment.read(tmp_path / "experiment.toml")
