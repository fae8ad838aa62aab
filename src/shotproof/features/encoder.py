"""Encoders: their interface, their registry, and `encode`, which runs one on a catalog."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, get_args

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import UnknownName
from shotproof.core.options import Component
from shotproof.core.records import Maker, Source, sources_of
from shotproof.core.registry import Registry
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import OnError
from shotproof.features.features import Features
from shotproof.features.pretraining.class_lists import check_list

logger = logging.getLogger("shotproof")

MOST_LISTED = 5


class Encoder(Component, ABC):
    """Component that turns each item of a catalog into a vector or a local map.

    pretrained_on: name of the list of classes that its weights were trained on, `imagenet`; a note then says which
        classes of a catalog have the same names
    """

    kind = "encoder"
    pretrained_on: ClassVar[str | None] = None

    def check(self, catalog: Catalog) -> None:
        """Check quickly, before any computation, that the encoder can be used on this catalog."""
        self.require_extras()

    @abstractmethod
    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        """Compute one feature per item, in the order of the catalog.

        An item whose file cannot be read raises UnreadableItem; with `on_error` skip, it is left out and listed in the
        record's `skipped`.
        """


encoders: Registry[Encoder] = Registry(
    "encoder",
    {
        "pixels": "shotproof.features.encoders.pixels:Pixels",
        "lite0": "shotproof.features.encoders.lite0:Lite0",
        "hf": "shotproof.features.encoders.hf:HuggingFace",
        "two-tower": "shotproof.features.encoders.two_tower:TwoTower",
        "two-tower-audio": "shotproof.features.encoders.two_tower:TwoTowerAudio",
        "onnx": "shotproof.features.encoders.onnx:Onnx",
        "file": "shotproof.features.encoders.file:FeatureFile",
        "logmel": "shotproof.features.encoders.logmel:LogMelStatistics",
        "hf-audio": "shotproof.features.encoders.hf_audio:HuggingFaceAudio",
        "birdnet": "shotproof.features.encoders.birdnet:BirdNet",
    },
)


def encode(
    catalog: Catalog,
    encoder: str | Mapping[str, Any] | Encoder,
    *,
    on_error: OnError = "raise",
    runtime: Runtime | None = None,
) -> Features:
    """Compute the features of all items of a catalog.

    Args:
        catalog: items to encode
        encoder: a spelling such as `hf:NAME(pooling='cls')`, a table such as {"name": "lite0", "maps": True}, or an
            encoder
        on_error: what to do with an item whose file cannot be read: `raise`, or `skip`, which leaves it out with a
            warning, and lists it in the record
        runtime: runtime settings: workers, device, batch size, and the cache, which stores features by content

    Returns:
        The features, in the order of the catalog. Their `tally` has the number that were computed rather than cached.

    Raises:
        UnknownName: no encoder has this name.
        UnreadableItem: the file of an item cannot be read.
        InputError: an option is invalid, or the encoder does not support such items.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=2, items=3).write(tempfile.mkdtemp())
        >>> encode(catalog, "pixels(size=4)", runtime=sp.runtime(cache=None)).array.shape
        (6, 48)
    """
    if on_error not in get_args(OnError):
        raise UnknownName("value of on_error", str(on_error), get_args(OnError))
    encoder = encoders.make(encoder)
    with resolve(runtime) as current:
        features = encoder.encode(catalog, current, on_error)
    return with_record(features, encoder, catalog)


def with_record(features: Features, encoder: Encoder, catalog: Catalog) -> Features:
    """Add the encoder and the sources to the features' record, and warn of items that were left out."""
    if features.record.skipped:
        skipped = features.record.skipped
        listed = ", ".join(skipped[:MOST_LISTED]) + (", ..." if len(skipped) > MOST_LISTED else "")
        logger.warning("%d of %d items cannot be read and are left out: %s", len(skipped), len(catalog), listed)
    sources = {"catalog": Source(catalog.digest, catalog.record.name), **sources_of(encoder)}
    class_list = None if encoder.pretrained_on is None else check_list(encoder.pretrained_on)
    record = replace(features.record, encoder=Maker.of(encoder), sources=sources, pretrained_on=class_list)
    return replace(features, record=record)
