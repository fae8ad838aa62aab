"""What would go wrong later with a catalog: small classes, broken or repeated files, doubtful labels."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.clips import clips_of
from shotproof.core.errors import UnreadableItem
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.files import file_sha256
from shotproof.media.clip import SOUND_EXTENSIONS, read_clip
from shotproof.media.images import open_image
from shotproof.media.mixture import Clip, Mixture

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
    catalog: Catalog,
    *,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    read_files: bool = True,
    runtime: Runtime | None = None,
) -> list[Problem]:
    """What would go wrong with a catalog.

    Args:
        catalog: what to check
        way, shot, query: the size of the tasks that it is for
        read_files: whether to open the items' files
        runtime: how to read them

    Returns:
        All problems; none where the list is empty.

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
        clips = clips_of(catalog)
        contents = list(resolve(runtime).map(_read_content, clips, what="reading files", chunk=FILES_PER_CHUNK))
        problems += [*_broken_files(catalog, contents), *_repeated_files(catalog, contents)]
    return problems


def class_sizes(catalog: Catalog) -> pa.Table:
    """One row per class of a split: `split`, `label`, `items`, sorted; items with an empty label are left out."""
    named = catalog.table.filter(pc.invert(_is_empty(catalog.table.column("label"))))
    counts = named.group_by(["split", "label"], use_threads=False).aggregate([([], "count_all")])
    counts = counts.rename_columns(["split", "label", "items"])
    return counts.sort_by([("split", "ascending"), ("label", "ascending")])


def _read_content(path: Clip) -> FileContent:
    if isinstance(path, Mixture):
        try:
            return FileContent(hashlib.sha256(read_clip(path).tobytes()).hexdigest(), None)
        except UnreadableItem as error:
            return FileContent("", str(error))
    try:
        sha256 = file_sha256(path)
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
        message = f"{counted(row['items'], 'item')} in split {row['split']}, tasks take {shot} + {query} per class"
        yield Problem("small-class", row["label"], message)


def _broken_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    for item, path, content in zip(catalog.items, catalog.paths, contents, strict=True):
        if content.sha256 is None:
            yield Problem("missing-file", item, f"{path} does not exist")
        elif content.error is not None:
            yield Problem("unreadable-file", item, content.error)


def _repeated_files(catalog: Catalog, contents: Sequence[FileContent]) -> Iterator[Problem]:
    """One problem per content that several items share, those across labels first, then those across splits."""
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
