"""Writing a bundle from a run folder."""

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
from shotproof.core.storage.files import is_folder, path_exists, read_bytes
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
DEFAULT_INTERVALS: tuple[str, ...] = ("images", "sampler")  # if there is no card
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
    log: Callable[[str], None] = lambda line: None,
) -> Bundle:
    """Write the benchmark of a run or profile as one zip; the same run gives the same bytes.

    Args:
        run: run folder
        output: zip to write
        root: folder that the paths of the catalog should start from; by default the deepest that contains all items
        trust: whether files elsewhere that the task sets were drawn with are included, or which, as listed by
            `NotTrusted`
        log: called with what is left out, and why

    Returns:
        The manifest of the bundle.

    Raises:
        InputError: the folder is not a run folder, or an item is outside of the root; nothing was written.
        NotTrusted: tasks were drawn with a file that is not in the run folder; nothing was written.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=5, items=8, size=16).write(folder / "shapes")
        >>> tasks = sp.sample(catalog, "random", shot=1, query=2, tasks=4)
        >>> results = sp.evaluate(tasks, sp.encode(catalog, "pixels"), "ncc")
        >>> for name, table in {"catalog": catalog, "tasks": tasks, "results": results}.items():
        ...     table.write(folder / "run" / f"{name}.parquet")
        >>> bundle(folder / "run", folder / "shapes.zip").methods
        ('ncc',)
    """
    folder, output = Path(run), Path(output)
    check_output(output)
    if not is_folder(folder):
        raise InputError(f"{folder} is not a folder: expected a run folder, such as birds-results/")
    with trusting(trust), reading_below(folder):
        builder = _BundleBuilder(folder, root if root is None else Path(root))
        methods = _select_methods(builder.results, log)
    manifest = Bundle(
        name=builder.catalog.record.name or UNKNOWN,
        files=builder.files,
        methods=methods,
        paths_from=builder.root.name,
        metric=builder.metric,
        intervals=builder.intervals,
        license=builder.catalog.record.license,
        citation=builder.catalog.record.citation,
        versions=_versions(),
    )
    write_archive(output, {**builder.contents, MANIFEST: manifest.to_text().encode()})
    return manifest


class _BundleBuilder:
    """Builder that collects the files of a bundle, by name."""

    def __init__(self, folder: Path, root: Path | None) -> None:
        self.contents: dict[str, bytes] = {}
        self.files: dict[str, BundledFile] = {}
        files = files_by_kind(folder)
        tasks = {file: TaskSet.read(file) for file in files.get("tasks", [])}
        if not tasks:
            raise InputError(f"{folder} has no task sets: expected a run folder")
        self.results = [Results.read(file) for file in files.get("results", [])]
        catalogs = {catalog.digest: catalog for catalog in map(Catalog.read, files.get("catalog", []))}
        catalog_digests = {task_set.record.source("catalog") for task_set in tasks.values()}
        if len(catalog_digests) > 1 or not catalog_digests <= set(catalogs):
            raise InputError(f"{folder}: expected task sets of one catalog in the folder, found {len(catalog_digests)}")
        self.catalog = catalogs[catalog_digests.pop() or ""]
        self.root = _find_root(self.catalog) if root is None else Path(os.path.realpath(root))
        self.table = _make_paths_relative(self.catalog, self.root)
        with tempfile.TemporaryDirectory() as scratch:
            # Written to the folder that its paths start from, so that they stay unchanged.
            relative = Catalog(self.table, Path(scratch), self.catalog.record)
            self._add_table(Path(scratch), "catalog.parquet", "catalog", relative)
            for file in files.get("attributes", []):
                self._add_table(Path(scratch), file.name, "attributes", Attributes.read(file))
            for file, task_set in tasks.items():
                self._add_table(Path(scratch), file.name, "tasks", self._make_portable(task_set))
        card = folder / CARD_FILE
        self.metric, self.intervals = "acc", DEFAULT_INTERVALS
        if path_exists(card):
            run_card = Card.read(card)
            self.metric, self.intervals = run_card.metric, tuple(dict.fromkeys([run_card.covers, "sampler"]))
            self._add(CARD_FILE, "card", read_bytes(card, f"card {card}"))
        self._add(README, "text", self._format_readme(len(tasks)).encode())

    def _add(self, name: str, kind: FileKind, content: bytes, digest: str | None = None) -> None:
        """Add a file and its entry in the manifest."""
        if name == MANIFEST or self.contents.get(name, content) != content:
            raise InputError(f"two files are named {name}: rename one of them")
        self.contents[name] = content
        self.files[name] = BundledFile(kind, hashlib.sha256(content).hexdigest(), len(content), digest)

    def _add_table(self, scratch: Path, name: str, kind: FileKind, table: Any) -> None:
        """Write a table to a scratch folder, and add it."""
        table.write(scratch / name)
        self._add(name, kind, (scratch / name).read_bytes(), table.digest)

    def _make_portable(self, tasks: TaskSet) -> TaskSet:
        """Return the task set with the files of its sampler's options added to the bundle and named relative to it.

        Intervals draw the tasks again, so they need these files.
        """
        maker = tasks.record.sampler
        if maker is None:
            return tasks
        try:
            sampler = samplers.make({"name": maker.name, **maker.options})
        except NotTrusted:
            raise
        except InputError:  # drawn by another version: kept unchanged
            return tasks
        if not sampler.files() or not all(map(path_exists, sampler.files())):
            return tasks
        for file in sampler.files():
            self._add(file.name, "data", read_bytes(file, f"file {file}, which {maker} tasks were drawn with,"))
        files_by_option = {option.name: getattr(sampler, option.name) for option in sampler.options() if option.path}
        names_by_option: Any = {
            option: Path(value).name for option, value in files_by_option.items() if value is not None
        }
        portable_maker = Maker.of(replace(sampler, **names_by_option))  # type: ignore[type-var]
        return TaskSet(tasks.table, replace(tasks.record, sampler=portable_maker))

    def _format_readme(self, sets: int) -> str:
        """Format the README of the bundle."""
        record = self.catalog.record
        first_path = self.table.column("path")[0].as_py()
        return _TEXT.format(
            name=record.name or UNKNOWN,
            sets=sets,
            items=len(self.catalog),
            folder=f" `{self.root.name}`" if self.root.name else "",
            example=first_path or "its recordings",
            license=record.license or UNKNOWN,
            citation=record.citation or UNKNOWN,
        )


