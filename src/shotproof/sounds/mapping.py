"""Which foreground is mixed with which backgrounds: a TOML or CSV file, and the mappings that come with Shotproof."""

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
from shotproof.core.storage.files import parse_toml, path_exists, read_toml

TABLES = ("pairs", "hard", "splits")
SPLITS = ("train", "val", "test")
OTHERS = "others"
PAIRINGS = ("pair", "hard")
COLUMNS = ("foreground", "background", "pairing", "split")  # of a CSV file; the last two may be left out
VAL_SHARE, TEST_SHARE = 0.1, 0.2

_SPLIT = 1  # what a random number is drawn for


@dataclass(frozen=True)
class PairMapping:
    """Labels by label: each foreground's own backgrounds (`pairs`), those for hard tasks, and its split.

    `splits` is empty where the file has none.
    """

    pairs: dict[str, tuple[str, ...]]
    hard: dict[str, tuple[str, ...]]
    splits: dict[str, str]

    @property
    def foregrounds(self) -> list[str]:
        """The labels of foregrounds, sorted."""
        return sorted(self.pairs)

    @property
    def backgrounds(self) -> list[str]:
        """The labels of backgrounds, sorted."""
        return sorted({label for labels in (*self.pairs.values(), *self.hard.values()) for label in labels})

    @property
    def digest(self) -> str:
        """Of all that it says."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:32]

    def of(self, foreground: str) -> list[str]:
        """All backgrounds of a foreground, sorted."""
        return sorted({*self.pairs[foreground], *self.hard.get(foreground, ())})

    def split_of(self, seed: int) -> dict[str, str]:
        """The split of each foreground: the file's, or else 70/10/20 of the classes by the seed."""
        if self.splits:
            return self.splits
        order = np.argsort(bits(seed, _SPLIT, np.arange(len(self.pairs)))).tolist()
        val, test = (round(share * len(order)) for share in (VAL_SHARE, TEST_SHARE))
        names = ["test"] * test + ["val"] * val + ["train"] * (len(order) - test - val)
        return {self.foregrounds[place]: name for place, name in zip(order, names, strict=True)}

    def require_labels(self, known: Iterable[str]) -> None:
        """Refuse a label that no recording has."""
        known = set(known)
        for role, labels in (("foreground", self.foregrounds), ("background", self.backgrounds)):
            for label in labels:
                if label not in known:
                    raise InputError(f"mapping: no recording has the {role} '{label}'{did_you_mean(label, known)}")


def shipped_mappings() -> list[str]:
    """The names of the mappings that come with Shotproof."""
    return sorted(
        Path(file.name).stem for file in resources.files(__package__).iterdir() if file.name.endswith(".toml")
    )


def read_mapping(source: str | Path) -> PairMapping:
    """Which foreground is mixed with which backgrounds.

    Args:
        source: a TOML or CSV file, or the name of a mapping that comes with Shotproof

    Returns:
        The mapping.

    Raises:
        InputError: there is no such file, or it is not a mapping; the message says what is wrong where.

    Example:
        >>> read_mapping("esc50").pairs["dog"]
        ('rain', 'train', 'siren', 'church_bells')
    """
    name, path = str(source), Path(source)
    if name in shipped_mappings() and not path_exists(path):
        text = (resources.files(__package__) / f"{name}.toml").read_text("utf-8")
        return _checked(parse_toml(text, f"mapping {name}"), name)
    if not path_exists(path):
        near = did_you_mean(name, shipped_mappings())
        raise InputError(f"mapping {source} is no file, nor one that comes with Shotproof{near}")
    if path.suffix.lower() == ".csv":
        return _checked(_csv_document(path), str(path))
    return _checked(read_toml(path, f"mapping {path}"), str(path))


