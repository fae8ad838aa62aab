"""The papers' figures, as the files in `papers/` have them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

PAPERS = Path(__file__).parent / "papers"
COLUMNS = ("table", "method", "shot", "quantity", "value", "interval", "sound")
ARTEFACT, MINIMUM, SOUND = "artefact", "c", "yes"


@dataclass(frozen=True)
class Figure:
    """One figure of a paper.

    interval: half of its published width; None where none is given
    sound: `yes`; `c` where it is the minimum over five classifiers that were trained differently; `artefact` where the
        published code measured something else
    """

    table: str
    value: float
    interval: float | None
    sound: str

    @property
    def text(self) -> str:
        """As the paper prints it."""
        return f"{self.value:.2f}" if self.interval is None else f"{self.value:.2f} ±{self.interval:.2f}"


def read_figures(name: str) -> dict[tuple[str, int | None, str], Figure]:
    """The figures of one file, by method, number of shots (None where there is none) and quantity."""
    with (PAPERS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["method"], int(row["shot"]) if row["shot"] else None, row["quantity"]): Figure(
            row["table"], float(row["value"]), float(row["interval"]) if row["interval"] else None, row["sound"]
        )
        for row in rows
    }
