"""Finding the item that a file made by somebody else means: by its identifier or by the path of its file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError

Parts = tuple[str, ...]


def items_named(names: Iterable[str], catalog: Catalog, what: str) -> list[str | None]:
    """The item of each name, None where the catalog has none.

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


def _parts(path: str) -> Parts:
    """The folders and the name of a path, without what leads up or to the root."""
    pure = PurePath(path)
    return tuple(part for part in pure.parts if part not in ("..", pure.anchor))


def _agree(one: Parts, other: Parts) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]
