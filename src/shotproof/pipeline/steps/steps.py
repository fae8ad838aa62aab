"""Steps of a run: each writes files, except those that are up to date with their inputs and parameters."""

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

import numpy as np
import pyarrow.compute as pc

from shotproof.catalog.catalog import MASK, MIXTURE_COLUMNS, Catalog
from shotproof.comparison.numbers import seconds
from shotproof.core.errors import InputError, ShotproofError, WriteFailed
from shotproof.core.nouns import counted
from shotproof.core.options import Component
from shotproof.core.plain_values import plain, typed
from shotproof.core.runtime.progress import Advance
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.archives import unsafe_path
from shotproof.core.storage.files import file_sha256, find, read_json
from shotproof.core.storage.whole_files import exclusive_use, write_text
from shotproof.pipeline.steps.owner import Owner
from shotproof.version import __version__

MANIFEST = "run.json"
UP_TO_DATE = "up to date"
Log = Callable[[str], None]


@dataclass(frozen=True)
class MadeFile:
    """Entry of a file in the manifest: key of its inputs, size and time, hash, time of creation and version."""

    key: str
    stamp: tuple[int, ...]
    sha256: str
    made: str
    shotproof: str


@dataclass(frozen=True)
class ComparedBy:
    """Settings of a run's comparison, which are the defaults for later comparisons of its folder.

    intervals, metric, placebo: as in `Study.compare`
    quick: whether to use fewer re-evaluations for intervals
    """

    intervals: tuple[str, ...] | None = None
    metric: str = "acc"
    placebo: bool = True
    quick: bool = False


@dataclass(frozen=True)
class Manifest:
    """Files that runs wrote to a folder, by name; the files of the last run; and the owner of the folder."""

    files: Mapping[str, MadeFile] = field(default_factory=dict)
    current: tuple[str, ...] = ()
    owner: Owner | None = None
    compared_by: ComparedBy = ComparedBy()


class Storable(Protocol):
    """Object that is stored in a file: catalog, attributes, features, task set or results."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the object from a file."""

    def write(self, path: str | Path) -> None:
        """Write the object to a file."""

    @property
    def digest(self) -> str:
        """Return the digest of the content."""


T = TypeVar("T", bound=Storable)


@dataclass
class Stage:
    """Step in progress; summary: its outcome in a few words, if it is not just a number of files."""

    summary: str = ""


