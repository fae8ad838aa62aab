"""How often a run reads an item's file, or asks the system for its size and time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from shotproof.worlds.shapes import ShapesWorld

# Counts calls of os.stat and openings for each image, over a run that makes all and one that finds all made. Files are
# looked at once more before each opening, lest it be a pipe: those calls are no stamps.
COUNT = """
import collections, json, os, sys
from shotproof import run

counts, opened, listed = collections.Counter(), collections.Counter(), collections.Counter()
stat = os.stat

def counted(path, *args, **options):
    note(path, 1)
    return stat(path, *args, **options)

def note(path, number):
    if isinstance(path, str | os.PathLike) and os.fspath(path).endswith(".png"):
        counts[os.path.basename(path), os.path.basename(os.path.dirname(path))] += number

def audited(event, args):
    if event == "open" and isinstance(args[0], str | os.PathLike) and os.fspath(args[0]).endswith(".png"):
        note(args[0], -1)
        opened[args[0]] += 1
    if event in ("os.scandir", "os.listdir") and "world" in str(args[0]):
        listed[str(args[0])] += 1

os.stat = counted
sys.addaudithook(audited)
for _ in range(2):
    for counter in (counts, opened, listed):
        counter.clear()
    run(sys.argv[1])
    print(json.dumps([sorted(counter.values()) for counter in (counts, opened, listed)]))
"""


def test_a_run_reads_files_and_takes_their_stamps_as_seldom_as_can_be(experiment: Path) -> None:
    done = subprocess.run([sys.executable, "-c", COUNT, str(experiment)], capture_output=True, text=True, check=True)
    first, second = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    images = len(list((experiment.parent / "world").rglob("*.png")))
    folders = 1 + len([path for path in (experiment.parent / "world").iterdir() if path.is_dir()])
    stamps, opened, listed = first
    # The cache of digests looks at a file of its own accord, just before it is read.
    assert stamps == [2] * images
    # Once for its digest, once to be decoded, for words and features together; and most are shown in the report.
    assert set(opened) == {2, 3}
    assert listed == [1] * folders
    assert second == [[1] * images, [], [1] * folders]


# Counts how often the command lists each folder of the data, and says whether PyTorch was imported.
COMMAND = """
import collections, json, sys
from shotproof.cli.app import main

listed = collections.Counter()

def audited(event, args):
    if event in ("os.scandir", "os.listdir") and "world" in str(args[0]):
        listed[str(args[0])] += 1

sys.addaudithook(audited)
folder, output = sys.argv[1:]
options = "--encoder pixels --method ncc --tasks 4 --skip-small".split()
sys.argv = ["shotproof", "run", folder, "-o", output, *options]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([sorted(listed.values()), "torch" in sys.modules]))
"""


def test_the_command_reads_a_data_folder_once_and_a_finished_run_needs_no_torch(tmp_path: Path) -> None:
    ShapesWorld(classes=10, items=40, size=16).write(tmp_path / "world")
    arguments = [sys.executable, "-c", COMMAND, str(tmp_path / "world"), str(tmp_path / "out")]
    first, second = (subprocess.run(arguments, capture_output=True, text=True, check=True) for _ in range(2))
    once = [1] * 11  # the folder, and that of each class
    assert json.loads(first.stdout.splitlines()[-1]) == [once, True]
    assert json.loads(second.stdout.splitlines()[-1]) == [once, False]
    assert "nothing to compute" in second.stderr
