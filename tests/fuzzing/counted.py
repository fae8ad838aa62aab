"""A fixed number of cases: the same ones for the same seed, each in a process that may die without ending the count.

python -m tests.fuzzing --cases 100000 --seed 1
"""

from __future__ import annotations

import faulthandler
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzzing import campaign
from tests.fuzzing.execute import Outcome
from tests.fuzzing.formats import FORMATS

LONGEST = 64  # bytes of decisions
SECONDS = 30.0  # that a case may take
IMPORTING = 600.0  # that a command may take to import its modules, which is no case
SLOW = ("run", "profile", "train", "explain", "view", "mix")
LEFT = 2  # the status of a command that ends its process at once after its line, as it does for want of memory
STUCK = 3  # a process that does not even answer the watchdog is ended after so many times the seconds of a case


def weight(name: str, command: str) -> int:
    """How often a command gets a file of a format, against the others: the quick ones more often."""
    given = FORMATS[name].commands[command]
    if command == "sp.read":
        return 8
    return 1 if callable(given) or given[0] in SLOW else 3


def commands_of(name: str) -> list[str]:
    """The commands of a format in turn, each as often as its weight says."""
    return [command for command in FORMATS[name].commands for _ in range(weight(name, command))]


def shares(cases: int, names: list[str]) -> dict[str, int]:
    """How many cases each format gets, by the weights of its commands; together so many."""
    weights = [len(commands_of(name)) for name in names]
    ends = [cases * sum(weights[: place + 1]) // sum(weights) for place in range(len(names))]
    return {name: end - start for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True)}


def data_of(seed: int, name: str, number: int) -> bytes:
    """The decisions of one case."""
    return random.Random(f"{seed}/{name}/{number}").randbytes(LONGEST)


def try_cases(name: str, first: int, last: int, seed: int, progress: Path, folder: Path) -> None:
    """Try the cases of a format in this process, and write down after each how far it came, and what came of them."""
    commands, counts = commands_of(name), Counter[str]()
    good = (folder / FORMATS[name].file).read_bytes()
    for command in FORMATS[name].commands:  # which imports what it needs, for as long as that takes
        campaign.tried_content(name, command, good, folder, seconds=IMPORTING)
    for number in range(first, last):
        _note(progress, number, counts)
        faulthandler.dump_traceback_later(STUCK * SECONDS, exit=True)
        command, data = commands[number % len(commands)], data_of(seed, name, number)
        found = campaign.tried(name, command, data, folder, SECONDS)
        faulthandler.cancel_dump_traceback_later()
        counts[found.outcome] += 1
        if found.outcome.is_bug:
            kept = campaign.keep(name, command, data, found.outcome, folder)
            sys.stderr.write(f"{name}, {command}, case {number}: {found.outcome}, kept as {kept}\n{found.told}\n")
    _note(progress, last, counts)


def count_cases(cases: int, seed: int, names: list[str]) -> dict[str, Counter[str]]:
    """Try so many cases of these formats; a process that dies is a bug of its case, and the next one goes on."""
    counts: dict[str, Counter[str]] = {}
    started = time.monotonic()
    with campaign.bench() as folder:
        for name, share in shares(cases, names).items():
            counts[name] = _of_format(name, share, seed, folder)
            told = ", ".join(f"{count:,} {outcome}" for outcome, count in counts[name].items())
            done, seconds = sum(map(Counter.total, counts.values())), time.monotonic() - started
            sys.stderr.write(f"{done:,} of {cases:,} cases, {seconds:,.0f} s; {name}: {told}\n")
    return counts


def _note(progress: Path, number: int, counts: Counter[str]) -> None:
    """Write down how far it came, whole or not at all: the process may die at any time."""
    beside = progress.with_suffix(".new")
    beside.write_text(json.dumps({"number": number, "counts": counts}))
    beside.replace(progress)


def _of_format(name: str, share: int, seed: int, folder: Path) -> Counter[str]:
    counts, first, progress = Counter[str](), 0, folder / "progress.json"
    file = folder / FORMATS[name].file
    good = file.read_bytes()
    while first < share:
        _note(progress, first, Counter())
        one = [sys.executable, "-m", "tests.fuzzing", "--one-counted", name]
        ended = subprocess.run(
            [*one, str(first), str(share), str(seed), str(progress), str(folder)],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        sys.stderr.write(ended.stderr)
        state = json.loads(progress.read_text())
        counts += Counter(state["counts"])
        first = state["number"]
        if ended.returncode == LEFT:
            counts[Outcome.CLEAN_ERROR] += 1
        elif ended.returncode:
            stuck = "Timeout (" in ended.stderr  # of faulthandler
            counts[Outcome.HANG if stuck else Outcome.TRACEBACK] += 1
            sys.stderr.write(f"{name}, case {first}: the process ended with status {ended.returncode}\n")
        if ended.returncode:
            file.write_bytes(good)
            first += 1
    return counts
