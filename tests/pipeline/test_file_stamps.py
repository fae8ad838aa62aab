"""How often a run asks the system for the size and time of an item's file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# Counts calls of os.stat and openings for each image, over a run that makes all and one that finds all made. Files are
# looked at once more before each opening, lest it be a pipe: those calls are no stamps.
COUNT = """
import collections, json, os, sys
from shotproof import run

counts = collections.Counter()
stat = os.stat

def counted(path, *args, **options):
    note(path, 1)
    return stat(path, *args, **options)

def note(path, number):
    if isinstance(path, str | os.PathLike) and os.fspath(path).endswith(".png"):
        counts[os.path.basename(path), os.path.basename(os.path.dirname(path))] += number

os.stat = counted
sys.addaudithook(lambda event, args: note(args[0], -1) if event == "open" else None)
for _ in range(2):
    counts.clear()
    run(sys.argv[1])
    print(json.dumps(sorted(counts.values())))
"""


def test_a_run_takes_the_stamp_of_each_file_once(experiment: Path) -> None:
    done = subprocess.run([sys.executable, "-c", COUNT, str(experiment)], capture_output=True, text=True, check=True)
    first, second = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    images = len(list((experiment.parent / "world").rglob("*.png")))
    assert second == [1] * images
    # The cache of digests looks at a file of its own accord, just before it is read.
    assert first == [2] * images