def _select_methods(results: Sequence[Results], log: Callable[[str], None]) -> tuple[str, ...]:
    """Return the methods of a run that anyone can evaluate on features, and report the others."""
    selected: list[str] = []
    for spelling in dict.fromkeys(name for result in results for name in result.methods):
        try:
            method: Method | None = make_method(spelling)
        except InputError:  # needs code, a server or a file that is not in the bundle
            method = None
        if (
            method is None
            or method.needs == "items"
            or isinstance(method, Adaptation | ModelHead)
            or ".py:" in spelling
        ):
            log(f"left out     method '{spelling}': it needs more than features, or its code is not in the bundle")
        else:
            selected.append(spelling)
    if not selected:
        raise InputError("no results of a method that uses only features: expected at least one, such as cosine")
    return tuple(selected)


def _find_root(catalog: Catalog) -> Path:
    """Return the deepest folder that contains all files of a catalog."""
    folders = {os.path.dirname(path) for path in _list_files(catalog)}  # noqa: PTH120
    if not folders:
        raise InputError("the catalog names no file: expected paths of items")
    return Path(os.path.commonpath([os.path.realpath(folder) for folder in folders]))


def _list_files(catalog: Catalog) -> list[str]:
    """List the files that a catalog names in any column."""
    root = os.path.realpath(catalog.root)
    paths = (path for column in catalog.path_columns for path in catalog.table.column(column).to_pylist())
    return [os.path.join(root, path) for path in paths if path]  # noqa: PTH118


def _make_paths_relative(catalog: Catalog, root: Path) -> pa.Table:
    """Return the table of a catalog with all paths relative to this root; reject items outside of it."""
    folder = os.path.realpath(catalog.root)
    relative_folders: dict[str, str] = {}  # cached by folder, as there are far fewer folders than items

    def make_relative(path: str | None) -> str | None:
        if not path:  # an item that is generated when it is read
            return path
        parent, name = os.path.split(os.path.join(folder, path))  # noqa: PTH118
        if parent not in relative_folders:
            relative_folders[parent] = os.path.relpath(os.path.realpath(parent), root)
        relative_path = PurePosixPath(Path(relative_folders[parent], name).as_posix())
        if relative_path.parts[0] == os.pardir:
            raise InputError(f"'{path}' is outside of {root}: pass the folder that contains all items (--root)")
        reason = unsafe_path(str(relative_path))
        if reason:
            raise InputError(f"'{path}' cannot be in a bundle: {reason}")
        return str(relative_path)

    table = catalog.table
    for column in catalog.path_columns:
        paths = pa.array([make_relative(path) for path in table.column(column).to_pylist()], pa.string())
        table = table.set_column(table.column_names.index(column), column, paths)
    return table


def _versions() -> dict[str, str]:
    """Return the versions of Python, Shotproof and the packages that affect results."""
    versions = {"python": platform.python_version(), "shotproof": __version__}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
