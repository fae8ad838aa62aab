"""`make fuzz`: malformed files of every format, guided by coverage (atheris) where that is installed, else at random.

python -m tests.fuzzing [SECONDS PER FORMAT] [PART OF A FORMAT'S NAME ...]
python -m tests.fuzzing --cases NUMBER [--seed SEED] [PART OF A FORMAT'S NAME ...]

The second form tries so many files, the same ones for the same seed, and ends with one line of what came of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SECONDS = 20.0
IMPORTING = 600.0  # that a command may take to import its modules: one that was broken off fails at the next time
LONGEST = 64  # bytes of decisions


def fuzz(name: str, seconds: float, counted: Path, folder: Path) -> None:
    """Try one format of the bench in a folder for so long, in this process, which ends with it; counts go to a file."""
    guided = importlib.util.find_spec("atheris") is not None
    if guided:
        import atheris

        # Until the process ends: commands import what they need when they need it.
        atheris.instrument_imports(include=["shotproof"]).__enter__()
    from tests.fuzzing import campaign

    counts: Counter[str] = Counter()
    commands = list(campaign.FORMATS[name].commands)
    good = (folder / campaign.FORMATS[name].file).read_bytes()
    for command in commands:  # which imports what it needs, for as long as that takes
        campaign.tried_content(name, command, good, folder, seconds=IMPORTING)
    ends = time.monotonic() + seconds

    def once(data: bytes) -> None:
        if time.monotonic() > ends:
            counted.write_text(json.dumps(counts))
            sys.stderr.flush()
            os._exit(0)  # libFuzzer takes an ordinary exit for a crash
        command = commands[sum(counts.values()) % len(commands)]
        found = campaign.tried(name, command, data, folder)
        counts[found.outcome] += 1
        if found.outcome.is_bug:
            kept = campaign.keep(name, command, data, found.outcome, folder)
            sys.stderr.write(f"{name}, {command}: {found.outcome}, kept as {kept}\n{found.told}\n")

    _drive(once, guided)


def _drive(once: Callable[[bytes], None], guided: bool) -> None:
    if not guided:
        draw = random.Random(0)
        while True:
            once(draw.randbytes(LONGEST))
    import atheris

    with tempfile.TemporaryDirectory() as seeds:
        draw = random.Random(0)
        for number in range(64):
            (Path(seeds) / f"{number}").write_bytes(draw.randbytes(LONGEST))
        flags = [
            f"-max_len={LONGEST}",
            "-len_control=0",
            "-verbosity=0",
            "-timeout=600",
            "-rss_limit_mb=0",
            "-report_slow_units=600",
        ]
        atheris.Setup([sys.argv[0], *flags, seeds], once)
        atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """Each format in a process of its own, then the table; 1 where something failed."""
    if arguments[:1] == ["--one"]:
        fuzz(arguments[1], float(arguments[2]), Path(arguments[3]), Path(arguments[4]))
        return 0
    if arguments[:1] == ["--one-counted"]:
        from tests.fuzzing.counted import try_cases

        name, first, last, seed, progress, folder = arguments[1:]
        try_cases(name, int(first), int(last), int(seed), Path(progress), Path(folder))
        return 0
    if arguments[:1] == ["--cases"]:
        return _counted(arguments)
    from tests.fuzzing.campaign import FORMATS, bench, table
    from tests.fuzzing.execute import Outcome

    seconds = float(arguments[0]) if arguments else SECONDS
    wanted = [name for name in FORMATS if not arguments[1:] or any(part in name for part in arguments[1:])]
    counts: dict[str, Counter[str]] = {}
    with bench() as folder:
        for name in wanted:
            counted = folder / "counts.json"
            counted.unlink(missing_ok=True)
            one = [sys.executable, "-m", "tests.fuzzing", "--one", name, str(seconds), str(counted), str(folder)]
            ended = subprocess.run(one, check=False, stdout=subprocess.DEVNULL)
            if counted.is_file():
                counts[name] = Counter(json.loads(counted.read_text()))
            else:  # the process died, which no input may bring about
                counts[name] = Counter({Outcome.TRACEBACK: 1})
                sys.stderr.write(f"{name}: the process ended with status {ended.returncode}\n")
    sys.stdout.write(table(counts))
    return int(any(count[one] for count in counts.values() for one in Outcome if one.is_bug))


def _counted(arguments: list[str]) -> int:
    """So many cases; 1 where something failed."""
    from tests.fuzzing.campaign import FORMATS, table
    from tests.fuzzing.counted import count_cases
    from tests.fuzzing.execute import Outcome

    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing")
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("parts", nargs="*")
    given = parser.parse_args(arguments)
    wanted = [name for name in FORMATS if not given.parts or any(part in name for part in given.parts)]
    counts = count_cases(given.cases, given.seed, wanted)
    all_of = sum(counts.values(), Counter[str]())
    bugs = ", ".join(f"{all_of[one]:,} {one}" for one in Outcome if one.is_bug)
    sys.stdout.write(f"{table(counts)}\n{all_of.total():,} cases, seed {given.seed}: {bugs}\n")
    return int(any(all_of[one] for one in Outcome if one.is_bug))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