@dataclass
class Steps:
    """Steps of one run, and the manifest of its folder.

    As a context manager, it locks the folder from the first file that it writes.

    folder: output folder; None keeps everything in memory
    owner: owner of the folder; None accepts any owner
    before: earlier runs whose current files are reused; their folders are not written to
    verbose: whether to report every file, as in a dry run
    compared_by: settings of the comparison
    made, reused: files that were created and files that were up to date, in the order of the steps
    files: files of the run, which later comparisons read
    """

    folder: Path | None
    dry_run: bool = False
    log: Log = lambda line: None
    owner: Owner | None = None
    verbose: bool = False
    compared_by: ComparedBy = ComparedBy()
    before: Sequence[Steps] = ()
    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)  # spellings by short name
    _advance: Advance = lambda steps: None
    _memory: dict[str, Any] = field(default_factory=dict)
    _claims: ExitStack = field(default_factory=ExitStack)
    _claimed: tuple[int, int] | None = None  # device and inode of the folder

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
        """Return the manifest of the folder; it is read once, since the folder is locked while this run writes."""
        return Manifest() if self.folder is None else read_manifest(self.folder)

    @contextlib.contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Stage]:
        """Show a progress bar during a step, then report its outcome and time in one line.

        Args:
            name: name of the step
            total: number of files; None if unknown
        """
        stage, start = Stage(), time.monotonic()
        created, reused = len(self.made), len(self.reused)
        with current_runtime().progress_bar(name, total) as self._advance:
            yield stage
        self._advance = lambda steps: None
        counts = _describe_counts(len(self.made) - created, len(self.reused) - reused)
        outcome = f"{stage.summary}, {counts}" if stage.summary and counts == UP_TO_DATE else stage.summary or counts
        if outcome and not self.dry_run:
            self.log(step_line(name, outcome, time.monotonic() - start))

    def short_name(self, spelling: str) -> str:
        """Return a component's name for file names: without the folders of files, and with a digest if two clash."""
        short = re.sub(r"[^\s'\":(),=]*[/\\]", "", spelling)
        if short == spelling and ":" not in spelling:
            return file_name(spelling)
        readable = _readable(short)
        first_spelling = self._names.setdefault(readable, spelling)
        return readable if first_spelling == spelling else f"{readable}-{_short_digest(spelling)}"

    def step(
        self,
        kind: type[T],
        name: str,
        inputs: Sequence[Any],
        parameters: Any,
        make: Callable[[], T],
        compared: bool = True,
    ) -> T | None:
        """Return the content of a file of the folder, which is created and written unless it is up to date.

        Args:
            kind: class of the content
            name: name of the file, relative to the folder
            inputs: objects with a digest, or plain values, that the content is computed from; None for inputs that a
                dry run does not compute
            parameters: parameters that the content is computed with
            make: computes the content
            compared: whether comparisons read the file

        Returns:
            The content; None if a dry run would create it.
        """
        if compared and name not in self.files:
            self.files.append(name)
        content = self.current(kind, name, inputs, parameters)
        if content is not None:
            return content
        self.announce(name)
        if self.dry_run:
            return None
        return self.keep(name, make(), inputs, parameters)

    def write_file(self, name: str, inputs: Sequence[Any], parameters: Any, write: Callable[[Path], None]) -> bool:
        """Write a file of the folder, unless it is up to date; return whether it was written.

        Args:
            name: name of the file
            inputs, parameters: as in `step`
            write: writes the file to a path
        """
        assert self.folder is not None
        path = self.folder / name
        if self.is_current(name, inputs, parameters) and file_sha256(path) == self.manifest.files[name].sha256:
            self.reused.append(name)
            return False
        self._claim()
        write(path)
        self.made.append(name)
        self._record(name, inputs, parameters)
        return True

    def current(self, kind: type[T], name: str, inputs: Sequence[Any], parameters: Any) -> T | None:
        """Return the content of a file if it is up to date and its bytes are unchanged, otherwise None."""
        for run in self.before:
            content = run.current(kind, name, inputs, parameters)
            if content is not None:
                self.reused.append(name)
                return content
        if not self._has_current(name, inputs, parameters):
            return None
        if self.folder is None:
            self.reused.append(name)
            in_memory: T = self._memory[_key(name, inputs, parameters)]
            return in_memory
        path = self.folder / name
        if file_sha256(path) != self.manifest.files[name].sha256:
            self.log(f"altered      {name}")
            return None
        content = kind.read(path)
        self.reused.append(name)
        self._report_file(UP_TO_DATE, name)
        self._advance(1)
        return content

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Return whether a file exists and was created from these inputs with these parameters."""
        return any(steps._has_current(name, inputs, parameters) for steps in (*self.before, self))

    def _has_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Return whether a file is current in this run, regardless of earlier runs."""
        if any(value is None for value in inputs):
            return False
        if self.folder is None:
            return _key(name, inputs, parameters) in self._memory
        path, entry = self.folder / name, self.manifest.files.get(name)
        if entry is None or entry.key != _key(name, inputs, parameters):
            return False
        return path.is_file() and entry.stamp == tuple(stamp(path))

    def announce(self, name: str) -> None:
        """Report that a file is created, or would be in a dry run."""
        self.made.append(name)
        self._report_file("would write" if self.dry_run else "writing", name)

    def keep(self, name: str, content: T, inputs: Sequence[Any], parameters: Any) -> T:
        """Write the content to its file, and return it as a later run will read it."""
        if self.folder is None:
            self._memory[_key(name, inputs, parameters)] = content
            return content
        path = self.folder / name
        self._claim()
        content.write(path)
        self._record(name, inputs, parameters)
        self._advance(1)
        return type(content).read(path)

    def _record(self, name: str, inputs: Sequence[Any], parameters: Any) -> None:
        """Record a file in the manifest."""
        assert self.folder is not None
        path = self.folder / name
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = MadeFile(_key(name, inputs, parameters), tuple(stamp(path)), file_sha256(path), now, __version__)
        self._write_manifest(replace(self.manifest, files={**self.manifest.files, name: entry}))

    def finish(self) -> None:
        """Record the files of this run; the folder may also contain files of earlier runs."""
        if (tuple(self.files), self.compared_by) != (self.manifest.current, self.manifest.compared_by):
            self._claim()
            self._write_manifest(replace(self.manifest, current=tuple(self.files), compared_by=self.compared_by))

    def _claim(self) -> None:
        """Lock the folder, and require that it is still the same."""
        if self.folder is None:
            return
        if self._claimed is None:
            self._claims.enter_context(exclusive_use(self.folder))
            self._claimed = _identity(self.folder)
            self.__dict__.pop("manifest", None)  # another run may have changed it before
        self._require_folder()

    def _require_folder(self, error: Exception | None = None) -> None:
        """Raise an error if the folder is not the one that the first file was written to."""
        if self.folder is not None and self._claimed is not None and _identity(self.folder) != self._claimed:
            raise WriteFailed(
                f"{self.folder} was removed or replaced during the run: run the same command again"
            ) from error

    def _report_file(self, action: str, name: str) -> None:
        """Report what is done with a file, if every file is reported."""
        if self.verbose or self.dry_run:
            self.log(f"{action:12} {name}")

    def _write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, with the owner of the folder."""
        self.manifest = manifest = replace(manifest, owner=manifest.owner or self.owner)
        if self.folder is not None:
            write_text(self.folder / MANIFEST, json.dumps(plain(manifest), indent=1, sort_keys=True) + "\n")


def step_line(name: str, outcome: str, elapsed: float) -> str:
    """Format the outcome of a step and its time in seconds as one line."""
    return f"{name:12} {outcome:44} {seconds(elapsed):>10}"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder; it is empty if the file is missing or damaged, so that nothing is reused."""
    try:
        manifest: Manifest = typed(read_json(folder / MANIFEST, MANIFEST) or {}, Manifest)
    except InputError:
        return Manifest()
    outside = next((name for name in manifest.current if unsafe_path(name)), None)
    if outside is not None:
        raise InputError(f"{folder / MANIFEST}: {outside!r} is outside of the run folder: expected files inside")
    return manifest


