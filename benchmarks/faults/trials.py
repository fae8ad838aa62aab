"""Faults one by one: each command is tried, and what it leaves is held against what it makes when nothing happens."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults import attempt as faults
from benchmarks.faults.attempt import Ended, attempt
from benchmarks.faults.commands import COMMANDS, EXPERIMENT, IN_WORKERS, Command, write_inputs
from shotproof.core.storage.whole_files import SUFFIX
from shotproof.pipeline.steps.steps import MANIFEST

FUTURE, PAST = 4102444800, 86400  # seconds: the year 2100, and 1970
ALTERED = "a byte altered"
MOST_KILLS = 4  # before a command may go on
OLD = b"what was there before"
WORKS = 0.6  # seconds that a worker process lives, about
PASSING = (".checkpoint", ".jsonl")  # what a training has beside its model until it ends


@dataclass
class Outcomes:
    """How often what came of a fault, and whatever should not have come of it."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Whole:
    """A command to which nothing happened: its files, its time, and how often it changed the disk."""

    files: dict[str, bytes]
    seconds: float
    changes: int


class Trials:
    """A folder with the inputs of all commands, and what each makes of them."""

    def __init__(self, folder: Path, seed: int, commands: list[Command] = COMMANDS) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.outcomes: dict[str, Outcomes] = {}
        self.commands = commands
        faults.import_all()
        if not (child := os.fork()):  # what has computed already, with threads, is not to be forked
            write_inputs(folder)
            os._exit(0)
        os.waitpid(child, 0)
        self._wholes: dict[Command, Whole] = {}

    def kills(self, count: int) -> None:
        """Kill commands: one half some time after they began, the other before they change something on the disk."""
        for number, command in enumerate(self.commands):
            left = len(range(number, count, len(self.commands)))
            while left:
                trial, killed = self._anew(), 0
                while killed < min(left, MOST_KILLS) and self._is_killed(command, trial, killed):
                    self._count("kill -9", command, "killed")
                    killed += 1
                left -= killed
                if killed:  # else it was quicker
                    self._goes_on("kill -9", command, trial)

    def _is_killed(self, command: Command, trial: Path, before: int) -> bool:
        """Try to kill a command, the sooner the more often it was killed before and has less to do."""
        whole, share = self._whole(command), self.draw.random() / (1 + before)
        if self.draw.random() < 0.5:
            ended = attempt(command, trial, kill_after=whole.seconds * share)
        else:
            ended = attempt(command, trial, faults.kill_at(1 + int(whole.changes * share)))
        return ended.status == -signal.SIGKILL

    def dead_workers(self, times: int) -> None:
        """Kill one of two worker processes some time after it began: the command says so, or goes on without it."""
        what = "a worker killed"
        names = [command.name for command in self.commands]
        for command in IN_WORKERS:
            for _ in range(times if command.name in names else 0):
                ended = None
                while ended is None:
                    trial = self._anew()
                    delay = WORKS * self.draw.random()
                    ended = faults.attempt_without_a_worker(command.with_workers, trial, delay)
                self._refused_or_went_on(what, command, ended)
                self._goes_on(what, command, trial)

    def refusals(self, share: float = 1.0) -> None:
        """Refuse the n-th change of the disk and all after it, for every n or a share of them drawn at random."""
        for command in self.commands:
            numbers = range(1, self._whole(command).changes + 1)
            drawn = sorted(self.draw.sample(numbers, max(1, round(share * len(numbers)))))
            for what, reason in (("disk full", faults.FULL), ("disk read-only", faults.READ_ONLY)):
                for number in drawn:
                    self._refused(what, command, faults.refuse_at(number, reason))

    def sizes(self, share: float = 1.0) -> None:
        """Let no file become as large as one that the command makes, for each of these."""
        for command in self.commands:
            lengths = sorted({len(content) for content in self._whole(command).files.values()})
            for size in self.draw.sample(lengths, max(1, round(share * len(lengths)))):
                self._refused("a write cut off", command, faults.largest_file(size - 1))

    def read_only_folders(self) -> None:
        """Run in a folder in which nobody may write."""
        for command in self.commands:
            trial = self._anew()
            trial.chmod(0o555)
            ended = attempt(command, trial, faults.obey_permissions)
            trial.chmod(0o755)
            self._count("folder read-only", command, "one line" if ended.refused else "other", ended)
            self._goes_on("folder read-only", command, trial)

    def memory(self, megabytes: Sequence[int]) -> None:
        """Let a command have little more memory than it begins with."""
        for command in self.commands:
            for size in megabytes:
                trial = self._anew()
                ended = attempt(command, trial, faults.more_memory(size * 2**20))
                self._refused_or_went_on("memory runs out", command, ended)
                self._goes_on("memory runs out", command, trial)

    def altered_bytes(self) -> None:
        """Alter one byte of every file of the cache, and of every table of a run, which keeps its size and time."""
        for command in self.commands:
            trial = self._anew()
            attempt(command, trial)
            cached = [path for path in _files(trial) if path.relative_to(trial).parts[0] == "cache"]
            for path in cached:
                _alter(path, self.draw)
            if command.name == "run":
                for path in (trial / "out").rglob("*.parquet"):
                    _alter(path, self.draw)
            elif command.output is not None:
                (trial / command.output).unlink()
            if cached:
                self._goes_on(ALTERED, command, trial)

    def clocks(self) -> None:
        """Let all inputs and outputs be of the future, then of the past."""
        for command in self.commands:
            for when in (FUTURE, PAST):
                trial = self._anew()
                for path in _files(self.folder / "inputs"):
                    os.utime(path, (when, when))
                self._goes_on("clock jumps", command, trial)
                for path in _files(trial):
                    os.utime(path, (when, when))
                self._goes_on("clock jumps", command, trial)

    def two_at_once(self, times: int) -> None:
        """Run the same command twice at once in one folder: both are right, or one is told that it cannot."""
        for command in self.commands:
            for _ in range(times):
                trial = self._anew()
                children = [faults.begin(command, trial) for _ in range(2)]
                statuses = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
                outcome = {(0, 0): "both right", (0, 2): "one refused"}.get(tuple(statuses), "other")
                self._count("two at once", command, outcome, Ended(statuses[-1], str(statuses), 0.0))
                self._goes_on("two at once", command, trial)

    def _refused(self, what: str, command: Command, fault: Callable[[], Any]) -> None:
        trial = self._anew()
        if command.output is not None and command.name != "train":  # which goes on from what it finds
            (trial / command.output).write_bytes(OLD)
        self._refused_or_went_on(what, command, attempt(command, trial, fault))
        self._goes_on(what, command, trial)

    def _refused_or_went_on(self, what: str, command: Command, ended: Ended) -> None:
        outcome = "one line" if ended.refused else "went on" if ended.status == 0 else "other"
        self._count(what, command, outcome, ended)

    def _whole(self, command: Command) -> Whole:
        """What a command makes when nothing happens."""
        if command not in self._wholes:
            trial = self._anew("whole")
            ended = attempt(command, trial, faults.watch)
            if ended.status:
                raise AssertionError(f"{command.name} fails by itself: {ended.said}")
            self._wholes[command] = Whole(_content(trial), ended.seconds, len(ended.seen))
        return self._wholes[command]

    def _anew(self, name: str = "trial") -> Path:
        """A new folder to run in."""
        trial = self.folder / name
        shutil.rmtree(trial, ignore_errors=True)
        trial.mkdir()
        (trial / "experiment.toml").write_text(EXPERIMENT)
        return trial

    def _goes_on(self, what: str, command: Command, trial: Path) -> None:
        """Whatever is there is whole, and the same command makes what it would have made, and leaves nothing else."""
        expected = self._whole(command).files
        for name, content in _content(trial).items():
            passing = name.endswith((*PASSING, MANIFEST)) or f"{SUFFIX}/" in name or what == ALTERED
            if content not in (expected.get(name), OLD) and not passing:
                self._wrong(what, command, f"{name} is half-written")
        ended = attempt(command, trial)
        found = _content(trial)
        if ended.status:
            self._wrong(what, command, f"then status {ended.status}: {ended.said}")
        elif found != expected:
            differing = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            self._wrong(what, command, f"then other files: {', '.join(differing)}")
        elif left := [path.name for path in trial.rglob(f"*{SUFFIX}")]:
            self._wrong(what, command, f"then {', '.join(left)} is left")
        else:
            self._outcomes(what).counts["then the same bytes"] += 1

    def _outcomes(self, what: str) -> Outcomes:
        return self.outcomes.setdefault(what, Outcomes())

    def _count(self, what: str, command: Command, outcome: str, ended: Ended | None = None) -> None:
        self._outcomes(what).counts[outcome] += 1
        if outcome == "other" and ended is not None:
            self._wrong(what, command, f"status {ended.status}: {ended.said}")

    def _wrong(self, what: str, command: Command, told: str) -> None:
        self._outcomes(what).wrong.append(f"{what}, {command.name}: {told}")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _content(folder: Path) -> dict[str, bytes]:
    """The files of a folder but those of the cache, whose parts may be cut otherwise; times are no content."""
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    return {
        name: _without_times(path.read_bytes()) if path.name == MANIFEST else path.read_bytes()
        for name, path in found.items()
        if not name.startswith("cache/")
    }


def _without_times(manifest: bytes) -> bytes:
    told = json.loads(manifest)
    return json.dumps([told.get("current"), {name: entry["sha256"] for name, entry in told["files"].items()}]).encode()


def _alter(path: Path, draw: random.Random) -> None:
    """Alter one bit of a file, which keeps its time."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
