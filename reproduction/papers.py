"""Published numbers of the papers, read from the files in `papers/`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

PAPERS = Path(__file__).parent / "papers"
COLUMNS = ("table", "method", "shot", "quantity", "value", "interval", "sound")
ARTEFACT, MINIMUM, SOUND = "artefact", "c", "yes"


@dataclass(frozen=True)
class Figure:
    """Published number of a paper.

    interval: half of its published width; None if the paper gives none
    sound: `yes`; `c` if it is the minimum over five classifiers that were trained differently; `artefact` if the
        published code measured something else
    """

    table: str
    value: float
    interval: float | None
    sound: str

    @property
    def text(self) -> str:
        """Return the number as the paper prints it."""
        return f"{self.value:.2f}" if self.interval is None else f"{self.value:.2f} ±{self.interval:.2f}"


def read_figures(name: str) -> dict[tuple[str, int | None, str], Figure]:
    """Read the numbers of one file, by method, number of shots (None if it has none) and quantity."""
    with (PAPERS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["method"], int(row["shot"]) if row["shot"] else None, row["quantity"]): Figure(
            row["table"], float(row["value"]), float(row["interval"]) if row["interval"] else None, row["sound"]
        )
        for row in rows
    }
