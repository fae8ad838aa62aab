"""Parts of the classes: no class has two, each has one, and the same classes have the same ones."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InsufficientData
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FEWEST_TO_FIT, FIT, ClassParts, part_classes
from tests.hash_seeds import run_with_another_hash_seed

PARTS = (FIT, CHOOSE, CONFIRM)


def catalog_of(**splits: list[str]) -> Catalog:
    """Two items of each class of each split."""
    rows = [(split, label, number) for split, labels in splits.items() for label in labels for number in range(2)]
    items = [f"{split}/{label}/{number}" for split, label, number in rows]
    columns = {
        "item": items,
        "path": items,
        "label": [label for _, label, _ in rows],
        "split": [split for split, _, _ in rows],
    }
    return Catalog(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:02d}" for number in range(count)]


def labels_of(parts: ClassParts) -> dict[str, set[str]]:
    table = parts.catalog.table
    return {
        part: {row["label"] for row in table.select(["label", "split"]).to_pylist() if row["split"] == part}
        for part in PARTS
    }


@given(
    test=st.integers(1, 20),
    train=st.integers(0, 20),
    val=st.integers(0, 12),
    way=st.integers(2, 6),
    seed=st.integers(0, 5),
)
def test_parts_are_disjoint_complete_and_large_enough(test: int, train: int, val: int, way: int, seed: int) -> None:
    catalog = catalog_of(test=names("t", test), train=names("b", train), val=names("v", val))
    total = test + train + val
    split = "test" if train or val else None
    others = train + val
    needed = 2 * way + FEWEST_TO_FIT
    if others < way + FEWEST_TO_FIT and total < needed:
        with pytest.raises(InsufficientData):
            part_classes(catalog, split, way, seed)
        return
    parts = part_classes(catalog, split, way, seed)
    labels = labels_of(parts)
    assert sum(map(len, labels.values())) == len(set().union(*labels.values())) == total
    assert parts.catalog.item_column.to_pylist() == catalog.item_column.to_pylist()
    assert len(labels[FIT]) >= FEWEST_TO_FIT
    assert len(labels[CHOOSE]) >= way
    assert [parts.count(part) for part in PARTS] == [len(labels[part]) for part in PARTS]
    assert parts.uses_tasks == (others >= way + FEWEST_TO_FIT)
    if parts.uses_tasks:
        assert labels[CONFIRM] == set(names("t", test))
    else:
        assert len(labels[CONFIRM]) >= way
    assert labels_of(part_classes(catalog, split, way, seed)) == labels


def test_a_validation_split_chooses_if_it_has_enough_classes() -> None:
    large = part_classes(catalog_of(test=names("t", 5), train=names("b", 6), val=names("v", 3)), "test", 3)
    assert labels_of(large) == {FIT: set(names("b", 6)), CHOOSE: set(names("v", 3)), CONFIRM: set(names("t", 5))}
    small = part_classes(catalog_of(test=names("t", 5), train=names("b", 6), val=names("v", 2)), "test", 3)
    assert labels_of(small)[CHOOSE] != set(names("v", 2))
    assert [small.count(part) for part in PARTS] == [4, 4, 5]


def test_a_validation_split_does_not_choose_if_nothing_is_left_to_fit_on() -> None:
    parts = part_classes(catalog_of(test=names("t", 4), train=names("b", 1), val=names("v", 8)), "test", 3)
    assert parts.uses_tasks
    assert [parts.count(part) for part in PARTS] == [5, 4, 4]


def test_a_class_of_several_splits_is_one_to_confirm_on() -> None:
    shared = ["t00", "t01"]
    catalog = catalog_of(test=names("t", 4), train=[*names("b", 6), *shared], val=[*names("v", 3), *shared])
    parts = part_classes(catalog, "test", 3)
    assert labels_of(parts) == {FIT: set(names("b", 6)), CHOOSE: set(names("v", 3)), CONFIRM: set(names("t", 4))}


def test_splits_that_have_the_same_classes_are_one() -> None:
    labels = names("t", 12)
    parts = part_classes(catalog_of(test=labels, train=labels), "test", 3)
    assert not parts.uses_tasks
    assert [parts.count(part) for part in PARTS] == [6, 3, 3]


def test_too_few_classes_are_refused_with_the_numbers() -> None:
    with pytest.raises(InsufficientData, match=r"needs 12 classes .*2 to fit.*5 to choose.*5 others.* the data has 11"):
        part_classes(catalog_of(all=names("c", 11)), None, 5)
    assert part_classes(catalog_of(all=names("c", 12)), None, 5).describe() == (
        "fit on 2 classes, choose on 5 classes, confirm on 5 classes"
    )


def test_the_seed_decides_and_the_order_of_sets_does_not() -> None:
    catalog = catalog_of(all=names("c", 20))
    divisions = [labels_of(part_classes(catalog, None, 3, seed)) for seed in range(4)]
    assert len({tuple(sorted(division[CONFIRM])) for division in divisions}) > 1
    program = (
        "from tests.cures.test_class_parts import *\n"
        "labels = labels_of(part_classes(catalog_of(all=names('c', 20)), None, 3))\n"
        "print({part: sorted(labels[part]) for part in PARTS})"
    )
    expected = {part: sorted(labels) for part, labels in divisions[0].items()}
    assert run_with_another_hash_seed(program).strip() == str(expected)
