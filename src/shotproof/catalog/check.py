"""What would go wrong later with a catalog: small classes, broken or repeated files, doubtful labels."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.errors import UnreadableItem
from shotproof.images import open_image
from shotproof.processes import in_processes
from shotproof.progress import progress
from shotproof.sounds.clip import SOUND_EXTENSIONS, read_clip
from shotproof.sounds.mixture import Clip, Mixture, clips_of

FILES_PER_CHUNK = 64


@dataclass(frozen=True)
class Problem:
    """Something that would go wrong: its kind, the split, label or item, and a sentence about it."""

    kind: str
    where: str
    message: str


@dataclass(frozen=True)
class FileContent:
    """What one item's file holds: its SHA-256 (None where it is missing), and why it cannot be decoded."""

    sha256: str | None
    error: str | None


def check_catalog(
    catalog: Catalog, *, way: int, shot: int, query: int, read_files: bool = True, workers: int | None = None
) -> list[Problem]:
    """All problems of a catalog for tasks of this size; without `read_files`, no item's file is opened."""
    problems = [
        *_empty_labels(catalog),
        *_labels_in_several_splits(catalog),
        *_few_classes(catalog, way, shot + query),
        *_small_classes(catalog, shot, query),
    ]
    if read_files:
        contents = read_contents(clips_of(catalog), workers)
        problems += [*_broken_files(catalog, contents), *_repeated_files(catalog, contents)]
    return problems


def class_sizes(catalog: Catalog) -> pa.Table:
    """A row a class of a split: `split`, `label`, `items`, sorted; items with an empty label are left out."""
    named = catalog.table.filter(pc.invert(_is_empty(catalog.table.column("label"))))
    counts = named.group_by(["split", "label"]).aggregate([([], "count_all")])
    counts = counts.rename_columns(["split", "label", "items"])
    return counts.sort_by([("split", "ascending"), ("label", "ascending")])


def read_contents(paths: Sequence[Clip], workers: int | None = None) -> list[FileContent]:
    """The content of each file, or of a mixture that no file holds, read in worker processes (one a core)."""
    contents = []
    with progress("Reading files", len(paths)) as advance:
        for content in in_processes(_read_content, paths, workers or os.cpu_count() or 1, FILES_PER_CHUNK):
            contents.append(content)
            advance(1)
    return contents


def _read_content(path: Clip) -> FileContent:
    if isinstance(path, Mixture):
        try:
            return FileContent(hashlib.sha256(read_clip(path).tobytes()).hexdigest(), None)
        except UnreadableItem as error:
            return FileContent("", str(error))
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return FileContent(None, None)
    except OSError as error:
        return FileContent("", f"{path} cannot be read: {error.strerror or error}")
    try:
        if path.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS:
            read_clip(path, seconds=None)
        else:
            open_image(path)
    except UnreadableItem as error:
        return FileContent(sha256, str(error))
    return FileContent(sha256, None)


def _is_empty(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.equal(pc.utf8_trim_whitespace(labels), "")


def _empty_labels(catalog: Catalog) -> Iterator[Problem]:
    for item in catalog.table.filter(_is_empty(catalog.table.column("label"))).column("item").to_pylist():
        yield Problem("empty-label", item, "the item has no label")


def _labels_in_several_splits(catalog: Catalog) -> Iterator[Problem]:
    splits_of = defaultdict(list)
    for row in class_sizes(catalog).to_pylist():
        splits_of[row["label"]].append(f"{row['split']} ({row['items']})")
    for label, splits in sorted(splits_of.items()):
        if len(splits) > 1:
            yield Problem("label-in-several-splits", label, f"its items are in {' and '.join(splits)}")


def _few_classes(catalog: Catalog, way: int, needed: int) -> Iterator[Problem]:
    sizes = class_sizes(catalog)
    for split in catalog.splits or ["all"]:
        items = sizes.filter(pc.equal(sizes.column("split"), split)).column("items")
        usable = pc.sum(pc.greater_equal(items, needed)).as_py() or 0
        if usable < way:
            have = f"{usable} of {len(items)} classes have {needed} items or more"
            yield Problem("too-few-classes", split, f"{have}, {way}-way tasks need {way} such classes")


def _small_classes(catalog: Catalog, shot: int, query: int) -> Iterator[Problem]:
    sizes = class_sizes(catalog)
    for row in sizes.filter(pc.less(sizes.column("items"), shot + query)).to_pylist():
        message = f"{row['items']} items in split {row['split']}, tasks take {shot} + {query} of a class"
        yield Problem("small-class", row["label"], message)


def _broken_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    for item, path, content in zip(catalog.items.to_pylist(), catalog.paths, contents, strict=True):
        if content.sha256 is None:
            yield Problem("missing-file", item, f"{path} does not exist")
        elif content.error is not None:
            yield Problem("unreadable-file", item, content.error)


def _repeated_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    """One problem a content that several items share, those across labels first, then those across splits."""
    items_of = defaultdict(list)
    for row, content in zip(catalog.table.select(["item", "label", "split"]).to_pylist(), contents, strict=True):
        if content.sha256:
            items_of[content.sha256].append(row)
    found: dict[str, list[Problem]] = {"across-labels": [], "across-splits": [], "file": []}
    for same in items_of.values():
        if len(same) > 1:
            labels, splits = len({row["label"] for row in same}) > 1, len({row["split"] for row in same}) > 1
            kind = "across-labels" if labels else "across-splits" if splits else "file"
            others = ", ".join(f"{row['item']} ({row['label']}, {row['split']})" for row in same[1:])
            message = f"({same[0]['label']}, {same[0]['split']}) has the same content as {others}"
            found[kind].append(Problem(f"duplicate-{kind}", same[0]["item"], message))
    for problems in found.values():
        yield from problems
