"""Mappings of foregrounds to the backgrounds that they are mixed with: TOML or CSV files, or shipped with Shotproof."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.draws import bits
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.nouns import Medium, noun
from shotproof.core.storage.files import parse_toml, path_exists, read_toml

TABLES = ("pairs", "hard", "splits")
SPLITS = ("train", "val", "test")
OTHERS = "others"
PAIRINGS = ("pair", "hard")
COLUMNS = ("foreground", "background", "pairing", "split")  # of a CSV file; the last two are optional
VAL_SHARE, TEST_SHARE = 0.1, 0.2

_SPLIT = 1  # purpose of a random draw


@dataclass(frozen=True)
class PairMapping:
    """Backgrounds of each foreground: its own (`pairs`), those for hard tasks (`hard`), and its split.

    `splits` is empty if the file has none.
    """

    pairs: dict[str, tuple[str, ...]]
    hard: dict[str, tuple[str, ...]]
    splits: dict[str, str]

    @property
    def foregrounds(self) -> list[str]:
        """Return the labels of foregrounds, sorted."""
        return sorted(self.pairs)

    @property
    def backgrounds(self) -> list[str]:
        """Return the labels of backgrounds, sorted."""
        return sorted({label for labels in (*self.pairs.values(), *self.hard.values()) for label in labels})

    @property
    def digest(self) -> str:
        """Return the digest of the mapping."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:32]

    def backgrounds_of(self, foreground: str) -> list[str]:
        """Return all backgrounds of a foreground, sorted."""
        return sorted({*self.pairs[foreground], *self.hard.get(foreground, ())})

    def split_by_label(self, seed: int) -> dict[str, str]:
        """Return the split of each foreground: the file's, or 70/10/20 of the classes drawn by the seed."""
        if self.splits:
            return self.splits
        order = np.argsort(bits(seed, _SPLIT, np.arange(len(self.pairs)))).tolist()
        val, test = (round(share * len(order)) for share in (VAL_SHARE, TEST_SHARE))
        names = ["test"] * test + ["val"] * val + ["train"] * (len(order) - test - val)
        return {self.foregrounds[index]: name for index, name in zip(order, names, strict=True)}

    def require_labels(self, labels_of_items: Iterable[str], medium: Medium | None = "sound") -> None:
        """Raise InputError if a label of the mapping has no items."""
        present = set(labels_of_items)
        for role, labels in (("foreground", self.foregrounds), ("background", self.backgrounds)):
            for label in labels:
                if label not in present:
                    hint = did_you_mean(label, present)
                    raise InputError(f"mapping: no {noun(medium)} has the {role} '{label}'{hint}")


def shipped_mappings() -> list[str]:
    """Return the names of the mappings that are shipped with Shotproof."""
    return sorted(
        Path(file.name).stem for file in resources.files(__package__).iterdir() if file.name.endswith(".toml")
    )


def read_mapping(source: str | Path) -> PairMapping:
    """Read a mapping of foregrounds to the backgrounds that they are mixed with.

    Args:
        source: a TOML or CSV file, or the name of a mapping that is shipped with Shotproof

    Returns:
        The mapping.

    Raises:
        InputError: there is no such file, or it is not a valid mapping; the message names the location of the problem.

    Example:
        >>> read_mapping("esc50").pairs["dog"]
        ('rain', 'train', 'siren', 'church_bells')
    """
    name, path = str(source), Path(source)
    if name in shipped_mappings() and not path_exists(path):
        text = (resources.files(__package__) / f"{name}.toml").read_text("utf-8")
        return _parse(parse_toml(text, f"mapping {name}"), name)
    if not path_exists(path):
        hint = did_you_mean(name, shipped_mappings())
        raise InputError(f"mapping {source} is neither a file nor a mapping shipped with Shotproof{hint}")
    if path.suffix.lower() == ".csv":
        return _parse(_read_csv_mapping(path), str(path))
    return _parse(read_toml(path, f"mapping {path}"), str(path))