def _csv_document(path: Path) -> dict[str, Any]:
    """What a TOML file would hold, of a CSV with one row per pair: foreground, background, pairing, split."""
    what = f"mapping {path}"
    table = read_csv(path, what, is_text=lambda name: True)
    for name in COLUMNS[:2]:
        if name not in table.column_names:
            raise InputError(f"{what} has no column '{name}'{did_you_mean(name, table.column_names)}")
    for name in table.column_names:
        if name not in COLUMNS:
            raise InputError(f"{what}: unknown column '{name}'{did_you_mean(name, COLUMNS)}")
    labels: dict[str, dict[str, list[str]]] = {pairing: {} for pairing in PAIRINGS}
    split_of: dict[str, str] = {}
    for line, row in enumerate(table.to_pylist(), start=2):
        where = f"{what}, line {line}"
        front, back, pairing, split = (row.get(name) for name in COLUMNS)
        if not front or not back:
            raise InputError(f"{where}: expected a foreground and a background, found '{front or ''},{back or ''}'")
        pairing = pairing or PAIRINGS[0]
        if pairing not in PAIRINGS:
            raise InputError(f"{where}: expected pair or hard as pairing, found '{pairing}'")
        labels[pairing].setdefault(front, []).append(back)
        if split and split_of.setdefault(front, split) != split:
            raise InputError(f"{where}: '{front}' is in {split_of[front]} and in {split}")
    splits: dict[str, list[str]] = {}
    for front, split in split_of.items():
        splits.setdefault(split, []).append(front)
    return {"pairs": labels["pair"], "hard": labels["hard"], "splits": splits}


def _checked(document: Mapping[str, Any], name: str) -> PairMapping:
    for table in document:
        if table not in TABLES:
            raise InputError(f"mapping {name}: unknown table '{table}'{did_you_mean(table, TABLES)}")
    pairs = _labels_by_label(document.get("pairs", {}), f"mapping {name}, [pairs]")
    if not pairs:
        raise InputError(f"mapping {name} has no [pairs]: expected lines such as dog = ['rain', 'wind']")
    hard = _hard(document.get("hard", {}), pairs, name)
    for foreground, backgrounds in [*pairs.items(), *hard.items()]:
        for background in backgrounds:
            if background in pairs:
                raise InputError(
                    f"mapping {name}: '{background}' is a background of '{foreground}', and also a foreground: "
                    "a label can be only one of them"
                )
    return PairMapping(pairs, hard, _splits(document.get("splits", {}), pairs, name))


def _hard(table: Any, pairs: Mapping[str, tuple[str, ...]], name: str) -> dict[str, tuple[str, ...]]:
    """The backgrounds for hard tasks; the word `others` means all that the pairs of other foregrounds name."""
    if table == OTHERS:
        every = sorted({label for labels in pairs.values() for label in labels})
        return {label: tuple(other for other in every if other not in own) for label, own in pairs.items()}
    hard = _labels_by_label(table, f"mapping {name}, [hard]")
    for label in hard:
        if label not in pairs:
            raise InputError(f"mapping {name}, [hard]: '{label}' is not in [pairs]{did_you_mean(label, pairs)}")
    return hard


def _splits(table: Any, pairs: Mapping[str, tuple[str, ...]], name: str) -> dict[str, str]:
    where = f"mapping {name}, [splits]"
    split_of: dict[str, str] = {}
    for split, labels in _labels_by_label(table, where).items():
        if split not in SPLITS:
            raise InputError(f"{where}: unknown split '{split}'{did_you_mean(split, SPLITS)}")
        for label in labels:
            if label not in pairs:
                raise InputError(f"{where}: '{label}' is not in [pairs]{did_you_mean(label, pairs)}")
            if label in split_of:
                raise InputError(f"{where}: '{label}' is in {split_of[label]} and in {split}")
            split_of[label] = split
    missing = sorted(pairs.keys() - split_of.keys())
    if split_of and missing:
        raise InputError(f"{where}: '{missing[0]}' is in no split ({len(missing)} of {len(pairs)} foregrounds)")
    return split_of


def _labels_by_label(table: Any, where: str) -> dict[str, tuple[str, ...]]:
    """{name: labels} of a TOML table whose values are a label or a list of labels, each once."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: expected a table, found {table!r}")
    labels_of: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        labels = [value] if isinstance(value, str) else value
        if not isinstance(labels, list) or not labels or not all(isinstance(label, str) and label for label in labels):
            raise InputError(f"{where}: '{name}': expected a list of labels, found {value!r}")
        for label in labels:
            if labels.count(label) > 1:
                raise InputError(f"{where}: '{name}': '{label}' occurs twice")
        labels_of[name] = tuple(labels)
    return labels_of
