"""Base class of detectors that take words from captions, and captioning, which caches each image's caption at once."""

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
"""Takes the index of a file and its caption, or the error if it has none; called in any order."""


@dataclass(frozen=True, kw_only=True)
class CaptionDetector(Detector):
    """Detector whose words are the nouns and adjectives of captions."""

    tagger: str = option("hanta", TAGGER_HELP, choices=TAGGERS)
    words: Form = option("single", FORM_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tagger", available_tagger(self.tagger))  # the record names the tagger itself

    def extras(self) -> Mapping[str, str]:
        """Return the package that the tagger needs."""
        return TAGGER_EXTRAS[self.tagger]

    def words_of(self, captions: Mapping[str, Iterable[str] | None]) -> Words:
        """Return the words of each item's captions; None stays None."""
        return words_of_captions(captions, make_tagger(self.tagger, self.words))

    def caption(
        self,
        catalog: Catalog,
        settings: Mapping[str, Any],
        caption: Callable[[Sequence[Path], Keep], None],
        runtime: Runtime,
    ) -> Words:
        """Generate a caption for each item and return its words. An item without a caption gets None and a warning.

        Args:
            catalog: items with images
            settings: everything that a caption depends on besides the image
            caption: function that captions the images that are not in the cache, and calls its second argument with
                each caption as soon as it has it
            runtime: runtime settings. Its cache stores captions by the content of the image, so that an interrupted
                run can be resumed
        """
        make_tagger(self.tagger, self.words)  # fails here, before any captioning, if it is not installed
        items = catalog.items
        digests = file_digests(catalog.paths, runtime, on_error="skip").to_pylist()
        fingerprint = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:32]
        store = Store(runtime.cache and runtime.cache / "captions" / fingerprint)
        captions: dict[str, str] = store.lookup(digests)
        rows_by_content: dict[str, list[int]] = {}
        for row, digest in enumerate(digests):
            if digest not in captions:
                rows_by_content.setdefault(digest or f"unreadable {row}", []).append(row)
        contents = list(rows_by_content)

        def keep(index: int, result: str | Exception) -> None:
            if isinstance(result, str):
                captions[contents[index]] = result
                writer.add_value(contents[index], result)
                return
            for row in rows_by_content[contents[index]]:
                logger.warning("item '%s' is skipped: %s", items[row], result)

        with Writer(store, CAPTIONS_PER_SEGMENT) as writer:
            if contents:
                caption([catalog.paths[rows_by_content[content][0]] for content in contents], keep)
        return self.words_of(
            {
                item: [captions[digest]] if digest in captions else None
                for item, digest in zip(items, digests, strict=True)
            }
        )
