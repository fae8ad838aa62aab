"""Data for benchmarks: words like those of captions of miniImageNet, and the birds and sounds if they are installed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog


def caption_like(
    classes: int = 20,
    items: int = 600,
    vocabulary: int = 1111,
    words_per_class: int = 490,
    words_per_item: tuple[int, int] = (3, 8),
) -> tuple[Catalog, Attributes]:
    """Draw classes x items with as many words as ViT-GPT2's captions have (FewSTAB, Table 2); few are frequent."""
    rng = np.random.default_rng(0)
    names = pa.array([f"word{w:05d}" for w in range(vocabulary)])
    share = 1 / (np.arange(words_per_class) + 3.0)
    total = classes * items
    counts = rng.integers(words_per_item[0], words_per_item[1] + 1, size=total)
    lists = []
    for start in range(0, total, items):
        class_words = rng.choice(vocabulary, words_per_class, replace=False)
        # The k largest of these keys are k draws without replacement, weighed by the share (Efraimidis and Spirakis).
        keys = np.log(rng.random((items, words_per_class))) / share
        ranked = class_words[np.argsort(-keys, axis=1)[:, : words_per_item[1]]]
        is_held = np.arange(words_per_item[1]) < counts[start : start + items, None]
        lists.append(ranked[is_held])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    words = pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(np.concatenate(lists))))
    ids = [f"{c:04d}/{i:06d}" for c in range(classes) for i in range(items)]
    labels = np.repeat([f"class{c:04d}" for c in range(classes)], items)
    catalog = Catalog(pa.table({"item": ids, "path": ids, "label": labels, "split": np.repeat("test", total)}))
    return catalog, Attributes(pa.table({"item": ids, "attributes": words}))


def birds() -> Path | None:
    """Return the folder CUB_200_2011, in $SHOTPROOF_DATA or beside the project; None if it is missing."""
    return _data("CUB_200_2011")


def sounds() -> Path | None:
    """Return the folder ESC-50, likewise."""
    return _data("ESC-50")


def _data(name: str) -> Path | None:
    root = Path(os.environ.get("SHOTPROOF_DATA", "../shared/data")) / name
    return root if root.is_dir() else None
