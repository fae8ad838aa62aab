"""Check of a catalog for problems: small classes, unreadable or duplicate files, unusable masks, doubtful labels."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.item_files import item_files
from shotproof.catalog.usable_masks import unusable_masks
from shotproof.core.errors import UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.files import file_sha256
from shotproof.media.clip import is_sound, read_clip
from shotproof.media.images import open_image
from shotproof.media.unwritten import ItemFile

FILES_PER_CHUNK = 64


@dataclass(frozen=True)
class Problem:
    """Problem of a catalog: its kind, the split, label or item where it occurs, and a sentence about it."""

    kind: str
    where: str
    message: str


@dataclass(frozen=True)
class FileContent:
    """Content of an item's file: its SHA-256 (None if the file is missing), and the error if it cannot be decoded."""

    sha256: str | None
    error: str | None


def check_catalog(
    catalog: Catalog,
    *,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    read_files: bool = True,
    runtime: Runtime | None = None,
) -> list[Problem]:
    """Check a catalog for problems that would show up later.

    Args:
        catalog: catalog to check
        way, shot, query: size of the tasks that will be drawn from it
        read_files: whether to read the items' files
        runtime: runtime settings for reading

    Returns:
        The problems; an empty list if there are none.

    Example:
        >>> import pyarrow as pa
        >>> catalog = Catalog(pa.table({"item": ["a"], "path": ["a.png"], "label": ["jay"], "split": ["test"]}))
        >>> [problem.kind for problem in check_catalog(catalog, way=1, shot=1, query=1, read_files=False)]
        ['too-few-classes', 'small-class']
    """
    problems = [
        *_empty_labels(catalog),
        *_labels_in_several_splits(catalog),
        *_few_classes(catalog, way, shot + query),
        *_small_classes(catalog, shot, query),
    ]
    if read_files:
        clips = item_files(catalog)
        contents = list(resolve(runtime).map(_read_content, clips, title="reading files", chunk=FILES_PER_CHUNK))
        problems += [*_broken_files(catalog, contents), *_repeated_files(catalog, contents)]
        if MASK in catalog.path_columns:
            unusable = unusable_masks(catalog, runtime=runtime)
            problems += [Problem("unusable-mask", item, mask.reason) for item, mask in unusable.items()]
    return problems


def class_sizes(catalog: Catalog) -> pa.Table:
    """Count the items per class: one row per split and label (`split`, `label`, `items`), sorted; no empty labels."""
    labeled = catalog.table.filter(pc.invert(_is_empty(catalog.table.column("label"))))
    counts = labeled.group_by(["split", "label"], use_threads=False).aggregate([([], "count_all")])
    counts = counts.rename_columns(["split", "label", "items"])
    return counts.sort_by([("split", "ascending"), ("label", "ascending")])


def _read_content(path: ItemFile) -> FileContent:
    if not isinstance(path, Path):
        try:
            content = read_clip(path) if is_sound(path) else np.asarray(open_image(path))
            return FileContent(hashlib.sha256(content.tobytes()).hexdigest(), None)
        except UnreadableItem as error:
            return FileContent("", str(error))
    try:
        sha256 = file_sha256(path)
    except FileNotFoundError:
        return FileContent(None, None)
    except OSError as error:
        return FileContent("", f"{path} cannot be read: {error.strerror or error}")
    try:
        if is_sound(path):
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
    splits_by_label = defaultdict(list)
    for row in class_sizes(catalog).to_pylist():
        splits_by_label[row["label"]].append(f"{row['split']} ({row['items']})")
    for label, splits in sorted(splits_by_label.items()):
        if len(splits) > 1:
            yield Problem("label-in-several-splits", label, f"its items are in {' and '.join(splits)}")


def _few_classes(catalog: Catalog, way: int, needed: int) -> Iterator[Problem]:
    sizes = class_sizes(catalog)
    for split in catalog.splits or ["all"]:
        items = sizes.filter(pc.equal(sizes.column("split"), split)).column("items")
        usable = pc.sum(pc.greater_equal(items, needed)).as_py() or 0
        if usable < way:
            available = f"{usable} of {len(items)} classes have {needed} items or more"
            yield Problem("too-few-classes", split, f"{available}, {way}-way tasks need {way} such classes")


def _small_classes(catalog: Catalog, shot: int, query: int) -> Iterator[Problem]:
    sizes = class_sizes(catalog)
    for row in sizes.filter(pc.less(sizes.column("items"), shot + query)).to_pylist():
        message = f"{counted(row['items'], 'item')} in split {row['split']}, tasks take {shot} + {query} per class"
        yield Problem("small-class", row["label"], message)


def _broken_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    for item, path, content in zip(catalog.items, catalog.paths, contents, strict=True):
        if content.sha256 is None:
            yield Problem("missing-file", item, f"{path} does not exist")
        elif content.error is not None:
            yield Problem("unreadable-file", item, content.error)


def _repeated_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    """Yield a problem for each content that several items share: across labels first, then across splits."""
    rows_by_content = defaultdict(list)
    for row, content in zip(catalog.table.select(["item", "label", "split"]).to_pylist(), contents, strict=True):
        if content.sha256:
            rows_by_content[content.sha256].append(row)
    problems_by_kind: dict[str, list[Problem]] = {"across-labels": [], "across-splits": [], "file": []}
    for first, *others in rows_by_content.values():
        if others:
            labels = {row["label"] for row in (first, *others)}
            splits = {row["split"] for row in (first, *others)}
            kind = "across-labels" if len(labels) > 1 else "across-splits" if len(splits) > 1 else "file"
            listed = ", ".join(f"{row['item']} ({row['label']}, {row['split']})" for row in others)
            message = f"({first['label']}, {first['split']}) has the same content as {listed}"
            problems_by_kind[kind].append(Problem(f"duplicate-{kind}", first["item"], message))
    for problems in problems_by_kind.values():
        yield from problems
