"""Detectors of the words of captions, and captioning: each content once, kept in the cache as it comes."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.attributes.detector import Detector, Words
from shotproof.attributes.detectors.words import (
    FORM_HELP,
    TAGGER_EXTRAS,
    TAGGER_HELP,
    TAGGERS,
    Form,
    available_tagger,
    make_tagger,
    words_of_captions,
)
from shotproof.catalog.catalog import Catalog
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import Store, Writer, file_digests

logger = logging.getLogger("shotproof")

CAPTIONS_PER_SEGMENT = 256

Keep = Callable[[int, str | Exception], None]
"""Takes the place of a file, and its caption or why it has none; in any order, as they come."""


@dataclass(frozen=True, kw_only=True)
class CaptionDetector(Detector):
    """Takes the nouns and adjectives of an item's captions for its words."""

    tagger: str = option("hanta", TAGGER_HELP, choices=TAGGERS)
    words: Form = option("single", FORM_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tagger", available_tagger(self.tagger))  # the record says which it was

    def extras(self) -> Mapping[str, str]:
        """Return the tagger."""
        return TAGGER_EXTRAS[self.tagger]

    def words_of(self, captions: Mapping[str, Iterable[str] | None]) -> Words:
        """Return the words of each item's captions; None stays None."""
        return words_of_captions(captions, make_tagger(self.tagger, self.words))

    def caption(
        self,
        catalog: Catalog,
        made_by: Mapping[str, Any],
        caption: Callable[[Sequence[Path], Keep], None],
        runtime: Runtime,
    ) -> Words:
        """Return the words of a caption of each item; None where there is no caption, which is reported by name.

        Args:
            catalog: items with images
            made_by: all that a caption depends on besides the image
            caption: captions the images that the cache has no caption of, and keeps each caption as it comes
            runtime: whose cache keeps captions, by the content of the image, so that an interrupted run goes on
        """
        make_tagger(self.tagger, self.words)  # what is not installed is told before anything is captioned
        items = catalog.items
        digests = file_digests(catalog.paths, runtime, on_error="skip").to_pylist()
        fingerprint = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:32]
        store = Store(runtime.cache and runtime.cache / "captions" / fingerprint)
        captions: dict[str, str] = store.known(digests)
        rows_of: dict[str, list[int]] = {}
        for row, digest in enumerate(digests):
            if digest not in captions:
                rows_of.setdefault(digest or f"unreadable {row}", []).append(row)
        contents = list(rows_of)

        def keep(place: int, found: str | Exception) -> None:
            if isinstance(found, str):
                captions[contents[place]] = found
                writer.add_value(contents[place], found)
                return
            for row in rows_of[contents[place]]:
                logger.warning("item '%s' is skipped: %s", items[row], found)

        with Writer(store, CAPTIONS_PER_SEGMENT) as writer:
            if contents:
                caption([catalog.paths[rows_of[content][0]] for content in contents], keep)
        found = zip(items, digests, strict=True)
        return self.words_of({item: [captions[digest]] if digest in captions else None for item, digest in found})
