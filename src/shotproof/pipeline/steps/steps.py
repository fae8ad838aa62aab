"""The steps of a run: each makes files, and skips those that were made from the same by the same."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from shotproof.comparison.numbers import seconds
from shotproof.core.errors import InputError, ShotproofError, WriteFailed
from shotproof.core.nouns import counted
from shotproof.core.options import Component
from shotproof.core.plain_values import plain, typed
from shotproof.core.runtime.progress import Advance
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.archives import unsafe_path
from shotproof.core.storage.files import file_sha256, find, read_json
from shotproof.core.storage.whole_files import sole_use, write_text
from shotproof.pipeline.steps.owner import Owner
from shotproof.version import __version__

MANIFEST = "run.json"
UP_TO_DATE = "up to date"
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
class ComparedBy:
    """How a run compares its results; whoever reads its folder compares them likewise, unless asked otherwise.

    intervals, metric, placebo: as `Study.compare` takes them
    quick: re-evaluate less for the intervals that need it
    """

    intervals: tuple[str, ...] | None = None
    metric: str = "acc"
    placebo: bool = True
    quick: bool = False


@dataclass(frozen=True)
class Manifest:
    """The files that runs have left in a folder, by name, those that the last one consists of, and whose they are."""

    files: Mapping[str, MadeFile] = field(default_factory=dict)
    current: tuple[str, ...] = ()
    owner: Owner | None = None
    compared_by: ComparedBy = ComparedBy()


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
class Stage:
    """A step while it goes on; done: what it did, in a few words, where the number of files does not tell."""

    done: str = ""


@dataclass
class Steps:
    """The steps of one run, and the manifest of what each file of its folder was made from, and when.

    As a context manager, it has the folder to itself from the first file that it writes.

    folder: None: everything is kept in memory
    owner: what the folder is to belong to; None: whatever it belongs to
    before: runs whose files are taken where they are up to date, and whose folders are not written to
    verbose: tell every file too, as a dry run does
    compared_by: how its results are compared
    made, reused: the files, in the order of the steps
    files: what the run consists of, which later comparisons read
    """

    folder: Path | None
    dry_run: bool = False
    tell: Tell = lambda line: None
    owner: Owner | None = None
    verbose: bool = False
    compared_by: ComparedBy = ComparedBy()
    before: Sequence[Steps] = ()
    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)  # spellings by their short names
    _advance: Advance = lambda steps: None
    _memory: dict[str, Any] = field(default_factory=dict)
    _claims: ExitStack = field(default_factory=ExitStack)
    _claimed: tuple[int, int] | None = None  # the device and number of the folder

    def __enter__(self) -> Self:
        if self.owner is not None and self.folder is not None:
            self.owner.require(self.manifest.owner, self.folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._claims.close()
        if error is None or isinstance(error, ShotproofError | OSError):
            self._require_folder(error)

    @cached_property
    def manifest(self) -> Manifest:
        """What was made in the folder: read once, as nobody else writes there while this run does."""
        return Manifest() if self.folder is None else read_manifest(self.folder)

    @contextlib.contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Stage]:
        """Show a bar while a step goes on, and tell in one line what it made and how long that took.

        Args:
            name: of the step
            total: how many files it has; None where nobody knows
        """
        stage, start = Stage(), time.monotonic()
        made, reused = len(self.made), len(self.reused)
        with current_runtime().progress_bar(name, total) as self._advance:
            yield stage
        self._advance = lambda steps: None
        counts = _counts(len(self.made) - made, len(self.reused) - reused)
        done = f"{stage.done}, {counts}" if stage.done and counts == UP_TO_DATE else stage.done or counts
        if done and not self.dry_run:
            self.tell(step_line(name, done, time.monotonic() - start))

    def short_name(self, spelling: str) -> str:
        """Name a component in a file's name: one that names a file by that file's own name, unless two would clash."""
        short = re.sub(r"[^\s'\":(),=]*[/\\]", "", spelling)
        if short == spelling and ":" not in spelling:
            return file_name(spelling)
        readable = _readable(short)
        known = self._names.setdefault(readable, spelling)
        return readable if known == spelling else f"{readable}-{_short_digest(spelling)}"

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

    def write_file(self, name: str, inputs: Sequence[Any], parameters: Any, write: Callable[[Path], None]) -> bool:
        """Have a file of the folder written, unless it is up to date; return whether it was written.

        Args:
            name: of the file
            inputs, parameters: what it is made from, and by what, as of a step
            write: writes it to the path that it is given
        """
        assert self.folder is not None
        path = self.folder / name
        if self.is_current(name, inputs, parameters) and file_sha256(path) == self.manifest.files[name].sha256:
            self.reused.append(name)
            return False
        self._claim()
        write(path)
        self.made.append(name)
        self._note(name, inputs, parameters)
        return True

    def current(self, kind: type[T], name: str, inputs: Sequence[Any], parameters: Any) -> T | None:
        """What a file holds that is up to date; None where it is not, or where the disk has altered it."""
        for run in self.before:
            kept = run.current(kind, name, inputs, parameters)
            if kept is not None:
                self.reused.append(name)
                return kept
        if not self._is_own(name, inputs, parameters):
            return None
        if self.folder is None:
            self.reused.append(name)
            held: T = self._memory[_key(name, inputs, parameters)]
            return held
        path = self.folder / name
        if file_sha256(path) != self.manifest.files[name].sha256:
            self.tell(f"altered      {name}")
            return None
        found = kind.read(path)
        self.reused.append(name)
        self._tell_file(UP_TO_DATE, name)
        self._advance(1)
        return found

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Whether a file is there and was made from these, by these."""
        return any(steps._is_own(name, inputs, parameters) for steps in (*self.before, self))

    def _is_own(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        if any(value is None for value in inputs):
            return False
        if self.folder is None:
            return _key(name, inputs, parameters) in self._memory
        path, entry = self.folder / name, self.manifest.files.get(name)
        if entry is None or entry.key != _key(name, inputs, parameters):
            return False
        return path.is_file() and entry.stamp == tuple(stamp(path))

    def announce(self, name: str) -> None:
        """Say that a file is made, or would be."""
        self.made.append(name)
        self._tell_file("would make" if self.dry_run else "making", name)

    def keep(self, name: str, made: T, inputs: Sequence[Any], parameters: Any) -> T:
        """Write what was made, and give it as a later run will read it, so that both go on alike."""
        if self.folder is None:
            self._memory[_key(name, inputs, parameters)] = made
            return made
        path = self.folder / name
        self._claim()
        made.write(path)
        self._note(name, inputs, parameters)
        self._advance(1)
        return type(made).read(path)

    def _note(self, name: str, inputs: Sequence[Any], parameters: Any) -> None:
        """Note in the manifest what a file was made from, and by what."""
        assert self.folder is not None
        path = self.folder / name
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = MadeFile(_key(name, inputs, parameters), tuple(stamp(path)), file_sha256(path), now, __version__)
        self._write(replace(self.manifest, files={**self.manifest.files, name: entry}))

    def finish(self) -> None:
        """Note which files the run consists of: files of earlier runs may lie beside them."""
        if (tuple(self.files), self.compared_by) != (self.manifest.current, self.manifest.compared_by):
            self._claim()
            self._write(replace(self.manifest, current=tuple(self.files), compared_by=self.compared_by))

    def _claim(self) -> None:
        if self.folder is None:
            return
        if self._claimed is None:
            self._claims.enter_context(sole_use(self.folder))
            self._claimed = _identity(self.folder)
            self.__dict__.pop("manifest", None)  # another run may have written it until now
        self._require_folder()

    def _require_folder(self, error: Exception | None = None) -> None:
        """Refuse to go on if the folder is not the one that the first file was written to."""
        if self.folder is not None and self._claimed is not None and _identity(self.folder) != self._claimed:
            raise WriteFailed(
                f"{self.folder} was removed or replaced while the run was at work in it: run the same command again"
            ) from error

    def _tell_file(self, what: str, name: str) -> None:
        if self.verbose or self.dry_run:
            self.tell(f"{what:12} {name}")

    def _write(self, manifest: Manifest) -> None:
        self.manifest = manifest = replace(manifest, owner=manifest.owner or self.owner)
        if self.folder is not None:
            write_text(self.folder / MANIFEST, json.dumps(plain(manifest), indent=1, sort_keys=True) + "\n")


def step_line(name: str, done: str, took: float) -> str:
    """Say in one line what a step did, and how many seconds it took."""
    return f"{name:12} {done:44} {seconds(took):>10}"


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
    readable = _readable(spelling)
    return readable if readable == spelling else f"{readable}-{_short_digest(spelling)}"


def _readable(spelling: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", spelling).strip("-.")[:60]


def _short_digest(spelling: str) -> str:
    return hashlib.sha256(spelling.encode()).hexdigest()[:6]


def _identity(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from another one of the same name; None where there is none."""
    with contextlib.suppress(OSError):
        status = folder.stat()
        return status.st_dev, status.st_ino
    return None


def _counts(made: int, reused: int) -> str:
    """How many files a step has made and found; empty where it has none."""
    if not made:
        return UP_TO_DATE if reused else ""
    return counted(made, "file") + (f", {reused} up to date" if reused else "")


def _key(name: str, inputs: Sequence[Any], parameters: Any) -> str:
    """What a file depends on, as one digest."""
    given = [getattr(value, "digest", value) for value in inputs]
    text = json.dumps([__version__, name, given, plain(parameters)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stamp(path: Path) -> list[int]:
    """Size and time of a file."""
    try:
        found = find(path)
    except OSError:
        return [-1, -1]  # whoever needs the file says that it is missing
    return [found.size, found.changed or 0]


def file_stamps(component: Component) -> list[Any]:
    """Size and time of the files that a component's options name."""
    named = [getattr(component, option.name) for option in component.options() if option.path]
    return [stamp(Path(value)) for value in named if isinstance(value, str | Path)]
