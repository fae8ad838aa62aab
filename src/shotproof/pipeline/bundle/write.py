"""From a run's folder to a bundle."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import CARD_FILE, Card
from shotproof.core.errors import InputError
from shotproof.core.records import UNKNOWN, Maker
from shotproof.core.storage.archives import unsafe_path, write_archive
from shotproof.core.storage.files import is_folder, is_there, read_bytes
from shotproof.core.tables import check_output
from shotproof.core.trust import NotTrusted, Trust, reading_below, trusting
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method, make_method
from shotproof.learners.model_head import ModelHead
from shotproof.pipeline.bundle.bundle import MANIFEST, Bundle, BundledFile, FileKind
from shotproof.pipeline.read import files_by_kind
from shotproof.results.results import Results
from shotproof.tasks.sampler import samplers
from shotproof.tasks.taskset import TaskSet
from shotproof.version import __version__

README = "README.md"
INTERVALS: tuple[str, ...] = ("images", "sampler")  # where no card says which
_PACKAGES = ("numpy", "pillow", "pyarrow", "scipy", "torch")
_TEXT = """\
# {name}: few-shot tasks of Shotproof

{sets} task sets of {items:,} items. The data itself is not in here.

    shotproof share verify FILE.zip
    shotproof run FILE.zip --root DATA --encoder NAME

DATA is the folder{folder} that has e.g. `{example}`.

License of the data: {license}
Citation: {citation}
"""


def bundle(
    run: str | Path,
    output: str | Path,
    *,
    root: str | Path | None = None,
    trust: Trust = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Bundle:
    """Write the benchmark of a run, or of a profile, as one zip; the same run gives the same bytes.

    Args:
        run: the folder of a run
        output: the zip to write
        root: the folder that the catalog's paths are to start from; by default the deepest that has all items
        trust: whether files elsewhere that the task sets were drawn by are packed too; or which, as `NotTrusted` tells
            it
        tell: receives what is left out, and why

    Returns:
        What the zip's manifest says.

    Raises:
        InputError: it is no run's folder, or an item is outside of the root; nothing was written.
        NotTrusted: tasks were drawn by a file that is not in the run's folder; nothing was written.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=5, items=8, size=16).write(folder / "shapes")
        >>> tasks = sp.sample(catalog, "random", shot=1, query=2, tasks=4)
        >>> results = sp.evaluate(tasks, sp.encode(catalog, "pixels"), "ncc")
        >>> for name, one in {"catalog": catalog, "tasks": tasks, "results": results}.items():
        ...     one.write(folder / "run" / f"{name}.parquet")
        >>> bundle(folder / "run", folder / "shapes.zip").methods
        ('ncc',)
    """
    folder, output = Path(run), Path(output)
    check_output(output)
    if not is_folder(folder):
        raise InputError(f"{folder} is no folder: expected that of a run, such as birds-results/")
    with trusting(trust), reading_below(folder):
        making = _Making(folder, root if root is None else Path(root))
        methods = _methods(making.results, tell)
    manifest = Bundle(
        name=making.catalog.record.name or UNKNOWN,
        files=making.files,
        methods=methods,
        paths_from=making.root.name,
        metric=making.metric,
        intervals=making.intervals,
        license=making.catalog.record.license,
        citation=making.catalog.record.citation,
        versions=_versions(),
    )
    write_archive(output, {**making.contents, MANIFEST: manifest.to_text().encode()})
    return manifest


class _Making:
    """The files of a bundle while they are put together, by name."""

    def __init__(self, folder: Path, root: Path | None) -> None:
        self.contents: dict[str, bytes] = {}
        self.files: dict[str, BundledFile] = {}
        files = files_by_kind(folder)
        tasks = {file: TaskSet.read(file) for file in files.get("tasks", [])}
        if not tasks:
            raise InputError(f"{folder} has no task sets: expected the folder of a run")
        self.results = [Results.read(file) for file in files.get("results", [])]
        catalogs = {one.digest: one for one in map(Catalog.read, files.get("catalog", []))}
        of_tasks = {one.record.source("catalog") for one in tasks.values()}
        if len(of_tasks) > 1 or not of_tasks <= set(catalogs):
            raise InputError(f"{folder}: expected task sets of one catalog that is there, found {len(of_tasks)}")
        self.catalog = catalogs[of_tasks.pop() or ""]
        self.root = _root_of(self.catalog) if root is None else Path(os.path.realpath(root))
        self.table = _from_root(self.catalog, self.root)
        with tempfile.TemporaryDirectory() as scratch:
            # Written where its paths seem to start, so that they stay as they are.
            relative = Catalog(self.table, Path(scratch), self.catalog.record)
            self._written(Path(scratch), "catalog.parquet", "catalog", relative)
            for file in files.get("attributes", []):
                self._written(Path(scratch), file.name, "attributes", Attributes.read(file))
            for file, one in tasks.items():
                self._written(Path(scratch), file.name, "tasks", self._portable(one))
        card = folder / CARD_FILE
        self.metric, self.intervals = "acc", INTERVALS
        if is_there(card):
            made = Card.read(card)
            self.metric, self.intervals = made.metric, tuple(dict.fromkeys([made.covers, "sampler"]))
            self._add(CARD_FILE, "card", read_bytes(card, f"card {card}"))
        self._add(README, "text", self._readme(len(tasks)).encode())

    def _add(self, name: str, kind: FileKind, content: bytes, digest: str | None = None) -> None:
        if name == MANIFEST or self.contents.get(name, content) != content:
            raise InputError(f"there are two files called {name}: expected names that differ")
        self.contents[name] = content
        self.files[name] = BundledFile(kind, hashlib.sha256(content).hexdigest(), len(content), digest)

    def _written(self, scratch: Path, name: str, kind: FileKind, made: Any) -> None:
        made.write(scratch / name)
        self._add(name, kind, (scratch / name).read_bytes(), made.digest)

    def _portable(self, tasks: TaskSet) -> TaskSet:
        """The task set, with files that its sampler's options name beside it: intervals draw it anew."""
        made = tasks.record.sampler
        if made is None:
            return tasks
        try:
            sampler = samplers.make({"name": made.name, **made.options})
        except NotTrusted:
            raise
        except InputError:  # drawn by another version: it stays as it is
            return tasks
        if not sampler.files() or not all(map(is_there, sampler.files())):
            return tasks
        for file in sampler.files():
            self._add(file.name, "data", read_bytes(file, f"file {file}, which {made} tasks were drawn by,"))
        named = {each.name: getattr(sampler, each.name) for each in sampler.options() if each.path}
        beside: Any = {option: Path(value).name for option, value in named.items() if value is not None}
        moved = Maker.of(replace(sampler, **beside))  # type: ignore[type-var]
        return TaskSet(tasks.table, replace(tasks.record, sampler=moved))

    def _readme(self, sets: int) -> str:
        record = self.catalog.record
        first = self.table.column("path")[0].as_py()
        return _TEXT.format(
            name=record.name or UNKNOWN,
            sets=sets,
            items=len(self.catalog),
            folder=f" `{self.root.name}`" if self.root.name else "",
            example=first or "its recordings",
            license=record.license or UNKNOWN,
            citation=record.citation or UNKNOWN,
        )


