"""What a detector is, which ones there are, and how the words of several come together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.registry import Registry

Words = dict[str, list[str] | None]


class Detector(ABC):
    """Says which words hold of each item of a catalog (the papers' psi)."""

    about: ClassVar[str]
    """One line for the list of detectors."""

    @abstractmethod
    def detect(self, catalog: Catalog) -> Words:
        """The words of every item; None where nothing can be known, which is reported by name and never fatal."""

    def parameters(self) -> dict[str, Any]:
        """What decides the words, for the metadata: a file is given by its name and digest, never by its folder."""
        return {}


detectors: Registry[Detector] = Registry(
    "detector",
    {
        "table": "shotproof.attributes.table:TableDetector",
        "captions": "shotproof.attributes.captions:CaptionsDetector",
        "vlm": "shotproof.attributes.vlm:VlmDetector",
        "endpoint": "shotproof.attributes.endpoint:EndpointDetector",
        "photometric": "shotproof.attributes.photometric:PhotometricDetector",
    },
)


def detect(catalog: Catalog, *chosen: str | Detector, **options: Any) -> Attributes:
    """The words of each item of the catalog by the chosen detectors together.

    A detector is given by its name or as an object; `options` go to the one that is given by name, if it is the only
    one. An item has the union of the detectors' words; nothing is known of it only where no detector knows anything.
    """
    if not chosen:
        raise InputError(f"choose at least one detector: {', '.join(detectors.names())}")
    if options and (len(chosen) > 1 or isinstance(chosen[0], Detector)):
        raise InputError(
            "options go with a single detector given by name: make the others first, e.g. TableDetector(...)"
        )
    union: Words = dict.fromkeys(catalog.items.to_pylist())
    made_by = []
    for choice in chosen:
        detector = choice if isinstance(choice, Detector) else detectors.make(choice, **options)
        found = detector.detect(catalog)
        for item, known in union.items():
            words = found[item]
            if words is not None:
                union[item] = [*(known or []), *words]
        name = choice if isinstance(choice, str) else type(choice).__name__
        made_by.append({"detector": name, **detector.parameters()})
    return Attributes.from_words(union, {"made_by": made_by, "from": {"catalog": catalog.digest}})
