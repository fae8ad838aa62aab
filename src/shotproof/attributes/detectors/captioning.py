"""Captioning a catalog: each content once, kept in the cache as it comes, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.store import Store, Writer, file_digests

logger = logging.getLogger("shotproof")

CAPTIONS_PER_SEGMENT = 256

Keep = Callable[[int, str | Exception], None]
"""Takes the place of a file, and its caption or why it has none; in any order, as they come."""


def caption_catalog(
    catalog: Catalog, made_by: Mapping[str, Any], caption: Callable[[Sequence[Path], Keep], None], runtime: Runtime
) -> dict[str, list[str] | None]:
    """The caption of each item, as a list of one; None where there is none, which is reported by name.

    Args:
        catalog: items with images
        made_by: all that a caption depends on besides the image
        caption: captions the images that the cache has no caption of, and keeps each caption as it comes
        runtime: whose cache keeps captions, by the content of the image
    """
    items = catalog.items
    digests = file_digests(catalog.paths, runtime, on_error="skip").to_pylist()
    store = _caption_store(runtime.cache, made_by)
    captions: dict[str, str] = store.known(digests)
    rows_of: dict[str, list[int]] = {}
    for row, digest in enumerate(digests):
        if digest not in captions:
            rows_of.setdefault(digest or f"unreadable {row}", []).append(row)
    contents = list(rows_of)
    todo = [catalog.paths[rows_of[content][0]] for content in contents]

    def keep(place: int, found: str | Exception) -> None:
        if isinstance(found, str):
            captions[contents[place]] = found
            writer.add_value(contents[place], found)
            return
        for row in rows_of[contents[place]]:
            logger.warning("item '%s' is skipped: %s", items[row], found)

    with Writer(store, CAPTIONS_PER_SEGMENT) as writer:
        if todo:
            caption(todo, keep)
    return {
        item: [captions[digest]] if digest in captions else None for item, digest in zip(items, digests, strict=True)
    }


def _caption_store(cache: Path | None, made_by: Mapping[str, Any]) -> Store:
    if cache is None:
        return Store(None)
    fingerprint = json.dumps(made_by, sort_keys=True)
    return Store(cache / "captions" / hashlib.sha256(fingerprint.encode()).hexdigest()[:32])