def file_name(spelling: str) -> str:
    """Return a spelling as part of a file name: readable, and unique to the spelling."""
    readable = _readable(spelling)
    return readable if readable == spelling else f"{readable}-{_short_digest(spelling)}"


def _readable(spelling: str) -> str:
    """Replace characters that are unusual in file names, and shorten the text."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", spelling).strip("-.")[:60]


def _short_digest(spelling: str) -> str:
    """Return six hexadecimal digits that identify a spelling."""
    return hashlib.sha256(spelling.encode()).hexdigest()[:6]


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return the device and inode of a folder, which differ if it is replaced; None if it does not exist."""
    with contextlib.suppress(OSError):
        status = folder.stat()
        return status.st_dev, status.st_ino
    return None


def _describe_counts(created: int, reused: int) -> str:
    """Describe how many files a step created and reused; empty if there are none."""
    if not created:
        return UP_TO_DATE if reused else ""
    return counted(created, "file") + (f", {reused} up to date" if reused else "")


def _key(name: str, inputs: Sequence[Any], parameters: Any) -> str:
    """Return one digest of everything that a file depends on."""
    digests = [getattr(value, "digest", value) for value in inputs]
    text = json.dumps([__version__, name, digests, plain(parameters)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stamp(path: Path) -> list[int]:
    """Return the size and time of a file."""
    try:
        status = find(path)
    except OSError:
        return [-1, -1]  # a missing file is reported where it is needed
    return [status.size, status.modified or 0]


def layer_stamps(catalog: Catalog) -> list[str]:
    """Return a digest of which items have a mask, or the parts of a mixture; empty if all of them or none have.

    The catalog's digest leaves columns of paths out, and tasks whose backgrounds change depend on it.
    """
    names = [name for name in (MASK, *MIXTURE_COLUMNS) if name in catalog.path_columns]
    columns = [pc.not_equal(pc.fill_null(catalog.table.column(name), ""), "").to_numpy() for name in names]
    if all(is_filled.all() for is_filled in columns):
        return []
    return [hashlib.sha256(np.packbits(columns).tobytes()).hexdigest()[:32]]


def file_stamps(component: Component) -> list[Any]:
    """Return the size and time of the files that a component's options name."""
    files = [getattr(component, option.name) for option in component.options() if option.path]
    return [stamp(Path(value)) for value in files if isinstance(value, str | Path)]
