"""Answers that were paid for are kept: a log of JSON lines, each on disk before the next question is asked."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from shotproof.core.errors import InputError, WriteFailed


class AnswerLog:
    """The answers by request, and a file to which each new one is added; as a context manager, it closes the file.

    A line that a kill cut off is passed over: its question is asked again.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path  # None: nothing is kept
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
        """Keep an answer."""
        self.answers[request] = answer
        if self.path is None:
            return
        try:
            if self._file is None:
                self._file = _appended(self.path)
            self._file.write(json.dumps({"request": request, "answer": answer}, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise WriteFailed(f"cannot write {self.path}: {error.strerror or error}") from error

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"the log {path} cannot be read: {error.strerror or error}") from error
        if lines and not lines[0].startswith('{"request": '):
            raise InputError(f"{path} is no log of answers, and stays as it is: name another file")
        for line in lines:
            try:
                kept = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(kept, dict) and isinstance(kept.get("request"), str) and isinstance(kept.get("answer"), str):
                self.answers[kept["request"]] = kept["answer"]


def _appended(path: Path) -> IO[str]:
    """The file, open at its end; a line that was cut off is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    file = path.open("a", encoding="utf-8")
    file.write("" if whole else "\n")
    return file
