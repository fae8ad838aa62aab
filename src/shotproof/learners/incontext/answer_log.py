"""Log of the answers of a model, as JSON lines: each is written before the next question, as answers cost money."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from shotproof.core.errors import InputError, WriteFailed


class AnswerLog:
    """Answers by request, and the file that each new answer is appended to; as a context manager, it closes the file.

    A line that was cut off when the process was killed is skipped, so its question is asked again.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path  # None: answers are not saved
        self.answers: dict[str, str] = {}
        self._file: IO[str] | None = None
        if path is not None and path.exists():
            self._read(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, request: str, answer: str) -> None:
        """Save an answer."""
        self.answers[request] = answer
        if self.path is None:
            return
        try:
            if self._file is None:
                self._file = _open_to_append(self.path)
            self._file.write(json.dumps({"request": request, "answer": answer}, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise WriteFailed(f"cannot write {self.path}: {error.strerror or error}") from error

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"cannot read the log {path}: {error.strerror or error}") from error
        if lines and not lines[0].startswith('{"request": '):
            raise InputError(f"{path} is not a log of answers and was left as it is: name another file")
        for line in lines:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if (
                isinstance(entry, dict)
                and isinstance(entry.get("request"), str)
                and isinstance(entry.get("answer"), str)
            ):
                self.answers[entry["request"]] = entry["answer"]


def _open_to_append(path: Path) -> IO[str]:
    """Open a file to append to it, and end its last line first if that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ends_with_newline = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    file = path.open("a", encoding="utf-8")
    file.write("" if ends_with_newline else "\n")
    return file
