"""Attempt of one command in a fork of this process, which has imported everything needed, and the faults to inject."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import importlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import Command

CHANGES = ("os.rename", "os.mkdir", "os.chmod")  # audit events of the system calls that change what is on a disk
IMPORTED = (
    "jinja2",
    "multiprocessing.queues",
    "pandas",
    "pyloudnorm",
    "rich.console",
    "rich.table",
    "shotproof.cli.app",
    "shotproof.core.runtime.local",
    "shotproof.evaluation.batch_engine",
    "shotproof.features.encoders.pixels",
    "shotproof.learners.heads.inductive.kernels",
    "shotproof.models.backbones.conv64f",
    "shotproof.models.objectives.prototypes",
    "shotproof.pipeline.components",
    "shotproof.pipeline.report",
    "shotproof.pipeline.study",
    "shotproof.sounds.mix",
    "shotproof.training.train",
    "shotproof.worlds.shapes",
    "shotproof.worlds.sounds",
    "shotproof.comparison.comparison_tables",
    "torch._dynamo",
    "typer._adapters",
)
HANGS = 120  # seconds after which a command counts as hanging and is killed
WORKER = b"popen_loky"  # in the command line of a worker process
SEEN = "events"
OUTPUT = "said"


@dataclass(frozen=True)
class Ending:
    """Outcome of a command: its status (negative: the signal), its output, and its duration."""

    status: int
    output: str
    seconds: float
    changes: list[str] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Return whether the command ended as a refusal must: with one line, and status 2."""
        lines = [line for line in self.output.splitlines() if line.startswith("error: ")]
        return self.status == 2 and len(lines) == 1 and "Traceback" not in self.output


def attempt(
    command: Command,
    folder: Path,
    before: Callable[[], Any] = lambda: None,
    kill_after: float | None = None,
) -> Ending:
    """Run a command in a folder, after `before` in the same process; kill it after so many seconds."""
    began = time.monotonic()
    child = begin(command, folder, before)
    if not _ends_within(HANGS if kill_after is None else kill_after, child):
        os.kill(child, signal.SIGKILL)
    return _ended(child, folder, began)


def attempt_without_a_worker(command: Command, folder: Path, kill_after: float) -> Ending | None:
    """Run a command, and kill one of its worker processes after `kill_after` seconds; None if it ended before."""
    began = time.monotonic()
    child = begin(command, folder)
    while (worker := _worker_of(child)) is None and not _ends_within(0.01, child):
        pass
    if worker is not None and not _ends_within(kill_after, child):
        os.kill(worker, signal.SIGKILL)
        return _ended(child, folder, began)
    _ended(child, folder, began)
    return None


def _ends_within(seconds: float, process: int) -> bool:
    """Wait at most this long for a child to end; its status stays available to later waits."""
    ends = os.pidfd_open(process)
    try:
        return bool(select.select([ends], [], [], seconds)[0])
    finally:
        os.close(ends)


def _ended(child: int, folder: Path, began: float) -> Ending:
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ending(status, (folder.parent / OUTPUT).read_text(), time.monotonic() - began, _changes(folder))


def _worker_of(process: int) -> int | None:
    """Return a worker process of a process, if it has one."""
    for of_process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            parent = int((of_process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and WORKER in (of_process / "cmdline").read_bytes():
                return int(of_process.name)
    return None


def begin(command: Command, folder: Path, before: Callable[[], Any] = lambda: None) -> int:
    """Start a command in a fork and return its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.chdir(folder)
        output = os.open(folder.parent / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - to the end
        sys.argv = ["shotproof", *command.arguments]
        from shotproof.cli.app import main

        before()
        main()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 - the trial looks for exactly what a command lets through
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _changes(folder: Path) -> list[str]:
    log = folder.parent / SEEN
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def watch() -> None:
    """Record every change of the disk that Python asks the system for, in a file beside the folder."""
    file = os.open(Path.cwd().parent / SEEN, os.O_WRONLY | os.O_CREAT)
    _at_changes(lambda event, number: os.write(file, f"{event}\n".encode()))


def import_all() -> None:
    """Import and build everything slow that commands need, so that their forks start quickly."""
    for name in IMPORTED:
        importlib.import_module(name)
    importlib.import_module("PIL.Image").init()  # imports what reads each kind of file
    importlib.import_module("shotproof.cli.app").command()
    templates = importlib.import_module("shotproof.report.pages.render").environment()
    for template in templates.list_templates(extensions=["html"]):
        templates.get_template(template)
    gc.freeze()  # forks share this memory, as their garbage collectors never touch it


def kill_at(number: int) -> Callable[[], None]:
    """Kill the process right before its n-th change of the disk."""

    def change(event: str, place: int) -> None:
        if place == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: _at_changes(change)


def refuse_at(number: int, reason: int) -> Callable[[], None]:
    """Let the n-th change of the disk, and all after it, fail."""

    def change(event: str, place: int) -> None:
        if place >= number:
            raise OSError(reason, os.strerror(reason))

    return lambda: _at_changes(change)


def largest_file(size: int) -> Callable[[], None]:
    """Limit the size of files: like a full disk for code in any language, but at a chosen moment."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def more_memory(size: int) -> Callable[[], None]:
    """Limit the process to this many more bytes of memory than it has."""

    def limit() -> None:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + size, resource.RLIM_INFINITY))

    return limit


def obey_permissions() -> None:
    """Give up root's right to write to read-only places; other users never had it."""
    if os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    sets[0] &= ~(1 << 1)  # CAP_DAC_OVERRIDE of the effective set
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


FULL, READ_ONLY = errno.ENOSPC, errno.EROFS


def _at_changes(act: Callable[[str, int], Any]) -> None:
    """Call `act` with the name and number of each change of the disk that Python asks the system for, before it."""
    number = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        opened = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR) and isinstance(arguments[0], str | bytes)
        if event in CHANGES or (opened and not os.fsdecode(arguments[0]).startswith("/dev/")):
            number += 1
            act(event, number)

    sys.addaudithook(hook)
