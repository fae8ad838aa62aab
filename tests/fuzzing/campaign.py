"""Many executions: counted by format and outcome, and what fails made small and kept."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzzing.bench import make_bench
from tests.fuzzing.choices import Choices
from tests.fuzzing.execute import SECONDS, Execution, Outcome, execute
from tests.fuzzing.formats import FORMATS, Format

LARGEST_KEPT = 2**14  # bytes of a file in the corpus; a larger one goes to the folder for temporary files
CORPUS = Path(__file__).parent / "corpus"


@contextmanager
def bench() -> Iterator[Path]:
    """A folder with all good files, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="shotproof-fuzzing-") as folder:
        make_bench(Path(folder))
        yield Path(folder)


def tried(name: str, command: str, data: bytes, folder: Path, seconds: float = SECONDS) -> Execution:
    """What a command makes of a file of a format, damaged as the data decides; the good file is put back."""
    given = FORMATS[name]
    with _put_back(given, folder):
        given.write(folder, Choices(data))
        return execute(given.commands[command], folder, seconds)


def tried_content(name: str, command: str, content: bytes, folder: Path, seconds: float = SECONDS) -> Execution:
    """What a command makes of a file of a format with this content."""
    given = FORMATS[name]
    with _put_back(given, folder):
        (folder / given.file).write_bytes(content)
        return execute(given.commands[command], folder, seconds)


def corpus() -> list[tuple[str, Path]]:
    """What once failed: the format, and the file."""
    named = {_folder_name(name): name for name in FORMATS}
    return [(named[file.parent.name], file) for file in sorted(CORPUS.glob("*/*"))]


def keep(name: str, command: str, data: bytes, outcome: Outcome, folder: Path) -> Path:
    """Make the decisions that failed few, and keep the file that they lead to in the corpus."""
    for end in range(len(data)):
        if tried(name, command, data[:end], folder, 5).outcome is outcome:
            data = data[:end]
            break
    given = FORMATS[name]
    with _put_back(given, folder):
        given.write(folder, Choices(data))
        content = (folder / given.file).read_bytes()
    kept = CORPUS / _folder_name(name) / f"{hashlib.sha256(content).hexdigest()[:12]}{Path(given.file).suffix}"
    if len(content) > LARGEST_KEPT:
        kept = Path(tempfile.gettempdir()) / kept.name
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return kept


def table(counts: dict[str, Counter[str]]) -> str:
    """The counts by format and outcome, as Markdown."""
    rows = [*counts.items(), ("all", sum(counts.values(), Counter()))]
    head = f"| format | commands | executions | {' | '.join(Outcome)} |\n|---|{'---|' * (len(Outcome) + 2)}\n"
    every = {command for each in FORMATS.values() for command in each.commands}
    return head + "".join(
        f"| {name} | {len(FORMATS[name].commands) if name in FORMATS else len(every)} | {sum(found.values()):,} | "
        f"{' | '.join(f'{found[one]:,}' for one in Outcome)} |\n"
        for name, found in rows
    )


@contextmanager
def _put_back(given: Format, folder: Path) -> Iterator[None]:
    path = folder / given.file
    good = path.read_bytes()
    try:
        yield
    finally:
        path.write_bytes(good)


def _folder_name(name: str) -> str:
    return "".join(one if one.isalnum() else "-" for one in name.lower()).replace("--", "-")
