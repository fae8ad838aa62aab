"""RemedyData that allows every remedy: contexts, words, changed items to fit on, copies, and a second encoder."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import changed_names
from shotproof.cures.class_parts import FIT, part_classes
from shotproof.cures.remedy import RemedyData
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.learners.method import make_method
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.cured_worlds import COLUMNS, METHOD, WAY, plain_catalog

CHANGE = "blur"


@cache
def remedy_data() -> RemedyData:
    """Twelve classes to fit and choose on and eight others; each background is a context."""
    world = ShapesWorld(classes=20, train_classes=12, items=24)
    catalog = plain_catalog(world.catalog(), [*COLUMNS, "background"])
    features, further = (encode(world.catalog(), DialEncoder(share, dimensions=24)) for share in (0.6, 0.2))
    parts = part_classes(catalog, "test", WAY)
    return RemedyData(
        parts.catalog,
        features,
        make_method(METHOD),
        further_features=[further],
        attributes=world.attributes(),
        context_column="background",
        changed=with_changed_items(features, parts.catalog.in_split(FIT)),
        copies=[CHANGE],
    )


def with_changed_items(features: Features, catalog: Catalog) -> Features:
    """The features of a catalog's items and of a changed version of each, which differs along many directions."""
    values = features.array[features.rows_of(catalog.item_column)]
    changed = values + np.random.default_rng(0).normal(size=values.shape)
    names = changed_names(catalog.item_column, pa.repeat(CHANGE, len(values)))
    items = [*catalog.items, *names.to_pylist()]
    return Features.from_array(items, np.concatenate([values, changed]), name=features.name)
