"""What a detector is, which ones there are, and how the words of several come together."""

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
# Gives what a function says of each item's file, in the order of the catalog.
Reader = Callable[[Catalog, Callable[[Path], Any]], Iterable[Any]]

SHOWN = 5  # unreadable images that a warning names
IMAGES_PER_CHUNK = 64
logger = logging.getLogger("shotproof")


class Detector(Component, ABC):
    """Says which words hold of each item of a catalog (the papers' psi)."""

    kind = "detector"

    def check(self, catalog: Catalog) -> None:
        """Refuse what it could not do with these items, before anything is made; quick."""
        self.require_extras()

    @abstractmethod
    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """The words of every item; None where nothing can be known, which is reported by name and never fatal."""

    def sources(self) -> dict[str, Source]:
        """What the words were taken from besides the items: the files that its options name."""
        return sources_of(self)


class ImageDetector(Detector):
    """Says which words hold of an image by looking at it alone, so that others may look at it while it is decoded."""

    @abstractmethod
    def words_of(self, path: Path) -> list[str]:
        """Return the words of an image, which `open_image` reads; runs in worker processes.

        Raises:
            UnreadableItem: it cannot be read.
        """

    def detect(self, catalog: Catalog, runtime: Runtime, reader: Reader | None = None) -> Words:
        """Return the words of every image; None for one that cannot be read, with a warning."""
        if not len(catalog):
            raise InputError("the catalog has no items")
        words: Words = {}
        broken: list[str] = []
        reason = ""
        if reader is None:
            each: Iterable[Any] = runtime.map(self.look, catalog.paths, what=self.name, chunk=IMAGES_PER_CHUNK)
        else:
            each = reader(catalog, self.look)
        for item, seen in zip(catalog.items, each, strict=True):
            if isinstance(seen, UnreadableItem):
                broken.append(item)
                reason = reason or str(seen)
            words[item] = None if isinstance(seen, UnreadableItem) else seen
        if len(broken) == len(catalog):
            raise InputError(f"none of the {len(catalog)} images can be read, e.g. item '{broken[0]}': {reason}")
        if broken:
            named = ", ".join(broken[:SHOWN]) + (", ..." if len(broken) > SHOWN else "")
            logger.warning("%d of %d images cannot be read, and get no words: %s", len(broken), len(catalog), named)
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
    """Return the words of each item of the catalog by the chosen detectors together.

    Args:
        catalog: the items
        chosen: spelled such as `captions(file='captions.csv')`, tables such as {"name": "captions", ...}, or detectors
        runtime: how to compute
        reader: reads the images for detectors that look at each alone; None reads them for the words only

    Returns:
        Per item the union of their words; nothing is known of an item only where none of them knows anything of it.

    Raises:
        UnknownName: no detector has this name.
        InputError: an option is wrong, or a file lacks items of the catalog.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"item": ["a", "b"], "path": ["a", "b"], "label": ["x", "x"], "split": ["test", "test"]}
        >>> catalog = Catalog(pa.table({**columns, "wet": [True, False]}))
        >>> detect(catalog, "table").to_words()
        {'a': ['wet'], 'b': []}
    """
    if not chosen:
        raise InputError(f"choose at least one detector: {', '.join(detectors.names())}")
    made = [detectors.make(choice) for choice in chosen]
    items = catalog.items
    union: dict[str, set[str] | None] = dict.fromkeys(items)
    with resolve(runtime) as current:
        for detector in made:
            if isinstance(detector, ImageDetector):
                found = detector.detect(catalog, current, reader)
            else:
                found = detector.detect(catalog, current)
            if found.keys() != union.keys():
                lacking = [item for item in items if item not in found]
                example = f"lacks '{lacking[0]}'" if lacking else "has items that the catalog lacks"
                raise InputError(
                    f"detector '{detector.name}' must answer for every item of the catalog, no more: it {example}"
                )
            for item, words in found.items():
                if words is not None:
                    union[item] = (union[item] or set()).union(words)
    sources = {"catalog": Source(catalog.digest, catalog.record.name)}
    for detector in made:
        sources |= detector.sources()
    return Attributes.from_words(union, AttributesRecord(sources=sources, detectors=tuple(map(Maker.of, made))))


Parts = tuple[str, ...]


def items_named(names: Iterable[str], catalog: Catalog, what: str) -> list[str | None]:
    """Return the item of each name, None where the catalog has none.

    A name is an identifier, or a path that agrees with the item's own as far as both go, so that `birds/a.jpg` and
    `/data/birds/a.jpg` mean the same file. One that fits several items is an error.
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
        found = exact or [item for path, item in candidates if _agree(path, parts)]
        if len(found) > 1:
            raise InputError(
                f"{what}: '{name}' may be any of {len(found)} items, e.g. '{found[0]}' and '{found[1]}': "
                "name items by their identifiers"
            )
        return found[0] if found else None

    return [find(name) for name in names]


def named_column(table: pa.Table, columns: Sequence[str], what: str) -> list[str]:
    """Return the names of items, from the first of these columns that a table has; InputError where there are none."""
    column = next((name for name in columns if name in table.column_names), None)
    if column is None:
        listed = " or ".join(f"'{name}'" for name in columns)
        found, near = ", ".join(table.column_names[:8]) or "none", did_you_mean(columns[0], table.column_names)
        raise InputError(f"{what} names no items: expected a column {listed}, found {found}{near}")
    names: list[str] = conform(table, {column: "string"}, what).column(column).to_pylist()
    if not all(names):
        raise InputError(f"{what}, column '{column}' has an empty value")
    return names


def require_all_items(found: Container[str], catalog: Catalog, what: str, hint: str) -> None:
    """Refuse a file that has no row for some items of the catalog."""
    lacking = [item for item in catalog.items if item not in found]
    if lacking:
        raise InputError(f"{what} has no row for {len(lacking)} of {len(catalog)} items, e.g. '{lacking[0]}'{hint}")


def _parts(path: str) -> Parts:
    """Return the folders and the name of a path, without what leads up or to the root."""
    pure = PurePath(path)
    return tuple(part for part in pure.parts if part not in ("..", pure.anchor))


def _agree(one: Parts, other: Parts) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]
