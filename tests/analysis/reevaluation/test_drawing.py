"""Task sets that are drawn anew from their records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.core.errors import Mismatch
from shotproof.core.trust import NotTrusted
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.conftest import draw_data

SECRET = "a line that nobody else should see"


def naming(file: Path) -> TaskSet:
    """A task set whose record says that it was drawn by a file."""
    catalog, _ = draw_data()
    tasks = sample(catalog, "random", way=3, shot=1, query=2, tasks=4)
    assert tasks.record.sampler is not None
    named: Any = {"name": "semantic", "spelling": "semantic", "options": {"class_distances": str(file)}}
    return TaskSet(tasks.table, replace(tasks.record, sampler=replace(tasks.record.sampler, **named)))


@pytest.mark.parametrize("suffix", [".csv", ".json", ".toml", ".txt", ".parquet"])
def test_what_a_file_that_a_record_names_holds_is_not_repeated(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"secret{suffix}"
    file.write_text(f"{SECRET}\n{SECRET}\n")
    drawing = Drawing.of(naming(file), Inputs(trust=True))
    with pytest.raises(Mismatch) as refused:
        drawing.draw(draw_data()[0], seed=0, tasks=4)
    assert str(refused.value) == f"the semantic tasks cannot be drawn again: {file} does not match the data"
    assert refused.value.__cause__ is None


@pytest.mark.strangers
def test_a_file_elsewhere_is_not_read_for_a_record(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(NotTrusted, match="sampler 'semantic' reads"):
        Drawing.of(naming(tmp_path / "tree.csv"), Inputs(folders=[tmp_path / "run"]))
    beside = tmp_path / "run" / "tree.csv"
    beside.touch()
    assert Drawing.of(naming(beside), Inputs(folders=[tmp_path / "run"])).sampler.files() == [beside]
