"""One command in a fork of this process, which has imported all that it needs, and the faults that may befall it."""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import resource
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
    "pandas",
    "pyloudnorm",
    "rich.table",
    "shotproof.evaluation.engine",
    "shotproof.pipeline.report",
    "shotproof.pipeline.run",
    "shotproof.sounds.mix",
    "shotproof.training.train",
    "shotproof.worlds.shapes",
    "shotproof.worlds.sounds",
    "torch._dynamo",
)
SEEN = "events"
SAID = "said"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status (negative: the signal), what it said, how long it took."""

    status: int
    said: str
    seconds: float
    seen: list[str] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether it ended as one that may not go on has to: with one line, and the status 2."""
        lines = [line for line in self.said.splitlines() if line.startswith("error: ")]
        return self.status == 2 and len(lines) == 1 and "Traceback" not in self.said


def attempt(
    command: Command,
    folder: Path,
    before: Callable[[], Any] = lambda: None,
    kill_after: float | None = None,
) -> Ended:
    """Run a command in a folder, after `before` in the same process; kill it after so many seconds."""
    began = time.monotonic()
    child = begin(command, folder, before)
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if kill_after is not None and time.monotonic() - began > kill_after:
            os.kill(child, signal.SIGKILL)
            done = os.waitpid(child, 0)
            break
        time.sleep(0.001)
    said = (folder.parent / SAID).read_text()
    return Ended(os.waitstatus_to_exitcode(done[1]), said, time.monotonic() - began, _seen(folder))


def begin(command: Command, folder: Path, before: Callable[[], Any] = lambda: None) -> int:
    """Start a command in a fork; its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.chdir(folder)
        output = os.open(folder.parent / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - to the end
        sys.argv = ["shotproof", *command.arguments]
        from shotproof.cli.app import main

        before()
        main()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 - what a command lets through is what is looked for
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _seen(folder: Path) -> list[str]:
    seen = folder.parent / SEEN
    lines = seen.read_text().splitlines() if seen.exists() else []
    seen.unlink(missing_ok=True)
    return lines


def watch() -> None:
    """Note every change of the disk that Python asks the system for, in a file beside the folder."""
    file = os.open(Path.cwd().parent / SEEN, os.O_WRONLY | os.O_CREAT)
    _at_changes(lambda event, number: os.write(file, f"{event}\n".encode()))


def import_all() -> None:
    """Import what takes long and commands import where they need it, so that their forks need not."""
    for name in IMPORTED:
        importlib.import_module(name)


def kill_at(number: int) -> Callable[[], None]:
    """Before the n-th change of the disk, the process kills itself."""

    def change(event: str, place: int) -> None:
        if place == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: _at_changes(change)


def refuse_at(number: int, reason: int) -> Callable[[], None]:
    """The n-th change of the disk, and all after it, are refused."""

    def change(event: str, place: int) -> None:
        if place >= number:
            raise OSError(reason, os.strerror(reason))

    return lambda: _at_changes(change)


def largest_file(size: int) -> Callable[[], None]:
    """No file may grow beyond a size: what a full disk is to code of any language, at a moment that one can choose."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def more_memory(size: int) -> Callable[[], None]:
    """The process may take so many bytes of memory more than it has."""

    def limit() -> None:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + size, resource.RLIM_INFINITY))

    return limit


def obey_permissions() -> None:
    """Give up root's right to write where nobody may; others never had it."""
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
