"""Which recordings are mixed with which: drawn by the seed from a catalog, a mapping and the recordings' loudness."""

from __future__ import annotations

import hashlib
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
from shotproof.media.mixture import background_gain_db
from shotproof.sounds.loudness import Loudness
from shotproof.sounds.mapping import PairMapping

CLEAN = "clean"
LONGEST_NAME = 80

# What a random number is drawn for: the first counter of every draw (1 is the mapping's).
_FOREGROUND, _BACKGROUND = 2, 3


@dataclass(frozen=True)
class Recipe:
    """A mixture to make: its item, and the rows of its recordings (no background: the foreground alone)."""

    item: str
    foreground: int
    background: int | None
    split: str
    pairing: str  # `pair`, `hard` or `clean`
    gain_db: float | None


@dataclass(frozen=True)
class Recordings:
    """The rows of a catalog that a mapping uses, with their loudness; those without one are left out by name."""

    catalog: Catalog
    loudness: Sequence[Loudness]

    @property
    def skipped(self) -> list[dict[str, str]]:
        """Item, label and reason of each recording that has no loudness."""
        columns = self.catalog.table.select(["item", "label"]).to_pylist()
        return [
            {**row, "reason": loudness.problem}
            for row, loudness in zip(columns, self.loudness, strict=True)
            if loudness.problem is not None
        ]

    def rows_by_label(self) -> dict[str, list[int]]:
        """The rows of each label that have a loudness, in the order of their items; a label without one is an error."""
        rows_of = defaultdict(list)
        items = self.catalog.items
        order = np.argsort(np.array(items, dtype=object), kind="stable").tolist()
        labels = self.catalog.table.column("label").to_pylist()
        for row in order:
            if self.loudness[row].problem is None:
                rows_of[labels[row]].append(row)
        for label in sorted(set(labels)):
            if not rows_of[label]:
                bad = next(row for row in order if labels[row] == label)
                raise InputError(
                    f"no recording of '{label}' has a loudness (of {labels.count(label)}; "
                    f"{items[bad]}: {self.loudness[bad].problem})"
                )
        return dict(rows_of)


def labeled(catalog: Catalog, mapping: PairMapping) -> Catalog:
    """Only the recordings whose label the mapping names; a label without any is an error."""
    labels = catalog.table.column("label")
    mapping.require_labels(pc.unique(labels).to_pylist())
    used = pa.array([*mapping.foregrounds, *mapping.backgrounds], pa.string())
    return Catalog(catalog.table.filter(pc.is_in(labels, value_set=used)), catalog.root, catalog.record)


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
    """Every recording of a foreground with each of its backgrounds once (or `per_background` of them), by item.

    Over one foreground and one background class, the backgrounds' recordings are used evenly.
    """
    table = recordings.catalog.table
    names = _names(table.column("item").to_pylist())
    splits = _splits(recordings.catalog, mapping, seed)
    lufs = [loudness.lufs or 0.0 for loudness in recordings.loudness]
    rows_of = recordings.rows_by_label()
    recipes = []
    for label in mapping.foregrounds:
        folder = _plain(label)
        for front, back, pairing in _pairs(label, rows_of, mapping, seed, per_background):
            gain_db = background_gain_db(lufs[front], lufs[back], margin_db, dial)
            item = f"{folder}/{names[front]}+{names[back]}"
            recipes.append(Recipe(item, front, back, splits[front], pairing, gain_db))
        if clean:
            recipes += [Recipe(f"{folder}/{names[row]}", row, None, splits[row], CLEAN, None) for row in rows_of[label]]
    return sorted(recipes, key=lambda recipe: recipe.item)


def _pairs(
    label: str, rows_of: dict[str, list[int]], mapping: PairMapping, seed: int, per_background: int | None
) -> Iterator[tuple[int, int, str]]:
    """Foreground row, background row and pairing of each mixture of one foreground class."""
    place = mapping.foregrounds.index(label)
    fronts = np.array(rows_of[label])
    for background in mapping.of(label):
        counters = (place, mapping.backgrounds.index(background))
        backs = np.array(rows_of[background])
        chosen = fronts[np.argsort(bits(seed, _FOREGROUND, *counters, np.arange(len(fronts))))][:per_background]
        shuffled = backs[np.argsort(bits(seed, _BACKGROUND, *counters, np.arange(len(backs))))]
        pairing = "pair" if background in mapping.pairs[label] else "hard"
        for front, back in zip(chosen.tolist(), np.resize(shuffled, len(chosen)).tolist(), strict=True):
            yield front, back, pairing


def _splits(catalog: Catalog, mapping: PairMapping, seed: int) -> list[str]:
    """The split of each recording: the mapping's, else the catalog's own where it has several, else drawn by class."""
    own: list[str] = catalog.table.column("split").to_pylist()
    if not mapping.splits and len(catalog.splits) > 1:
        return own
    split_of = mapping.split_of(seed)
    return [split_of.get(label, "") for label in catalog.table.column("label").to_pylist()]


def _names(items: Sequence[str]) -> list[str]:
    """A short name for each item that can be part of a file's name: its own without folders, where that is unique."""
    stems = [_plain(PurePosixPath(item).stem) for item in items]
    count = Counter(stem.lower() for stem in stems)  # some file systems do not tell A from a
    return [
        stem if count[stem.lower()] == 1 else f"{stem[:LONGEST_NAME]}-{hashlib.sha256(item.encode()).hexdigest()[:8]}"
        for item, stem in zip(items, stems, strict=True)
    ]


def _plain(text: str) -> str:
    """Text with only letters, digits, dots, dashes and underscores, of a length that file systems take."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".") or "_"
    if plain == text and len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[:LONGEST_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def recipe_columns(recipes: Sequence[Recipe], recordings: Recordings) -> dict[str, list[Any]]:
    """The columns of a mixed catalog that the recipes alone decide; paths start from the recordings' root."""
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