def _read_csv_mapping(path: Path) -> dict[str, Any]:
    """Read a CSV with one row per pair (foreground, background, pairing, split) into the form of a TOML file."""
    title = f"mapping {path}"
    table = read_csv(path, title, is_text=lambda name: True)
    for name in COLUMNS[:2]:
        if name not in table.column_names:
            raise InputError(f"{title} has no column '{name}'{did_you_mean(name, table.column_names)}")
    for name in table.column_names:
        if name not in COLUMNS:
            raise InputError(f"{title}: unknown column '{name}'{did_you_mean(name, COLUMNS)}")
    labels: dict[str, dict[str, list[str]]] = {pairing: {} for pairing in PAIRINGS}
    split_by_label: dict[str, str] = {}
    for line, row in enumerate(table.to_pylist(), start=2):
        location = f"{title}, line {line}"
        front, back, pairing, split = (row.get(name) for name in COLUMNS)
        if not front or not back:
            raise InputError(f"{location}: expected a foreground and a background, found '{front or ''},{back or ''}'")
        pairing = pairing or PAIRINGS[0]
        if pairing not in PAIRINGS:
            raise InputError(f"{location}: expected pair or hard as pairing, found '{pairing}'")
        labels[pairing].setdefault(front, []).append(back)
        if split and split_by_label.setdefault(front, split) != split:
            raise InputError(f"{location}: '{front}' is in {split_by_label[front]} and in {split}")
    splits: dict[str, list[str]] = {}
    for front, split in split_by_label.items():
        splits.setdefault(split, []).append(front)
    return {"pairs": labels["pair"], "hard": labels["hard"], "splits": splits}


def _parse(document: Mapping[str, Any], name: str) -> PairMapping:
    for table in document:
        if table not in TABLES:
            raise InputError(f"mapping {name}: unknown table '{table}'{did_you_mean(table, TABLES)}")
    pairs = _parse_lists(document.get("pairs", {}), f"mapping {name}, [pairs]")
    if not pairs:
        raise InputError(f"mapping {name} has no [pairs]: expected lines such as dog = ['rain', 'wind']")
    hard = _parse_hard(document.get("hard", {}), pairs, name)
    for foreground, backgrounds in [*pairs.items(), *hard.items()]:
        for background in backgrounds:
            if background in pairs:
                raise InputError(
                    f"mapping {name}: '{background}' is a background of '{foreground}', and also a foreground: "
                    "a label can be only one of them"
                )
    return PairMapping(pairs, hard, _parse_splits(document.get("splits", {}), pairs, name))


def _parse_hard(table: Any, pairs: Mapping[str, tuple[str, ...]], name: str) -> dict[str, tuple[str, ...]]:
    """Return the backgrounds for hard tasks; `others` stands for all backgrounds in the pairs of other foregrounds."""
    if table == OTHERS:
        all_backgrounds = sorted({label for labels in pairs.values() for label in labels})
        return {
            foreground: tuple(label for label in all_backgrounds if label not in labels)
            for foreground, labels in pairs.items()
        }
    hard = _parse_lists(table, f"mapping {name}, [hard]")
    for label in hard:
        if label not in pairs:
            raise InputError(f"mapping {name}, [hard]: '{label}' is not in [pairs]{did_you_mean(label, pairs)}")
    return hard


def _parse_splits(table: Any, pairs: Mapping[str, tuple[str, ...]], name: str) -> dict[str, str]:
    location = f"mapping {name}, [splits]"
    split_by_label: dict[str, str] = {}
    for split, labels in _parse_lists(table, location).items():
        if split not in SPLITS:
            raise InputError(f"{location}: unknown split '{split}'{did_you_mean(split, SPLITS)}")
        for label in labels:
            if label not in pairs:
                raise InputError(f"{location}: '{label}' is not in [pairs]{did_you_mean(label, pairs)}")
            if label in split_by_label:
                raise InputError(f"{location}: '{label}' is in {split_by_label[label]} and in {split}")
            split_by_label[label] = split
    missing = sorted(pairs.keys() - split_by_label.keys())
    if split_by_label and missing:
        raise InputError(f"{location}: '{missing[0]}' is in no split ({len(missing)} of {len(pairs)} foregrounds)")
    return split_by_label


def _parse_lists(table: Any, location: str) -> dict[str, tuple[str, ...]]:
    """Parse a TOML table whose values are a label or a list of distinct labels as {name: labels}."""
    if not isinstance(table, Mapping):
        raise InputError(f"{location}: expected a table, found {table!r}")
    lists: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        labels = [value] if isinstance(value, str) else value
        if not isinstance(labels, list) or not labels or not all(isinstance(label, str) and label for label in labels):
            raise InputError(f"{location}: '{name}': expected a list of labels, found {value!r}")
        for label in labels:
            if labels.count(label) > 1:
                raise InputError(f"{location}: '{name}': '{label}' occurs twice")
        lists[name] = tuple(labels)
    return lists
