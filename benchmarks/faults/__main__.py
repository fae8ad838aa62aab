"""Outcomes of commands that are killed, starved or refused: `python -m benchmarks.faults --kills 200`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.faults.trials import Trials

MEGABYTES = [8, 1, 50, 54, 60, 70]  # of memory: less and more than commands need before they touch a file


def main() -> None:
    """Try all faults, print a table, and exit with status 1 if something was lost, half-written or not reported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="number of processes to kill")
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="share of the refusals to try; 0: only those of encode",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder), options.seed)
        trials.kills(options.kills)
        if not options.share:
            trials.commands = [command for command in trials.commands if command.name == "encode"]
        trials.dead_workers(max(1, options.kills // 50))
        trials.refusals(options.share)
        trials.sizes(options.share)
        trials.read_only_folders()
        trials.memory(MEGABYTES if options.share else MEGABYTES[:1])
        trials.altered_bytes()
        trials.clocks()
        trials.two_at_once(max(1, options.kills // 50))
    print("| fault | outcomes |\n|---|---|")
    for fault, outcomes in trials.outcomes.items():
        counts = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.counts.items())
        print(f"| {fault} | {counts} |")
    wrong = [line for outcomes in trials.outcomes.values() for line in outcomes.wrong]
    print(f"wrong: {len(wrong)}", *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
