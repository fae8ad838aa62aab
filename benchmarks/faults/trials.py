"""Trials of faults one by one: what a command leaves is compared with what it makes without a fault."""

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
from benchmarks.faults.attempt import Ending, attempt
from benchmarks.faults.commands import COMMANDS, EXPERIMENT, IN_WORKERS, Command, write_inputs
from shotproof.core.storage.whole_files import SUFFIX
from shotproof.pipeline.steps.steps import MANIFEST

FUTURE, PAST = 4102444800, 86400  # seconds: the year 2100, and 1970
ALTERED = "a byte altered"
MOST_KILLS = 4  # before a command may go on
OLD = b"what was there before"
WORKS = 0.6  # seconds that a worker process lives, about
PASSING = (".checkpoint", ".jsonl")  # files beside a model until its training ends


@dataclass
class Outcomes:
    """Counts of the outcomes of a fault, and everything that went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """Reference run of a command without a fault: its files, its time, and its number of changes of the disk."""

    files: dict[str, bytes]
    seconds: float
    changes: int


class Trials:
    """Trials in a folder with the inputs of all commands and the results of their reference runs."""

    def __init__(self, folder: Path, seed: int, commands: list[Command] = COMMANDS) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.outcomes: dict[str, Outcomes] = {}
        self.commands = commands
        faults.import_all()
        if not (child := os.fork()):  # a process that has computed with threads must not be forked
            write_inputs(folder)
            os._exit(0)
        os.waitpid(child, 0)
        self._references: dict[Command, Reference] = {}

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
                if killed:  # otherwise the command was quicker
                    self._goes_on("kill -9", command, trial)

    def _is_killed(self, command: Command, trial: Path, before: int) -> bool:
        """Try to kill a command, the sooner the more often it was killed before and has less to do."""
        reference, share = self._reference(command), self.draw.random() / (1 + before)
        if self.draw.random() < 0.5:
            ended = attempt(command, trial, kill_after=reference.seconds * share)
        else:
            ended = attempt(command, trial, faults.kill_at(1 + int(reference.changes * share)))
        return ended.status == -signal.SIGKILL

    def dead_workers(self, times: int) -> None:
        """Kill one of two worker processes after some time: the command reports it, or continues without it."""
        fault = "a worker killed"
        names = [command.name for command in self.commands]
        for command in IN_WORKERS:
            for _ in range(times if command.name in names else 0):
                ended = None
                while ended is None:
                    trial = self._anew()
                    delay = WORKS * self.draw.random()
                    ended = faults.attempt_without_a_worker(command.with_workers, trial, delay)
                self._refused_or_went_on(fault, command, ended)
                self._goes_on(fault, command, trial)

    def refusals(self, share: float = 1.0) -> None:
        """Let the n-th change of the disk and all after it fail, for every n or a share of them drawn at random."""
        for command in self.commands:
            numbers = range(1, self._reference(command).changes + 1)
            drawn = sorted(self.draw.sample(numbers, max(1, round(share * len(numbers)))))
            for fault, reason in (("disk full", faults.FULL), ("disk read-only", faults.READ_ONLY)):
                for number in drawn:
                    self._refused(fault, command, faults.refuse_at(number, reason))

    def sizes(self, share: float = 1.0) -> None:
        """Let no file become as large as one that the command makes, for each of these."""
        for command in self.commands:
            lengths = sorted({len(content) for content in self._reference(command).files.values()})
            for size in self.draw.sample(lengths, max(1, round(share * len(lengths)))):
                self._refused("a write cut off", command, faults.largest_file(size - 1))

    def read_only_folders(self) -> None:
        """Run in a read-only folder."""
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
        """Invert one bit of every file of the cache and of every table of a run; sizes and times stay the same."""
        for command in self.commands:
            trial = self._anew()
            attempt(command, trial)
            cache_files = [path for path in _files(trial) if path.relative_to(trial).parts[0] == "cache"]
            for path in cache_files:
                _alter(path, self.draw)
            if command.name == "run":
                for path in (trial / "out").rglob("*.parquet"):
                    _alter(path, self.draw)
            elif command.output is not None:
                (trial / command.output).unlink()
            if cache_files:
                self._goes_on(ALTERED, command, trial)

    def clocks(self) -> None:
        """Set the times of all inputs and outputs to the future, then to the past."""
        for command in self.commands:
            for time in (FUTURE, PAST):
                trial = self._anew()
                for path in _files(self.folder / "inputs"):
                    os.utime(path, (time, time))
                self._goes_on("clock jumps", command, trial)
                for path in _files(trial):
                    os.utime(path, (time, time))
                self._goes_on("clock jumps", command, trial)

    def two_at_once(self, times: int) -> None:
        """Run the same command twice at once in one folder: both succeed, or one is refused."""
        for command in self.commands:
            for _ in range(times):
                trial = self._anew()
                children = [faults.begin(command, trial) for _ in range(2)]
                statuses = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
                outcome = {(0, 0): "both right", (0, 2): "one refused"}.get(tuple(statuses), "other")
                self._count("two at once", command, outcome, Ending(statuses[-1], str(statuses), 0.0))
                self._goes_on("two at once", command, trial)

    def _refused(self, name: str, command: Command, fault: Callable[[], Any]) -> None:
        trial = self._anew()
        if command.output is not None and command.name != "train":  # which resumes from what it finds
            (trial / command.output).write_bytes(OLD)
        self._refused_or_went_on(name, command, attempt(command, trial, fault))
        self._goes_on(name, command, trial)

    def _refused_or_went_on(self, fault: str, command: Command, ended: Ending) -> None:
        outcome = "one line" if ended.refused else "went on" if ended.status == 0 else "other"
        self._count(fault, command, outcome, ended)

    def _reference(self, command: Command) -> Reference:
        """Return the reference run of a command, without a fault."""
        if command not in self._references:
            trial = self._anew("whole")
            ended = attempt(command, trial, faults.watch)
            if ended.status:
                raise AssertionError(f"{command.name} fails by itself: {ended.output}")
            self._references[command] = Reference(_content(trial), ended.seconds, len(ended.changes))
        return self._references[command]

    def _anew(self, name: str = "trial") -> Path:
        """Create a new folder to run in."""
        trial = self.folder / name
        shutil.rmtree(trial, ignore_errors=True)
        trial.mkdir()
        (trial / "experiment.toml").write_text(EXPERIMENT)
        return trial

    def _goes_on(self, fault: str, command: Command, trial: Path) -> None:
        """Check that no file is half-written, and that running the command again yields exactly the reference files."""
        expected = self._reference(command).files
        for name, content in _content(trial).items():
            passing = name.endswith((*PASSING, MANIFEST)) or f"{SUFFIX}/" in name or fault == ALTERED
            if content not in (expected.get(name), OLD) and not passing:
                self._wrong(fault, command, f"{name} is half-written")
        ended = attempt(command, trial)
        content_ = _content(trial)
        if ended.status:
            self._wrong(fault, command, f"then status {ended.status}: {ended.output}")
        elif content_ != expected:
            differing = sorted(
                name for name in content_.keys() | expected.keys() if content_.get(name) != expected.get(name)
            )
            self._wrong(fault, command, f"then other files: {', '.join(differing)}")
        elif leftovers := [path.name for path in trial.rglob(f"*{SUFFIX}")]:
            self._wrong(fault, command, f"then {', '.join(leftovers)} is left")
        else:
            self._outcomes(fault).counts["then the same bytes"] += 1

    def _outcomes(self, fault: str) -> Outcomes:
        return self.outcomes.setdefault(fault, Outcomes())

    def _count(self, fault: str, command: Command, outcome: str, ended: Ending | None = None) -> None:
        self._outcomes(fault).counts[outcome] += 1
        if outcome == "other" and ended is not None:
            self._wrong(fault, command, f"status {ended.status}: {ended.output}")

    def _wrong(self, fault: str, command: Command, problem: str) -> None:
        self._outcomes(fault).wrong.append(f"{fault}, {command.name}: {problem}")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder except the cache, whose parts may differ; times do not count as content."""
    paths = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    return {
        name: _without_times(path.read_bytes()) if path.name == MANIFEST else path.read_bytes()
        for name, path in paths.items()
        if not name.startswith("cache/")
    }


def _without_times(manifest: bytes) -> bytes:
    entries = json.loads(manifest)
    return json.dumps(
        [entries.get("current"), {name: entry["sha256"] for name, entry in entries["files"].items()}]
    ).encode()


def _alter(path: Path, draw: random.Random) -> None:
    """Invert one bit of a file, and keep its time."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
