"""Omniglot: handwritten characters of fifty alphabets, as Meta-Dataset divides them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import item_paths
from shotproof.catalog.layouts.published_splits import SPLIT_CITATION, checked
from shotproof.core.errors import InputError

SMALLEST = 5  # alphabets of the background set that Meta-Dataset validates on


@dataclass(frozen=True)
class OmniglotLayout(Layout):
    """`images_background/` and `images_evaluation/`, each ALPHABET/CHARACTER/; labels are ALPHABET/CHARACTER.

    Split by Meta-Dataset's rule: the evaluation set for testing, and of the background set the five alphabets with the
    fewest characters for validation. Meta-Dataset inverts the drawings; here they are as published.
    """

    dataset = "Omniglot"
    about = "images_background and images_evaluation, split by alphabets as in Meta-Dataset"
    license = "MIT"
    citation = (
        "Lake, Salakhutdinov and Tenenbaum, Human-level Concept Learning through Probabilistic Program Induction, "
        f"Science 2015; {SPLIT_CITATION}"
    )

    def read(self, root: Path) -> Catalog:
        """The drawings of all characters."""
        paths, ignored = item_paths(root)
        folders = [path.split("/")[:-1] for path in paths]
        for path, names in zip(paths, folders, strict=True):
            if len(names) != 3 or names[0] not in ("images_background", "images_evaluation"):
                raise InputError(
                    f"{root}: '{path}': expected images_background/ALPHABET/CHARACTER/ or images_evaluation/"
                )
        characters: dict[str, set[str]] = defaultdict(set)
        for part, alphabet, character in folders:
            if part == "images_background":
                characters[alphabet].add(character)
        smallest = sorted(characters, key=lambda alphabet: (len(characters[alphabet]), alphabet))[:SMALLEST]
        columns = {
            "item": paths,
            "label": [f"{alphabet}/{character}" for _, alphabet, character in folders],
            "alphabet": [alphabet for _, alphabet, _ in folders],
            "split": [
                "test" if part == "images_evaluation" else "val" if alphabet in smallest else "train"
                for part, alphabet, _ in folders
            ],
        }
        return checked(sorted_catalog(columns, root, ignored_files=ignored), None, 659, 13_180)
