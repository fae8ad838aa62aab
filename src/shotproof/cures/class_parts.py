"""Parts of the classes: remedies are fitted on the first, chosen on the second and confirmed on the third."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InsufficientData
from shotproof.core.nouns import counted

FIT, CHOOSE, CONFIRM = "fit", "choose", "confirm"
FEWEST_TO_FIT = 2  # directions within classes need at least two, so that they are not those of a single class
_VALIDATION = ("val", "valid", "validation", "dev")  # names that splits for choosing usually have
_PART = 0  # key of the random numbers


@dataclass(frozen=True)
class ClassParts:
    """Catalog whose splits say what each class is for: `fit`, `choose` or `confirm`.

    uses_tasks: whether the classes to confirm on are exactly those of the existing tasks, which then confirm
    """

    catalog: Catalog
    uses_tasks: bool

    def count(self, part: str) -> int:
        """Count the classes of a part."""
        return int(pc.count_distinct(self.catalog.in_split(part).table.column("label")).as_py())

    def describe(self) -> str:
        """Return the number of classes of each part in words."""
        sizes = [f"{part} on {counted(self.count(part), 'class', 'classes')}" for part in (FIT, CHOOSE, CONFIRM)]
        return ", ".join(sizes)


def part_classes(catalog: Catalog, split: str | None, way: int, seed: int = 0) -> ClassParts:
    """Divide the classes into those to fit remedies on, to choose between them on, and to confirm the choice on.

    If other splits have enough classes, the existing tasks confirm, and the other splits fit and choose: the split
    named `val` chooses if it has enough classes, otherwise half of the others. If not, half of all classes fit, a
    quarter choose and a quarter confirm, at least `way` for each of the latter two.

    Args:
        catalog: items that have features
        split: split of the existing tasks; None if the catalog has only one
        way: classes per task
        seed: seed of the division

    Raises:
        InsufficientData: there are fewer classes than a fair confirmation needs; the message has both numbers.
    """
    labels_by_split = {name: _labels(catalog.in_split(name)) for name in catalog.splits}
    tested = labels_by_split[split] if split is not None else set().union(*labels_by_split.values())
    others = set().union(*labels_by_split.values()) - tested
    if len(others) >= way + FEWEST_TO_FIT:
        validation = next(
            (
                labels - tested
                for name, labels in labels_by_split.items()
                if name in _VALIDATION and len(labels - tested) >= way
            ),
            None,
        )
        if validation is None or len(others - validation) < FEWEST_TO_FIT:
            shuffled = _shuffle(others, seed)
            validation = set(shuffled[: max(way, len(shuffled) // 2)])
        parts = {label: CHOOSE if label in validation else FIT for label in others}
        return ClassParts(_with_parts(catalog, parts | dict.fromkeys(tested, CONFIRM)), uses_tasks=True)
    shuffled = _shuffle(tested | others, seed)
    needed = 2 * way + FEWEST_TO_FIT
    if len(shuffled) < needed:
        raise InsufficientData(
            f"a fair confirmation needs {needed} classes ({FEWEST_TO_FIT} to fit remedies on, {way} to choose between "
            f"them on, {way} others to confirm the choice on), the data has {len(shuffled)}: add classes, or splits "
            "of other classes (they need no tasks), or use fewer ways"
        )
    size = max(way, len(shuffled) // 4)
    parts = dict.fromkeys(shuffled[:size], CONFIRM) | dict.fromkeys(shuffled[size : 2 * size], CHOOSE)
    return ClassParts(_with_parts(catalog, dict.fromkeys(shuffled, FIT) | parts), uses_tasks=False)


def _labels(catalog: Catalog) -> set[str]:
    return set(pc.unique(catalog.table.column("label")).to_pylist())


def _shuffle(labels: Set[str], seed: int) -> list[str]:
    """Order labels at random; the order depends on the seed and the labels alone."""
    ordered = sorted(labels)
    order = np.argsort(draws.bits(seed, _PART, np.arange(len(ordered))), kind="stable")
    return [ordered[index] for index in order]


def _with_parts(catalog: Catalog, parts: dict[str, str]) -> Catalog:
    """Replace the split of each item by the part of its class; leave out items of classes without a part."""
    split = pa.array([parts.get(label) for label in catalog.table.column("label").to_pylist()], pa.string())
    table = catalog.table.set_column(catalog.table.column_names.index("split"), "split", split)
    return Catalog(table.filter(pc.is_valid(split)), catalog.root, catalog.record).with_stamp_of(catalog)
