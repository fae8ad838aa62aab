"""What a folder belongs to, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.steps.owner import Owner


def test_paths_start_from_the_folder_so_that_both_can_be_moved(tmp_path: Path) -> None:
    here, there = (
        Owner.on(tmp_path / place / "out", tmp_path / place / "data", file=tmp_path / place / "a.toml")
        for place in ("here", "there")
    )
    assert here == there == Owner("", "../a.toml", "../data")


def test_other_data_another_experiment_and_another_command_are_refused_with_both_named(tmp_path: Path) -> None:
    known = Owner.on(tmp_path / "out", tmp_path / "data", "shotproof run", tmp_path / "out" / "experiment.toml")
    for other, told in {
        Owner.on(tmp_path / "out", tmp_path / "new", "shotproof run"): f"this is shotproof run on {tmp_path / 'new'}",
        Owner.on(tmp_path / "out", tmp_path / "data", "shotproof profile"): "this is shotproof profile on",
        Owner.on(tmp_path / "out", tmp_path / "data", file=tmp_path / "a.toml"): f"this is {tmp_path / 'a.toml'} on",
        Owner.on(tmp_path / "out", Path("s3://bucket/data")): "this is an experiment on s3://bucket/data",
    }.items():
        with pytest.raises(InputError) as error:
            other.require(known, tmp_path / "out")
        assert f"belongs to shotproof run on {tmp_path / 'data'}, but {told}" in str(error.value)


def test_the_experiment_that_a_command_has_written_may_be_run_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "out" / "experiment.toml"
    known = Owner.on(tmp_path / "out", tmp_path / "data", "shotproof profile", file)
    Owner.on(tmp_path / "out", tmp_path / "data", file=file).require(known, tmp_path / "out")
    Owner.on(tmp_path / "out", tmp_path / "data").require(None, tmp_path / "out")
