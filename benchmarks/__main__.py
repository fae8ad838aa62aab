"""Run all benchmarks, or those named: `python -m benchmarks [sampling scale evaluation ...]`."""

from __future__ import annotations

import importlib
import sys

ALL = [
    "sampling",
    "scale",
    "evaluation",
    "heads",
    "finished",
    "change_cost",
    "calibration",
    "task_size",
    "coverage",
    "mixing",
    "hard_tasks",
    "training",
    "objectives",
    "explorer",
    "leaderboard",
]


def main() -> None:
    """Run the benchmarks named on the command line, by default all of them."""
    for name in sys.argv[1:] or ALL:
        if name not in ALL:
            sys.exit(f"unknown benchmark '{name}'; known: {', '.join(ALL)}")
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").run()


main()
