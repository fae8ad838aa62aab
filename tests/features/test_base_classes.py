"""The items of a base set with their classes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.features.base_classes import BaseClasses
from shotproof.features.features import Features

ITEMS = ["d", "a", "b @ 1", "c", "e"]
CATALOG = Catalog(
    pa.table(
        {
            "item": ITEMS,
            "path": ITEMS,
            "label": ["owl", "jay", "owl", "jay", None],
            "split": ["train", "train", "train", "test", "train"],
            "context": ["sea", None, "", "land", "sea"],
        }
    )
)
NAMES = ["a", "b @ 1", "b @ 1 @ blur", "c", "d", "d @ noise", "e"]
BASE = Features.from_array(NAMES, np.arange(14.0).reshape(7, 2))


def test_rows_have_the_classes_of_the_catalog() -> None:
    base = BaseClasses.of(BASE, CATALOG)
    assert base.items.to_pylist() == ["a", "b @ 1", "c", "d"]
    assert base.values[:, 0].tolist() == [0, 2, 6, 8]
    assert [base.labels[place] for place in base.classes] == ["jay", "owl", "jay", "owl"]
    assert base.contexts("context") == [None, None, "land", "sea"]
    assert BaseClasses.of(BASE, CATALOG, "train").items.to_pylist() == ["a", "b @ 1", "d"]


def test_changed_items_have_the_class_of_their_item() -> None:
    base = BaseClasses.of(BASE, CATALOG, changed=True)
    assert base.items.to_pylist() == ["a", "b @ 1", "b @ 1", "c", "d", "d"]
    assert base.changed.tolist() == [False, False, True, False, False, True]
    assert base.originals[1] == base.originals[2] != base.originals[3]
    some = base.select(base.changed)
    assert [some.labels[place] for place in some.classes] == ["owl", "owl"]