def _methods(results: Sequence[Results], tell: Callable[[str], None]) -> tuple[str, ...]:
    """The methods of a run that anybody can evaluate on features; others are told."""
    found: list[str] = []
    for spelled in dict.fromkeys(name for one in results for name in one.methods):
        try:
            method: Method | None = make_method(spelled)
        except InputError:  # code, a server or a file, and none of them is in the bundle
            method = None
        if method is None or method.needs == "items" or isinstance(method, Adaptation | ModelHead) or ".py:" in spelled:
            tell(f"left out     method '{spelled}': it is not of features alone, or its code is not in the bundle")
        else:
            found.append(spelled)
    if not found:
        raise InputError("no results of a method that takes features: expected at least one, such as cosine")
    return tuple(found)


def _root_of(catalog: Catalog) -> Path:
    """The deepest folder that has all files of a catalog."""
    folders = {os.path.dirname(path) for path in _files(catalog)}  # noqa: PTH120
    if not folders:
        raise InputError("the catalog names no file: expected paths of items")
    return Path(os.path.commonpath([os.path.realpath(folder) for folder in folders]))


def _files(catalog: Catalog) -> list[str]:
    """The files that a catalog names in any column."""
    root = os.path.realpath(catalog.root)
    paths = (path for column in catalog.path_columns for path in catalog.table.column(column).to_pylist())
    return [os.path.join(root, path) for path in paths if path]  # noqa: PTH118


def _from_root(catalog: Catalog, root: Path) -> pa.Table:
    """The table of a catalog with all paths, also absolute ones, from this root; an item outside of it is refused."""
    folder = os.path.realpath(catalog.root)
    real: dict[str, str] = {}  # folders are far fewer than items

    def moved(path: str | None) -> str | None:
        if not path:  # an item that is made when it is read
            return path
        parent, name = os.path.split(os.path.join(folder, path))  # noqa: PTH118
        if parent not in real:
            real[parent] = os.path.relpath(os.path.realpath(parent), root)
        below = PurePosixPath(Path(real[parent], name).as_posix())
        if below.parts[0] == os.pardir:
            raise InputError(f"'{path}' is outside of {root}: give the folder that has all items (--root)")
        reason = unsafe_path(str(below))
        if reason:
            raise InputError(f"'{path}' can be in no bundle: {reason}")
        return str(below)

    table = catalog.table
    for column in catalog.path_columns:
        paths = pa.array([moved(path) for path in table.column(column).to_pylist()], pa.string())
        table = table.set_column(table.column_names.index(column), column, paths)
    return table


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "shotproof": __version__}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
