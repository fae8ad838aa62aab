"""Detectors: their interface, their registry, and the union of the words of several detectors."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnreadableItem, did_you_mean
from shotproof.core.options import Component
from shotproof.core.records import AttributesRecord, Maker, Source, sources_of
from shotproof.core.registry import Registry
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.tables import conform

Words = dict[str, list[str] | None]
# Applies a function to each item's file and yields its results in the order of the catalog.
Reader = Callable[[Catalog, Callable[[Path], Any]], Iterable[Any]]

MOST_LISTED = 5  # unreadable images that a warning names
IMAGES_PER_CHUNK = 64
logger = logging.getLogger("shotproof")


class Detector(Component, ABC):
    """Component that determines the words of each item of a catalog (the papers' psi)."""

    kind = "detector"

    def check(self, catalog: Catalog) -> None:
        """Check quickly, before any computation, that the detector can be used on this catalog."""
        self.require_extras()

    @abstractmethod
    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Determine the words of every item. An item that nothing can be known about gets None and a warning."""

    def sources(self) -> dict[str, Source]:
        """Return the sources of the words besides the items: the files that the options name."""
        return sources_of(self)


class ImageDetector(Detector):
    """Detector that looks at each image by itself, so that an encoder can share the decoded images with it."""

    @abstractmethod
    def words_of(self, path: Path) -> list[str]:
        """Return the words of an image, read with `open_image`. It runs in worker processes.

        Raises:
            UnreadableItem: the image cannot be read.
        """

    def detect(self, catalog: Catalog, runtime: Runtime, reader: Reader | None = None) -> Words:
        """Return the words of every image. An image that cannot be read gets None and a warning."""
        if not len(catalog):
            raise InputError("the catalog has no items")
        words: Words = {}
        unreadable: list[str] = []
        first_reason = ""
        if reader is None:
            outputs: Iterable[Any] = runtime.map(self.look, catalog.paths, title=self.name, chunk=IMAGES_PER_CHUNK)
        else:
            outputs = reader(catalog, self.look)
        for item, output in zip(catalog.items, outputs, strict=True):
            if isinstance(output, UnreadableItem):
                unreadable.append(item)
                first_reason = first_reason or str(output)
            words[item] = None if isinstance(output, UnreadableItem) else output
        if len(unreadable) == len(catalog):
            raise InputError(
                f"none of the {len(catalog)} images can be read, e.g. item '{unreadable[0]}': {first_reason}"
            )
        if unreadable:
            listed = ", ".join(unreadable[:MOST_LISTED]) + (", ..." if len(unreadable) > MOST_LISTED else "")
            logger.warning("%d of %d images cannot be read and get no words: %s", len(unreadable), len(catalog), listed)
        return words

    def look(self, path: Path) -> list[str] | UnreadableItem:
        """Return the words of an image, or why it cannot be read."""
        try:
            return self.words_of(path)
        except UnreadableItem as error:
            return error


detectors: Registry[Detector] = Registry(
    "detector",
    {
        "table": "shotproof.attributes.detectors.table:TableDetector",
        "captions": "shotproof.attributes.detectors.captions:CaptionsDetector",
        "vlm": "shotproof.attributes.detectors.vlm:VlmDetector",
        "endpoint": "shotproof.attributes.detectors.endpoint:EndpointDetector",
        "photometric": "shotproof.attributes.detectors.photometric:PhotometricDetector",
    },
)


def detect(
    catalog: Catalog,
    *chosen: str | Mapping[str, Any] | Detector,
    runtime: Runtime | None = None,
    reader: Reader | None = None,
) -> Attributes:
    """Determine the words of each item of a catalog with one or more detectors.

    Args:
        catalog: items to describe
        chosen: detectors, as spellings such as `captions(file='captions.csv')`, tables such as
            {"name": "captions", ...}, or objects
        runtime: runtime settings
        reader: reads the images for detectors that look at each image by itself; by default they are read for the
            words alone

    Returns:
        The union of the detectors' words for each item. An item is unknown only if it is unknown to every detector.

    Raises:
        UnknownName: no detector has this name.
        InputError: an option is invalid, or a file lacks items of the catalog.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"item": ["a", "b"], "path": ["a", "b"], "label": ["x", "x"], "split": ["test", "test"]}
        >>> catalog = Catalog(pa.table({**columns, "wet": [True, False]}))
        >>> detect(catalog, "table").to_words()
        {'a': ['wet'], 'b': []}
    """
    if not chosen:
        raise InputError(f"choose at least one detector: {', '.join(detectors.names())}")
    chosen_detectors = [detectors.make(choice) for choice in chosen]
    items = catalog.items
    union: dict[str, set[str] | None] = dict.fromkeys(items)
    with resolve(runtime) as current:
        for detector in chosen_detectors:
            if isinstance(detector, ImageDetector):
                words_by_item = detector.detect(catalog, current, reader)
            else:
                words_by_item = detector.detect(catalog, current)
            if words_by_item.keys() != union.keys():
                missing = [item for item in items if item not in words_by_item]
                problem = f"lacks '{missing[0]}'" if missing else "has items that the catalog lacks"
                raise InputError(
                    f"detector '{detector.name}' must return words for exactly the items of the catalog: "
                    f"its result {problem}"
                )
            for item, words in words_by_item.items():
                if words is not None:
                    union[item] = (union[item] or set()).union(words)
    sources = {"catalog": Source(catalog.digest, catalog.record.name)}
    for detector in chosen_detectors:
        sources |= detector.sources()
    makers = tuple(map(Maker.of, chosen_detectors))
    return Attributes.from_words(union, AttributesRecord(sources=sources, detectors=makers))


Parts = tuple[str, ...]


def match_items(names: Iterable[str], catalog: Catalog, title: str) -> list[str | None]:
    """Match each name to an item of the catalog; None if there is no such item.

    A name is an item's identifier, or a path that ends like the item's path or the other way around, so that
    `birds/a.jpg` and `/data/birds/a.jpg` mean the same file. A name that matches several items is an error.
    """
    items: list[str] = catalog.items
    identifiers = set(items)
    by_file_name: defaultdict[str, list[tuple[Parts, str]]] = defaultdict(list)
    for path, item in zip(catalog.table.column("path").to_pylist(), items, strict=True):
        parts = _parts(path)
        by_file_name[parts[-1] if parts else ""].append((parts, item))

    def find(name: str) -> str | None:
        if name in identifiers:
            return name
        parts = _parts(name)
        candidates = by_file_name.get(parts[-1], []) if parts else []
        exact = [item for path, item in candidates if path == parts]
        matches = exact or [item for path, item in candidates if _end_alike(path, parts)]
        if len(matches) > 1:
            raise InputError(
                f"{title}: '{name}' may be any of {len(matches)} items, e.g. '{matches[0]}' and '{matches[1]}': "
                "name items by their identifiers"
            )
        return matches[0] if matches else None

    return [find(name) for name in names]


def read_item_names(table: pa.Table, columns: Sequence[str], title: str) -> list[str]:
    """Return the names of items from the first of these columns that the table has; raise InputError if it has none."""
    column = next((name for name in columns if name in table.column_names), None)
    if column is None:
        expected = " or ".join(f"'{name}'" for name in columns)
        existing, hint = ", ".join(table.column_names[:8]) or "none", did_you_mean(columns[0], table.column_names)
        raise InputError(f"{title} names no items: expected a column {expected}, found {existing}{hint}")
    names: list[str] = conform(table, {column: "string"}, title).column(column).to_pylist()
    if not all(names):
        raise InputError(f"{title}, column '{column}' has an empty value")
    return names


def require_all_items(items: Container[str], catalog: Catalog, title: str, hint: str) -> None:
    """Raise InputError if a file has no row for some items of the catalog."""
    missing = [item for item in catalog.items if item not in items]
    if missing:
        raise InputError(f"{title} has no row for {len(missing)} of {len(catalog)} items, e.g. '{missing[0]}'{hint}")


def _parts(path: str) -> Parts:
    """Return the folders and the file name of a path, without the root and `..`."""
    pure = PurePath(path)
    return tuple(part for part in pure.parts if part not in ("..", pure.anchor))


def _end_alike(path: Parts, other: Parts) -> bool:
    shared = min(len(path), len(other))
    return path[-shared:] == other[-shared:]
