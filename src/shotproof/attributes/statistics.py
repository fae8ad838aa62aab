"""What a detector found, in figures: FewSTAB's Table 2, and the accuracy of one detector against another (Eq. 9)."""

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
    """The words of the items of a catalog, or of one split of it.

    `distinct` and `per_class` are the two figures of Table 2: how many words hold of any item, and how many hold of any
    item of a class, in the mean over classes. `per_item` is the mean over the items of which something is known;
    of `unknown` nothing is. `words` has one row per word, the most frequent first: `attribute`, the number of `items`
    and of `classes` that hold it, and its `share` of the items.
    """

    items: int
    unknown: int
    classes: int
    distinct: int
    per_class: float
    per_item: float
    words: pa.Table


def attribute_statistics(attributes: Attributes, catalog: Catalog, split: str | None = None) -> AttributeStatistics:
    """Return the statistics of Table 2 for the items of one split, or, without one, of the whole catalog."""
    if split is not None:
        catalog = catalog.in_split(split)
    if not len(catalog):
        raise InputError("the catalog has no items")
    held = attributes.of(catalog)
    labels = pc.fill_null(catalog.table.column("label"), "").combine_chunks().dictionary_encode()
    label_of_item = labels.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    label_of_pair = np.repeat(label_of_item, np.diff(held.matrix.indptr))
    n_words, n_labels = len(held.words), len(labels.dictionary)
    word_of_pair = held.matrix.indices
    in_class = np.unique(label_of_pair * max(n_words, 1) + word_of_pair)  # a class and a word it holds, as one number
    items = np.bincount(word_of_pair, minlength=n_words)
    classes = np.bincount(in_class % max(n_words, 1), minlength=n_words)
    order = np.lexsort([np.arange(n_words), -items])
    known = int(held.known.sum())
    return AttributeStatistics(
        items=len(catalog),
        unknown=len(catalog) - known,
        classes=n_labels,
        distinct=n_words,
        per_class=len(in_class) / n_labels,
        per_item=len(word_of_pair) / max(known, 1),
        words=pa.table(
            {
                "attribute": pa.array([held.words[code] for code in order], pa.string()),
                "items": items[order],
                "classes": classes[order],
                "share": items[order] / len(catalog),
            }
        ),
    )


@dataclass(frozen=True)
class DetectionAccuracy:
    """FewSTAB's Eq. 9, in percent, and what it was averaged over: `items`; `undefined` and `unpaired` were left out."""

    accuracy: float
    items: int
    undefined: int
    unpaired: int


def detection_accuracy(
    query: Attributes, reference: Attributes, items: Iterable[str] | None = None
) -> DetectionAccuracy:
    """Return the mean share of the reference's words of an item that the query finds too (FewSTAB, Eq. 9), in percent.

    The equation divides by the number of the reference's words, so that an item to which the reference gives none has
    no accuracy: it is left out and counted as `undefined`. An item that one of the two lacks, or of which it knows
    nothing, is left out and counted as `unpaired`.

    Args:
        query: the attributes to be judged
        reference: those that are taken for true
        items: of which items, e.g. those of the test split; None is all

    Returns:
        The accuracy, and the numbers of items.

    Raises:
        InsufficientData: no item has a word of the reference and is known to both.

    Example:
        >>> query = Attributes.from_words({"a": ["tree"], "b": ["sky", "sea"]})
        >>> reference = Attributes.from_words({"a": ["tree", "branch"], "b": ["sea"]})
        >>> detection_accuracy(query, reference).accuracy
        75.0
    """
    found, expected = query.to_words(), reference.to_words()
    shares = []
    undefined = unpaired = 0
    for item in {**expected, **found} if items is None else items:
        ours, theirs = found.get(item), expected.get(item)
        if ours is None or theirs is None:
            unpaired += 1
        elif not theirs:
            undefined += 1
        else:
            wanted = set(theirs)
            shares.append(100 * len(wanted.intersection(ours)) / len(wanted))
    if not shares:
        raise InsufficientData(
            f"no item to compare: {unpaired} are known to one side only, {undefined} have no words in the reference"
        )
    return DetectionAccuracy(math.fsum(shares) / len(shares), len(shares), undefined, unpaired)
