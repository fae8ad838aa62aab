"""`python -m benchmarks.faults --kills 200`: what becomes of commands that are killed, starved or refused."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.faults.trials import Trials

MEGABYTES = [8, 1, 50, 54, 60, 70]  # of memory: less than commands ask for before they touch a file, and more


def main() -> None:
    """Try all faults, print a table, and end with status 1 where something was lost, half-written or not told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many processes are killed")
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the refusals; 0: one, of encode",
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder), given.seed)
        trials.kills(given.kills)
        if not given.share:
            trials.commands = [command for command in trials.commands if command.name == "encode"]
        trials.dead_workers(max(1, given.kills // 50))
        trials.refusals(given.share)
        trials.sizes(given.share)
        trials.read_only_folders()
        trials.memory(MEGABYTES if given.share else MEGABYTES[:1])
        trials.altered_bytes()
        trials.clocks()
        trials.two_at_once(max(1, given.kills // 50))
    print("| fault | outcomes |\n|---|---|")
    for what, outcomes in trials.outcomes.items():
        told = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.counts.items())
        print(f"| {what} | {told} |")
    wrong = [line for outcomes in trials.outcomes.values() for line in outcomes.wrong]
    print(f"wrong: {len(wrong)}", *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
