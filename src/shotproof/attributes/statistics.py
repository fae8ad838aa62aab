"""Statistics of attributes: FewSTAB's Table 2, and the accuracy of one detector against another (Eq. 9)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData


@dataclass(frozen=True)
class AttributeStatistics:
    """Statistics of the words of a catalog's items, or of one split of it.

    `distinct` and `per_class` are the two figures of Table 2: the number of words that any item has, and the number
    that any item of a class has, averaged over classes. `per_item` is the mean number of words over the items that
    something is known about; nothing is known about `unknown` items. `words` has one row per word, the most frequent
    first: `attribute`, the number of `items` and of `classes` that have it, and the `share` of items.
    """

    items: int
    unknown: int
    classes: int
    distinct: int
    per_class: float
    per_item: float
    words: pa.Table


def attribute_statistics(attributes: Attributes, catalog: Catalog, split: str | None = None) -> AttributeStatistics:
    """Compute the statistics of Table 2 over the items of one split, or of the whole catalog if none is given."""
    if split is not None:
        catalog = catalog.in_split(split)
    if not len(catalog):
        raise InputError("the catalog has no items")
    item_words = attributes.of(catalog)
    labels = pc.fill_null(catalog.table.column("label"), "").combine_chunks().dictionary_encode()
    item_labels = labels.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pair_labels = np.repeat(item_labels, np.diff(item_words.matrix.indptr))
    n_words, n_labels = len(item_words.words), len(labels.dictionary)
    pair_words = item_words.matrix.indices
    class_words = np.unique(pair_labels * max(n_words, 1) + pair_words)  # a class and one of its words, as one number
    items_per_word = np.bincount(pair_words, minlength=n_words)
    classes_per_word = np.bincount(class_words % max(n_words, 1), minlength=n_words)
    order = np.lexsort([np.arange(n_words), -items_per_word])
    known_items = int(item_words.known.sum())
    return AttributeStatistics(
        items=len(catalog),
        unknown=len(catalog) - known_items,
        classes=n_labels,
        distinct=n_words,
        per_class=len(class_words) / n_labels,
        per_item=len(pair_words) / max(known_items, 1),
        words=pa.table(
            {
                "attribute": pa.array([item_words.words[code] for code in order], pa.string()),
                "items": items_per_word[order],
                "classes": classes_per_word[order],
                "share": items_per_word[order] / len(catalog),
            }
        ),
    )


@dataclass(frozen=True)
class DetectionAccuracy:
    """FewSTAB's Eq. 9, in percent, averaged over `items`; `undefined` and `unpaired` items are left out."""

    accuracy: float
    items: int
    undefined: int
    unpaired: int


def detection_accuracy(
    query: Attributes, reference: Attributes, items: Iterable[str] | None = None
) -> DetectionAccuracy:
    """Compute the mean share of an item's reference words that the query also has (FewSTAB, Eq. 9), in percent.

    The equation divides by the number of reference words, so it is undefined for an item without any: such an item is
    left out and counted as `undefined`. An item that one side lacks, or knows nothing about, is left out and counted
    as `unpaired`.

    Args:
        query: attributes to assess
        reference: attributes that are assumed to be true
        items: items to average over, e.g. those of the test split; None means all

    Returns:
        The accuracy, and the numbers of items.

    Raises:
        InsufficientData: no item is known to both sides and has a reference word.

    Example:
        >>> query = Attributes.from_words({"a": ["tree"], "b": ["sky", "sea"]})
        >>> reference = Attributes.from_words({"a": ["tree", "branch"], "b": ["sea"]})
        >>> detection_accuracy(query, reference).accuracy
        75.0
    """
    query_words, reference_words = query.to_words(), reference.to_words()
    shares = []
    undefined = unpaired = 0
    for item in {**reference_words, **query_words} if items is None else items:
        detected, expected = query_words.get(item), reference_words.get(item)
        if detected is None or expected is None:
            unpaired += 1
        elif not expected:
            undefined += 1
        else:
            distinct = set(expected)
            shares.append(100 * len(distinct.intersection(detected)) / len(distinct))
    if not shares:
        raise InsufficientData(
            f"no item to compare: {unpaired} are not known to both sides, {undefined} have no words in the reference"
        )
    return DetectionAccuracy(math.fsum(shares) / len(shares), len(shares), undefined, unpaired)
