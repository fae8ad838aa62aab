"""The log of a training: one JSON line per epoch, and events for TensorBoard where it is installed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shotproof.core.whole_files import write_text


class Curves:
    """One row per epoch, written beside the model as the training goes on.

    A resumed training begins with the rows of its checkpoint, so that the log never has an epoch twice.
    """

    def __init__(self, path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
        self.path = path
        self.rows = [dict(row) for row in rows]
        self._events: Any = None
        if path is not None:
            self._write()
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard.writer import SummaryWriter

                self._events = SummaryWriter(path.with_suffix(".events"), purge_step=len(self.rows) + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take the numbers of an epoch."""
        self.rows.append(dict(row))
        if self.path is not None:
            self._write()
        if self._events is not None:
            for name, value in row.items():
                if name != "epoch" and value is not None:
                    self._events.add_scalar(name, value, row["epoch"])
            self._events.flush()

    def close(self) -> None:
        """End the events."""
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        assert self.path is not None
        write_text(self.path, "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in self.rows))
