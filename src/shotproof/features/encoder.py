"""The contract of an encoder, the registered ones, and `encode`, which runs one on a catalog."""

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

SHOWN_ITEMS = 5


class Encoder(Component, ABC):
    """Turns every item of a catalog into a vector, or into a local map.

    pretrained_on: the list of classes that its weights were trained on, `imagenet`; a note then says which classes of
        a catalog have such names
    """

    kind = "encoder"
    pretrained_on: ClassVar[str | None] = None

    def check(self, catalog: Catalog) -> None:
        """Refuse what it could not do with these items, before anything is made; quick."""
        self.require_extras()

    @abstractmethod
    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        """One feature per item, in the order of the catalog.

        An item whose file cannot be read raises UnreadableItem; with `on_error` skip, it is left out and named in the
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
    """Return the features of all items of a catalog.

    Args:
        catalog: the items
        encoder: a spelling such as `hf:NAME(pooling='cls')`, a table such as {"name": "lite0", "maps": True}, or an
            encoder
        on_error: what to do about an item whose file cannot be read: `raise`, or `skip`, which leaves it out, with a
            warning, and names it in the record
        runtime: how to compute: workers, device, batch size, and the cache, which keeps features by content

    Returns:
        The features, in the order of the catalog. Their `tally` says how many were encoded anew.

    Raises:
        UnknownName: no encoder has this name.
        UnreadableItem: the file of an item cannot be read.
        InputError: an option is wrong, or the encoder cannot take such items.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=2, items=3).write(tempfile.mkdtemp())
        >>> encode(catalog, "pixels(size=4)", runtime=sp.runtime(cache=None)).array.shape
        (6, 48)
    """
    if on_error not in get_args(OnError):
        raise UnknownName("value of on_error", str(on_error), get_args(OnError))
    made = encoders.make(encoder)
    with resolve(runtime) as current:
        features = made.encode(catalog, current, on_error)
    return recorded(features, made, catalog)


def recorded(features: Features, encoder: Encoder, catalog: Catalog) -> Features:
    """Features with what they were made by and from; a warning names items that were left out."""
    if features.record.skipped:
        skipped = features.record.skipped
        named = ", ".join(skipped[:SHOWN_ITEMS]) + (", ..." if len(skipped) > SHOWN_ITEMS else "")
        logger.warning("%d of %d items are left out, as they cannot be read: %s", len(skipped), len(catalog), named)
    sources = {"catalog": Source(catalog.digest, catalog.record.name), **sources_of(encoder)}
    seen = None if encoder.pretrained_on is None else check_list(encoder.pretrained_on)
    record = replace(features.record, encoder=Maker.of(encoder), sources=sources, pretrained_on=seen)
    return replace(features, record=record)
