"""Maps with workers from where users call them: scripts without a guard, standard input, notebooks, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbclient
import nbformat
import psutil
import pytest

from tests.core.runtime.conftest import RunScript

pytestmark = pytest.mark.slow

UNGUARDED = """
from dataclasses import dataclass
from shotproof.core.runtime.runtime import runtime

print("begin")

@dataclass
class Point:
    x: int

class Shift:
    def __init__(self, by): self.by = by
    def __call__(self, point): return Point(point.x + self.by)

shifted = list(runtime(workers=2).map(Shift(1), [Point(1), Point(2), Point(3)], title="shifting"))
print(shifted == [Point(2), Point(3), Point(4)], [type(point) is Point for point in shifted])
"""


@pytest.mark.parametrize("how", ["file", "stdin", "-c"])
def test_no_script_needs_a_guard(how: str, run_script: RunScript) -> None:
    assert run_script(UNGUARDED, how) == "begin\nTrue [True, True, True]\n"


def test_a_notebook_needs_no_guard_and_shows_progress(tmp_path: Path) -> None:
    again = "print(next(runtime(workers=2).map(lambda x: x.x, shifted, title='a < b')))"
    cells = [nbformat.v4.new_code_cell(code) for code in (UNGUARDED, again)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [
        "".join(output["text"] for output in cell.outputs if output.output_type == "stream") for cell in notebook.cells
    ]
    assert printed == ["begin\nTrue [True, True, True]\n", "2\n"]
    bars = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "display_data"]
    assert [bar.data["text/html"] for bar in bars] == ["", ""]  # there while the map ran, and gone after it


Start = Callable[[str], subprocess.Popen[str]]

LONG = """
import time
from shotproof.core.runtime.runtime import runtime

def work(seconds):
    time.sleep(seconds)

outputs = runtime(workers=2).map(work, [0, 0] + [3600] * 10, title="sleeping")
for output in outputs:
    print("an output", flush=True)
    {then}
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the long script, wait for its first output, and return its process."""
    started: list[subprocess.Popen[str]] = []

    def start(then: str) -> subprocess.Popen[str]:
        (tmp_path / "script.py").write_text(LONG.format(then=then))
        script = subprocess.Popen(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(script)
        assert script.stdout is not None
        assert script.stdout.readline() == "an output\n"
        return script

    yield start
    for script in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
        script.communicate()


@pytest.mark.parametrize("then", ["pass", "time.sleep(3600)"])
@pytest.mark.parametrize("interrupt", [os.killpg, os.kill])  # as a terminal does, and as a notebook does
def test_ctrl_c_ends_all_processes_at_once(
    then: str, interrupt: Callable[[int, int], None], start: Start, tmp_path: Path
) -> None:
    script = start(then)
    interrupt(script.pid, signal.SIGINT)
    _, errors = script.communicate(timeout=10)
    assert script.returncode == -signal.SIGINT
    assert errors.count("Traceback") == errors.count("KeyboardInterrupt") == 1, errors
    assert _group_ends(script.pid)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_nothing_outlives_a_process_that_is_killed(start: Start, tmp_path: Path) -> None:
    script = start("pass")
    script.kill()
    script.wait()
    assert _group_ends(script.pid)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def _group_ends(group: int) -> bool:
    """Return whether all processes of a group have ended, after a short wait."""
    for _ in range(100):
        if not any(_runs_in(group, process) for process in psutil.process_iter()):
            return True
        time.sleep(0.05)
    return False


def _runs_in(group: int, process: psutil.Process) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False
