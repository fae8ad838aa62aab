"""Bundle: the task sets of a run, with everything needed to run them on another encoder, in one zip file.

Its manifest lists every file with its SHA-256. No part of a bundle is used before all of it has been verified.
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
from shotproof.core.errors import InputError, Mismatch, error_prefix
from shotproof.core.plain_values import plain, typed
from shotproof.core.storage.archives import Archive, open_archive, unsafe_path
from shotproof.core.storage.files import parse_json
from shotproof.tasks.taskset import TaskSet

KIND, FORMAT = "bundle", 1
MANIFEST = "manifest.json"
MAX_MANIFEST_SIZE = 2**24  # bytes
FileKind = Literal["catalog", "attributes", "tasks", "card", "data", "text"]
_READERS: dict[str, Any] = {"catalog": Catalog, "attributes": Attributes, "tasks": TaskSet}


@dataclass(frozen=True)
class BundledFile:
    """File of a bundle.

    kind: kind of its content
    sha256, bytes: hash and size of the file
    digest: digest of its content, as computed by its reader
    """

    kind: FileKind
    sha256: str
    bytes: int
    digest: str | None = None


@dataclass(frozen=True)
class Bundle:
    """Manifest of a bundle.

    name: name of the data set
    license, citation: license and citation of the data, which is not in the bundle
    files: all other files of the zip, by name
    paths_from: name of the folder that the paths of the catalog start from
    methods: methods to evaluate; the bundle's card is of the first
    metric, intervals: metric and intervals of statements
    versions: versions of the software that wrote the bundle
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
        """Return a short digest of all files."""
        files = sorted((name, file.sha256) for name, file in self.files.items())
        return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:12]

    @classmethod
    def read(cls, path: str | Path) -> Bundle:
        """Read the manifest of a bundle, and verify every file against it.

        Raises:
            InputError: the file is not a bundle, or does not match its manifest; the message names the file.
        """
        with cls.unpacked(path) as (bundle, _):
            return bundle

    @classmethod
    @contextlib.contextmanager
    def unpacked(cls, path: str | Path) -> Iterator[tuple[Bundle, Path]]:
        """Verify a bundle, and yield it with a temporary folder that contains its files.

        Raises:
            InputError: as in `read`.
        """
        label = f"bundle {path}"
        with tempfile.TemporaryDirectory(prefix="shotproof-") as temporary:
            folder = Path(temporary)
            with open_archive(Path(path), label) as archive:
                if MANIFEST not in archive.members:
                    raise InputError(f"{label} has no {MANIFEST}: expected a file written by shotproof share bundle")
                content = parse_json(archive.read(MANIFEST, MAX_MANIFEST_SIZE), f"{label}, {MANIFEST}")
                with error_prefix(f"{label}, {MANIFEST}: "):
                    bundle = cls.from_json(content)
                bundle._check_files(archive)
                archive.unpack(folder)
            with error_prefix(f"{label}: "):
                bundle._check_contents(folder)
            yield bundle, folder

    @classmethod
    def from_json(cls, content: Any) -> Bundle:
        """Build a bundle from the output of `to_json`.

        Raises:
            InputError: the content is not a manifest, has a newer format, or a value has the wrong type.
        """
        if not isinstance(content, Mapping) or content.get("kind") != KIND:
            raise InputError(f'expected the manifest of a bundle, with "kind": "{KIND}"')
        if content.get("format") != FORMAT:
            raise InputError(f"format: expected {FORMAT}, found {content.get('format')!r}: made by another version")
        bundle: Bundle = typed(
            {key: value for key, value in content.items() if key not in ("kind", "format")}, cls, strict=True
        )
        return bundle

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values, including every field."""
        return {"kind": KIND, "format": FORMAT, **plain(self, complete=True)}

    def to_text(self) -> str:
        """Return the text of the manifest file."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def names(self, kind: FileKind) -> list[str]:
        """Return the names of the files of one kind, in the order of the run."""
        return [name for name, file in self.files.items() if file.kind == kind]

    @property
    def digests(self) -> dict[str, str]:
        """Return the digests of the task sets, by file name."""
        return {name: self.files[name].digest or "" for name in self.names("tasks")}

    def _check_files(self, archive: Archive) -> None:
        """Check the files of the zip against the manifest."""
        archived = set(archive.members) - {MANIFEST}
        for name in sorted(archived ^ set(self.files)):
            problem = "is in the manifest, but not in the zip" if name in self.files else "is not in the manifest"
            raise Mismatch(f"{archive.subject}: {name!r} {problem}")
        for name, file in self.files.items():
            size = archive.members[name].file_size
            if size != file.bytes:
                raise Mismatch(f"{archive.subject}, '{name}': the manifest states {file.bytes:,} bytes, found {size:,}")
            sha256 = archive.sha256(name)
            if sha256 != file.sha256:
                raise Mismatch(
                    f"{archive.subject}, '{name}': the manifest states SHA-256 {file.sha256}, found {sha256}"
                )

    def _check_contents(self, folder: Path) -> None:
        """Check the contents of the files against the manifest and against each other."""
        if len(self.names("catalog")) != 1 or not self.names("tasks") or len(self.names("card")) > 1:
            raise InputError("expected one catalog, at least one task set and at most one card")
        catalog = Catalog.read(folder / self.names("catalog")[0])
        for kind, reader in _READERS.items():
            for name in self.names(kind):  # type: ignore[arg-type]
                content = catalog if kind == "catalog" else reader.read(folder / name)
                if content.digest != self.files[name].digest:
                    raise Mismatch(
                        f"'{name}': the manifest states digest {self.files[name].digest}, found {content.digest}"
                    )
                if isinstance(content, TaskSet) and content.record.source("catalog") != catalog.digest:
                    raise Mismatch(
                        f"'{name}': its tasks were drawn from another catalog, {content.record.source('catalog')}"
                    )
        for column in catalog.path_columns:
            for path in catalog.table.column(column).to_pylist():
                reason = unsafe_path(path) if path else None
                if reason:
                    raise InputError(f"catalog, column '{column}', {path[:100]!r}: {reason}")
        for name in self.names("card"):
            known_digests = set(self.digests.values())
            for axis in Card.read(folder / name).axes:
                for tasks in (axis.tasks, axis.reference, axis.placebo):
                    if tasks is not None and tasks.digest not in known_digests:
                        raise Mismatch(f"'{name}', {axis.name}: its tasks, {tasks.digest}, are not in the bundle")
