"""MetaCoCo: concept folders with context folders in them, and the published rule for the split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import item_paths
from shotproof.core.errors import InputError

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class MetaCoCoLayout(Layout):
    """`concept/context/image`, optionally below split folders `train`, `val` and `test`.

    Without these, the concepts are split by the published rule: sorted by their number of samples, the first 64 of 100
    are for training, the next 20 for testing, the last 16 for validation.
    """

    dataset = "MetaCoCo"
    about = "concept folders with context folders in them (MetaCoCo), split 64/20/16 by size"
    citation = "Zhang et al., MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation, ICLR 2024"

    def read(self, root: Path) -> Catalog:
        """The items, each with its concept as label and its context."""
        paths, ignored = item_paths(root)
        above = int({path.split("/")[0] for path in paths} <= set(SPLITS))
        folders = [path.split("/")[:-1] for path in paths]
        for path, names in zip(paths, folders, strict=True):
            if len(names) < above + 2:
                raise InputError(f"{root}: '{path}' is not in a context folder: expected concept/context/image")
        concepts = [names[above] for names in folders]
        split_of = {} if above else published_split(concepts)
        columns = {
            "item": paths,
            "label": concepts,
            "split": [names[0] if above else split_of[names[0]] for names in folders],
            "context": [names[above + 1] for names in folders],
        }
        return sorted_catalog(columns, root, ignored_files=ignored)


def published_split(concepts: Sequence[str]) -> dict[str, str]:
    """{concept: split} from the concept of each sample: by number of samples, then by name.

    Of other numbers of concepts than 100, 64% are for training and 20% for testing, rounded, and the rest for
    validation.
    """
    sizes = Counter(concepts)
    ranked = sorted(sizes, key=lambda concept: (-sizes[concept], concept))
    train, test = ((share * len(ranked) + 50) // 100 for share in (64, 84))
    return {
        concept: "train" if rank < train else "test" if rank < test else "val" for rank, concept in enumerate(ranked)
    }
