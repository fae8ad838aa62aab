"""What a detector is, which ones there are, and how the words of several come together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.options import Component
from shotproof.core.records import AttributesRecord, Maker, Source, sources_of
from shotproof.core.registry import Registry
from shotproof.core.runtime.runtime import Runtime, resolve

Words = dict[str, list[str] | None]


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


def detect(catalog: Catalog, *chosen: str | Mapping[str, Any] | Detector, runtime: Runtime | None = None) -> Attributes:
    """The words of each item of the catalog by the chosen detectors together.

    Args:
        catalog: the items
        chosen: spelled such as `captions(file='captions.csv')`, tables such as {"name": "captions", ...}, or detectors
        runtime: how to compute

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
