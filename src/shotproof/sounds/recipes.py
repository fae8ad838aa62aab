"""Recipes: pairs of recordings to mix, drawn from a catalog, a mapping and the recordings' loudness."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import bits
from shotproof.core.errors import InputError
from shotproof.core.nouns import nouns
from shotproof.media.mixture import background_gain_db
from shotproof.sounds.loudness import Loudness
from shotproof.sounds.mapping import PairMapping

logger = logging.getLogger("shotproof")

CLEAN = "clean"
LONGEST_NAME = 80

# Purpose of a random draw, its first counter (1 is used by the mapping).
_FOREGROUND, _BACKGROUND = 2, 3


@dataclass(frozen=True)
class Recipe:
    """Recipe of a mixture: its item, and the rows of its recordings; without a background, the foreground alone."""

    item: str
    foreground: int
    background: int | None
    split: str
    pairing: str  # `pair`, `hard` or `clean`
    gain_db: float | None


@dataclass(frozen=True)
class Recordings:
    """Recordings that a mapping uses, with their loudness; those without one are skipped, and listed by name.

    Images, which have no loudness, have one of 0 unless there is a problem with them.
    """

    catalog: Catalog
    loudness: Sequence[Loudness]

    @property
    def skipped(self) -> list[dict[str, str]]:
        """Return the item, label and reason of each recording without a loudness."""
        columns = self.catalog.table.select(["item", "label"]).to_pylist()
        return [
            {**row, "reason": loudness.problem}
            for row, loudness in zip(columns, self.loudness, strict=True)
            if loudness.problem is not None
        ]

    def rows_by_label(self) -> dict[str, list[int]]:
        """Group the rows with a loudness by label, in the order of their items. A label without any is an error."""
        label_rows = defaultdict(list)
        items = self.catalog.items
        order = np.argsort(np.array(items, dtype=object), kind="stable").tolist()
        labels = self.catalog.table.column("label").to_pylist()
        for row in order:
            if self.loudness[row].problem is None:
                label_rows[labels[row]].append(row)
        for label in sorted(set(labels)):
            if not label_rows[label]:
                first = next(row for row in order if labels[row] == label)
                raise InputError(
                    f"none of the {labels.count(label)} {nouns(self.catalog.medium)} of '{label}' can be used, "
                    f"e.g. {items[first]}: {self.loudness[first].problem}"
                )
        return dict(label_rows)


def select_mapped(catalog: Catalog, mapping: PairMapping) -> Catalog:
    """Select the recordings whose label is in the mapping. A label of the mapping without recordings is an error."""
    labels = catalog.table.column("label")
    mapping.require_labels(pc.unique(labels).to_pylist(), catalog.medium)
    mapped = pa.array([*mapping.foregrounds, *mapping.backgrounds], pa.string())
    return Catalog(catalog.table.filter(pc.is_in(labels, value_set=mapped)), catalog.root, catalog.record)


def log_drawn_splits(catalog: Catalog, mapping: PairMapping, seed: int) -> None:
    """Warn if neither the mapping nor the catalog has splits, so that they are drawn."""
    if mapping.splits or len(catalog.splits) > 1:
        return
    classes = Counter(mapping.split_by_label(seed).values())
    logger.warning(
        "the mapping has no [splits]: its %d foregrounds are split at random, by the seed: %s",
        classes.total(),
        ", ".join(f"{count} for {name}" for name, count in sorted(classes.items())),
    )


def draw_recipes(
    recordings: Recordings,
    mapping: PairMapping,
    *,
    seed: int,
    dial: float,
    margin_db: float,
    per_background: int | None = None,
    clean: bool = False,
) -> list[Recipe]:
    """Draw recipes that mix each recording of a foreground, or `per_background` of them, with each of its backgrounds.

    Within a foreground and a background class, the recordings of the background are used evenly. Recipes are sorted by
    item.
    """
    table = recordings.catalog.table
    names = _short_names(table.column("item").to_pylist())
    splits = _assign_splits(recordings.catalog, mapping, seed)
    lufs = [loudness.lufs or 0.0 for loudness in recordings.loudness]
    label_rows = recordings.rows_by_label()
    recipes = []
    for label in mapping.foregrounds:
        folder = _safe_name(label)
        for front, back, pairing in _draw_pairs(label, label_rows, mapping, seed, per_background):
            gain_db = background_gain_db(lufs[front], lufs[back], margin_db, dial)
            item = f"{folder}/{names[front]}+{names[back]}"
            recipes.append(Recipe(item, front, back, splits[front], pairing, gain_db))
        if clean:
            recipes += [
                Recipe(f"{folder}/{names[row]}", row, None, splits[row], CLEAN, None) for row in label_rows[label]
            ]
    return sorted(recipes, key=lambda recipe: recipe.item)


def _draw_pairs(
    label: str, label_rows: dict[str, list[int]], mapping: PairMapping, seed: int, per_background: int | None
) -> Iterator[tuple[int, int, str]]:
    """Yield the foreground row, background row and pairing of each mixture of one foreground class."""
    index = mapping.foregrounds.index(label)
    fronts = np.array(label_rows[label])
    for background in mapping.backgrounds_of(label):
        counters = (index, mapping.backgrounds.index(background))
        backs = np.array(label_rows[background])
        chosen = fronts[np.argsort(bits(seed, _FOREGROUND, *counters, np.arange(len(fronts))))][:per_background]
        shuffled = backs[np.argsort(bits(seed, _BACKGROUND, *counters, np.arange(len(backs))))]
        pairing = "pair" if background in mapping.pairs[label] else "hard"
        for front, back in zip(chosen.tolist(), np.resize(shuffled, len(chosen)).tolist(), strict=True):
            yield front, back, pairing


def _assign_splits(catalog: Catalog, mapping: PairMapping, seed: int) -> list[str]:
    """Return the split of each recording: the mapping's, or the catalog's if it has several, or drawn by class."""
    catalog_splits: list[str] = catalog.table.column("split").to_pylist()
    if not mapping.splits and len(catalog.splits) > 1:
        return catalog_splits
    split_by_label = mapping.split_by_label(seed)
    return [split_by_label.get(label, "") for label in catalog.table.column("label").to_pylist()]


def _short_names(items: Sequence[str]) -> list[str]:
    """Return a unique short name for each item, safe in file names: the item's stem, if that is unique."""
    stems = [_safe_name(PurePosixPath(item).stem) for item in items]
    counts = Counter(stem.lower() for stem in stems)  # some file systems ignore case
    return [
        stem if counts[stem.lower()] == 1 else f"{stem[:LONGEST_NAME]}-{hashlib.sha256(item.encode()).hexdigest()[:8]}"
        for item, stem in zip(items, stems, strict=True)
    ]


def _safe_name(text: str) -> str:
    """Replace characters other than letters, digits, dots, dashes and underscores, and shorten long texts."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".") or "_"
    if safe == text and len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[:LONGEST_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def recipe_columns(recipes: Sequence[Recipe], recordings: Recordings) -> dict[str, list[Any]]:
    """Return the columns of a mixed catalog that depend on the recipes alone; paths start from the recordings' root."""
    rows = recordings.catalog.table.to_pylist()
    fronts = [rows[recipe.foreground] for recipe in recipes]
    backs = [None if recipe.background is None else rows[recipe.background] for recipe in recipes]
    return {
        "item": [recipe.item for recipe in recipes],
        "label": [front["label"] for front in fronts],
        "split": [recipe.split for recipe in recipes],
        "context": [CLEAN if back is None else back["label"] for back in backs],
        "source": [front.get("source") or front["item"] for front in fronts],
        "pairing": [recipe.pairing for recipe in recipes],
        "foreground": [front["path"] for front in fronts],
        "background": [None if back is None else back["path"] for back in backs],
        "gain_db": [recipe.gain_db for recipe in recipes],
    }
