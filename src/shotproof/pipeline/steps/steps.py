"""The steps of a run: each writes one file, and is skipped when that file was made from the same by the same."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from shotproof.core.archives import unsafe_path
from shotproof.core.errors import InputError
from shotproof.core.file_digest import file_sha256
from shotproof.core.files import read_json
from shotproof.core.locks import sole_use
from shotproof.core.plain_values import plain, typed
from shotproof.core.whole_files import write_text
from shotproof.pipeline.steps.stamps import stamp
from shotproof.version import __version__

MANIFEST = "run.json"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class MadeFile:
    """What one file was made from, its size and time, its content; when it was made, and by which version."""

    key: str
    stamp: tuple[int, ...]
    sha256: str
    made: str
    shotproof: str


@dataclass(frozen=True)
class Manifest:
    """The files that runs have left in a folder, by name, and those that the last one consists of."""

    files: Mapping[str, MadeFile] = field(default_factory=dict)
    current: tuple[str, ...] = ()


class Written(Protocol):
    """What is kept in a file: a catalog, attributes, features, a task set, results."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """From its file."""

    def write(self, path: str | Path) -> None:
        """To its file."""

    @property
    def digest(self) -> str:
        """Of its content."""


T = TypeVar("T", bound=Written)


@dataclass
class Steps:
    """The steps of one run, and the manifest of what each file of its folder was made from, and when.

    As a context manager, it has the folder to itself from the first file that it writes.

    made, reused: the files, in the order of the steps
    files: what the run consists of, which later comparisons read
    """

    folder: Path
    dry_run: bool = False
    tell: Tell = lambda line: None
    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    _claims: ExitStack = field(default_factory=ExitStack)
    _claimed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._claims.close()

    def step(
        self,
        kind: type[T],
        name: str,
        inputs: Sequence[Any],
        parameters: Any,
        make: Callable[[], T],
        compared: bool = True,
    ) -> T | None:
        """The file `name` of the folder: read where it is up to date, else made and written.

        Args:
            kind: of what the file holds
            name: of the file, below the folder
            inputs: what it is made from: things with a digest, or plain values; None is one that a dry run did not make
            parameters: by what it is made
            make: makes it
            compared: whether comparisons read it, or it is of use to this run alone

        Returns:
            What the file holds; None in a dry run, where it would be made.
        """
        if compared and name not in self.files:
            self.files.append(name)
        found = self.current(kind, name, inputs, parameters)
        if found is not None:
            return found
        self.announce(name)
        if self.dry_run:
            return None
        return self.keep(name, make(), inputs, parameters)

    def current(self, kind: type[T], name: str, inputs: Sequence[Any], parameters: Any) -> T | None:
        """What a file holds that is up to date; None where it is not, or where the disk has altered it."""
        if not self.is_current(name, inputs, parameters):
            return None
        path = self.folder / name
        if file_sha256(path) != read_manifest(self.folder).files[name].sha256:
            self.tell(f"altered      {name}")
            return None
        found = kind.read(path)
        self.reused.append(name)
        self.tell(f"up to date   {name}")
        return found

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Whether a file is there and was made from these, by these."""
        if any(value is None for value in inputs):
            return False
        path, entry = self.folder / name, read_manifest(self.folder).files.get(name)
        if entry is None or entry.key != _key(name, inputs, parameters):
            return False
        return path.is_file() and entry.stamp == tuple(stamp(path))

    def announce(self, name: str) -> None:
        """Say that a file is made, or would be."""
        self.made.append(name)
        self.tell(f"{'would make' if self.dry_run else 'making':12} {name}")

    def keep(self, name: str, made: T, inputs: Sequence[Any], parameters: Any) -> T:
        """Write what was made, and give it as a later run will read it, so that both go on alike."""
        path = self.folder / name
        self._claim()
        made.write(path)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = MadeFile(_key(name, inputs, parameters), tuple(stamp(path)), file_sha256(path), now, __version__)
        manifest = read_manifest(self.folder)
        self._write(replace(manifest, files={**manifest.files, name: entry}))
        return type(made).read(path)

    def finish(self) -> None:
        """Note which files the run consists of: files of earlier runs may lie beside them."""
        self._claim()
        self._write(replace(read_manifest(self.folder), current=tuple(self.files)))

    def _claim(self) -> None:
        if not self._claimed:
            self._claims.enter_context(sole_use(self.folder))
            self._claimed = True

    def _write(self, manifest: Manifest) -> None:
        write_text(self.folder / MANIFEST, json.dumps(plain(manifest), indent=1, sort_keys=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """What a run has left in its folder; empty where there is none, or it is damaged: then all is made anew."""
    try:
        manifest: Manifest = typed(read_json(folder / MANIFEST, MANIFEST) or {}, Manifest)
    except InputError:
        return Manifest()
    outside = next((name for name in manifest.current if unsafe_path(name)), None)
    if outside is not None:
        raise InputError(f"{folder / MANIFEST}: {outside!r} is outside of the run's folder: expected files below it")
    return manifest


def file_name(spelling: str) -> str:
    """A spelling as part of a file's name: readable, and different for different spellings."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", spelling).strip("-.")[:60]
    if readable == spelling:
        return readable
    return f"{readable}-{hashlib.sha256(spelling.encode()).hexdigest()[:6]}"


def _key(name: str, inputs: Sequence[Any], parameters: Any) -> str:
    """What a file depends on, as one digest."""
    given = [getattr(value, "digest", value) for value in inputs]
    text = json.dumps([__version__, name, given, plain(parameters)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
