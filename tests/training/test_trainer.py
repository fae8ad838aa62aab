from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shotproof.training.trainer import Curves

ROWS = [{"epoch": 1, "loss": 2.0, "lr": 0.1, "accuracy": None}, {"epoch": 2, "loss": 1.0, "lr": 0.1, "accuracy": 55.0}]


class Writer:
    """As TensorBoard's writer, for machines that have none."""

    made: list[Writer] = []  # noqa: RUF012

    def __init__(self, folder: Path, purge_step: int) -> None:
        self.folder, self.purge_step, self.told, self.closed = folder, purge_step, [], False  # type: ignore[var-annotated]
        Writer.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.told.append((name, value, step))

    def flush(self) -> None:
        assert not self.closed

    def close(self) -> None:
        self.closed = True


def test_every_epoch_is_a_line_and_a_resumed_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "some.model.jsonl"
    curves = Curves(path, ())
    curves.add(ROWS[0])
    Curves(path, ROWS[:1]).add(ROWS[1])
    assert [json.loads(line) for line in path.read_text().splitlines()] == ROWS
    events = list(tmp_path.rglob("events.out.*"))
    assert bool(events) == (importlib.util.find_spec("tensorboard") is not None)


def test_tensorboard_is_told_each_number_under_its_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in: Any = ModuleType("torch.utils.tensorboard.writer")
    stand_in.SummaryWriter = Writer
    package: Any = ModuleType("torch.utils.tensorboard")
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", package)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", stand_in)
    curves = Curves(tmp_path / "some.model.jsonl", ROWS[:1])
    curves.add(ROWS[1])
    curves.close()
    [writer] = Writer.made
    assert (writer.folder.name, writer.purge_step) == ("some.model.events", 2)  # what epoch 1 told stays
    assert writer.told == [("loss", 1.0, 2), ("lr", 0.1, 2), ("accuracy", 55.0, 2)]
    assert writer.closed
