"""A bundle: the task sets of a run, with all that it takes to run them on another encoder, in one zip.

Its manifest names every file with its SHA-256. Nothing of a bundle is used before all of it was seen to be true.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError, Mismatch, placed
from shotproof.core.plain_values import plain, typed
from shotproof.core.storage.archives import Archive, open_archive, unsafe_path
from shotproof.core.storage.files import parse_json
from shotproof.tasks.taskset import TaskSet

KIND, FORMAT = "bundle", 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 2**24  # bytes
FileKind = Literal["catalog", "attributes", "tasks", "card", "data", "text"]
_READERS: dict[str, Any] = {"catalog": Catalog, "attributes": Attributes, "tasks": TaskSet}


@dataclass(frozen=True)
class BundledFile:
    """A file of a bundle; digest: of what it holds, as its readers give it."""

    kind: FileKind
    sha256: str
    bytes: int
    digest: str | None = None


@dataclass(frozen=True)
class Bundle:
    """The manifest of a bundle.

    name: of the data set; license, citation: of the data, which is not in the bundle
    files: all others of the zip, by name
    paths_from: the folder that the catalog's paths start from, by its name alone
    methods: that are evaluated, the one that the bundle's card is of first
    metric, intervals: what statements are by
    versions: of what made it
    """

    name: str
    files: Mapping[str, BundledFile]
    methods: tuple[str, ...]
    paths_from: str = ""
    metric: str = "acc"
    intervals: tuple[str, ...] = ()
    license: str | None = None
    citation: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A short digest of all its files."""
        files = sorted((name, file.sha256) for name, file in self.files.items())
        return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:12]

    @classmethod
    def read(cls, path: str | Path) -> Bundle:
        """Read the manifest of a bundle, and verify all that it says.

        Raises:
            InputError: it is no bundle, or not as its manifest says; the message names the file.
        """
        with cls.unpacked(path) as (bundle, _):
            return bundle

    @classmethod
    @contextlib.contextmanager
    def unpacked(cls, path: str | Path) -> Iterator[tuple[Bundle, Path]]:
        """Verify a bundle, and give it with a temporary folder that has its files.

        Raises:
            InputError: as `read` does.
        """
        what = f"bundle {path}"
        with tempfile.TemporaryDirectory(prefix="shotproof-") as temporary:
            folder = Path(temporary)
            with open_archive(Path(path), what) as archive:
                if MANIFEST not in archive.members:
                    raise InputError(f"{what} has no {MANIFEST}: expected one that shotproof share bundle has written")
                content = parse_json(archive.read(MANIFEST, LARGEST_MANIFEST), f"{what}, {MANIFEST}")
                with placed(f"{what}, {MANIFEST}: "):
                    bundle = cls.from_json(content)
                bundle._check_files(archive)
                archive.unpack(folder)
            with placed(f"{what}: "):
                bundle._check_contents(folder)
            yield bundle, folder

    @classmethod
    def from_json(cls, content: Any) -> Bundle:
        """From what `to_json` gave.

        Raises:
            InputError: it is no manifest, of a newer format, or a value is of another type.
        """
        if not isinstance(content, Mapping) or content.get("kind") != KIND:
            raise InputError(f'expected the manifest of a bundle, with "kind": "{KIND}"')
        if content.get("format") != FORMAT:
            raise InputError(f"format: expected {FORMAT}, found {content.get('format')!r}: made by another version")
        read: Bundle = typed(
            {key: one for key, one in content.items() if key not in ("kind", "format")}, cls, strict=True
        )
        return read

    def to_json(self) -> dict[str, Any]:
        """As plain values; every field is there."""
        return {"kind": KIND, "format": FORMAT, **plain(self, whole=True)}

    def to_text(self) -> str:
        """As the manifest's file has it."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def names(self, kind: FileKind) -> list[str]:
        """The files of one kind, in the order of the run."""
        return [name for name, file in self.files.items() if file.kind == kind]

    @property
    def digests(self) -> dict[str, str]:
        """The digests of the task sets, by file."""
        return {name: self.files[name].digest or "" for name in self.names("tasks")}

    def _check_files(self, archive: Archive) -> None:
        """Hold the files of the zip against the manifest."""
        given = set(archive.members) - {MANIFEST}
        for name in sorted(given ^ set(self.files)):
            lie = "is not in the zip, but in the manifest" if name in self.files else "is not in the manifest"
            raise Mismatch(f"{archive.what}: {name!r} {lie}")
        for name, file in self.files.items():
            size = archive.members[name].file_size
            if size != file.bytes:
                raise Mismatch(f"{archive.what}, '{name}': the manifest says {file.bytes:,} bytes, it has {size:,}")
            found = archive.sha256(name)
            if found != file.sha256:
                raise Mismatch(f"{archive.what}, '{name}': the manifest says SHA-256 {file.sha256}, it has {found}")

    def _check_contents(self, folder: Path) -> None:
        """Hold what the files hold against the manifest, and against each other."""
        if len(self.names("catalog")) != 1 or not self.names("tasks") or len(self.names("card")) > 1:
            raise InputError("expected one catalog, at least one task set and at most one card")
        catalog = Catalog.read(folder / self.names("catalog")[0])
        for kind, reader in _READERS.items():
            for name in self.names(kind):  # type: ignore[arg-type]
                read = catalog if kind == "catalog" else reader.read(folder / name)
                if read.digest != self.files[name].digest:
                    raise Mismatch(
                        f"'{name}': the manifest says digest {self.files[name].digest}, it has {read.digest}"
                    )
                if isinstance(read, TaskSet) and read.record.source("catalog") != catalog.digest:
                    raise Mismatch(f"'{name}': its tasks are of another catalog, {read.record.source('catalog')}")
        for column in catalog.path_columns:
            for path in catalog.table.column(column).to_pylist():
                reason = unsafe_path(path) if path else None
                if reason:
                    raise InputError(f"catalog, column '{column}', {path[:100]!r}: {reason}")
        for name in self.names("card"):
            known = set(self.digests.values())
            for axis in Card.read(folder / name).axes:
                for tasks in (axis.tasks, axis.reference, axis.placebo):
                    if tasks is not None and tasks.digest not in known:
                        raise Mismatch(f"'{name}', {axis.name}: its tasks, {tasks.digest}, are not in the bundle")
