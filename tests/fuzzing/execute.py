"""One command on one file: what came of it."""

from __future__ import annotations

import contextlib
import enum
import io
import logging
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shotproof.cli.app import main
from shotproof.core.errors import ShotproofError

SECONDS = 60.0  # of a processor, or by the clock where it only waits
MEMORY = 3 * 2**30  # bytes that one execution may take beyond what the process has
OUTPUT = "out"
Command = Sequence[str] | Callable[[], Any]


class Outcome(enum.StrEnum):
    """What an execution may come to; the last three are bugs."""

    SUCCESS = "success"
    CLEAN_ERROR = "clean error"
    TRACEBACK = "traceback"
    HANG = "hang"
    HALF_WRITTEN = "half-written"

    @property
    def is_bug(self) -> bool:
        return self not in (Outcome.SUCCESS, Outcome.CLEAN_ERROR)


@dataclass(frozen=True)
class Execution:
    """What came of it, and of a bug what it says."""

    outcome: Outcome
    told: str = ""


class _Hang(BaseException):
    """Raised by the watchdog."""


def execute(command: Command, folder: Path, seconds: float = SECONDS) -> Execution:
    """Run a command, or call a reader, in a folder; its subfolder `out` is emptied first."""
    shutil.rmtree(folder / OUTPUT, ignore_errors=True)
    said = io.StringIO()
    with _surroundings(folder, seconds), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            execution = _called(command, said)
        except _Hang:
            return Execution(Outcome.HANG, f"more than {seconds:g} s:\n{traceback.format_exc(limit=-12)}")
        except BaseException:  # noqa: BLE001 - whatever it is, it is a bug
            return Execution(Outcome.TRACEBACK, traceback.format_exc())
    broken = _half_written(folder / OUTPUT, failed=execution.outcome is Outcome.CLEAN_ERROR, command=command)
    return Execution(Outcome.HALF_WRITTEN, broken) if broken else execution


def _called(command: Command, said: io.StringIO) -> Execution:
    if callable(command):
        try:
            command()
        except ShotproofError as error:
            return Execution(Outcome.CLEAN_ERROR, str(error))
        return Execution(Outcome.SUCCESS)
    sys.argv = ["shotproof", *command]
    try:
        main()
    except SystemExit as stopped:
        if "Traceback (most recent call last)" in said.getvalue():  # of a thread, or of a destructor
            return Execution(Outcome.TRACEBACK, said.getvalue())
        lines = [line for line in said.getvalue().splitlines() if line.startswith("error: ")]
        if stopped.code == 2 and len(lines) == 1:
            return Execution(Outcome.CLEAN_ERROR, lines[0])
        if stopped.code in (0, 1):  # 1: a check that found something
            return Execution(Outcome.SUCCESS)
        return Execution(Outcome.TRACEBACK, f"exit status {stopped.code}: {said.getvalue()}")
    raise AssertionError("the command did not end")


def _half_written(output: Path, *, failed: bool, command: Command) -> str:
    """What is left that should not be: temporary files, tables cut off, or what a failed command should not write."""
    files = [file for file in output.rglob("*") if file.is_file()] if output.is_dir() else []
    for file in files:
        if any(part.startswith(".") for part in file.relative_to(output).parts):
            return f"left behind: {file.relative_to(output)}"
        if file.suffix == ".parquet":
            try:
                pq.read_table(file)
            except (pa.ArrowException, OSError) as error:
                return f"{file.relative_to(output)}: {error}"
    kept = callable(command) or command[0] in ("run", "profile", "mix", "train")  # finished parts are kept
    return f"failed, and wrote {files[0].relative_to(output)}" if failed and files and not kept else ""


@contextlib.contextmanager
def _surroundings(folder: Path, seconds: float) -> Iterator[None]:
    """In the folder, for so many seconds, with so much memory, and without warnings and logs."""
    spent = [time.process_time()]

    def ring(*_: Any) -> None:
        """Looked at again and again: the machine may have other things to do."""
        spent.append(time.process_time())
        if spent[-1] - spent[0] >= seconds or spent[-1] - spent[-2] < seconds / 100:
            raise _Hang

    before = signal.signal(signal.SIGALRM, ring), sys.argv, Path.cwd(), logging.root.manager.disable
    limits = resource.getrlimit(resource.RLIMIT_AS)
    os.chdir(folder)
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before[0])
        sys.argv = before[1]
        os.chdir(before[2])
        logging.disable(before[3])


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
