"""Features of the changed items of task sets, beside those of all items."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from shotproof.core.errors import UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.pipeline.encode_tasks import describe_changed_items, encode, with_changed_items
from shotproof.tasks.sampler import sample
from tests.drawn_layers import draw_masked

DESIGN = {"way": 3, "shot": 1, "query": 2, "tasks": 5}


def test_all_items_and_the_changed_ones_of_all_sets_are_encoded(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path)
    random = sample(catalog, "random", **DESIGN)  # type: ignore[arg-type]
    sets = [sample(catalog, f"changed(change='{name}')", like=random) for name in ("blur", "only-background")]
    features = encode(catalog, "pixels(size=4)", tasks=[random, *sets], runtime=Runtime(cache=None))
    names = features.table.column("item").to_pylist()
    assert names[: len(catalog)] == catalog.items
    assert set(names[len(catalog) :]) == {
        f"{item} @ {change}" for item in catalog.items for change in ("blur", "only-background")
    }
    for tasks in (random, *sets):
        assert len(evaluate(tasks, features, "ncc").table) == 15


def test_sets_without_changes_add_nothing(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path)
    random = sample(catalog, "random", **DESIGN)  # type: ignore[arg-type]
    assert with_changed_items(catalog, [random]) is catalog


def test_changed_items_are_counted_by_change_whatever_their_plates(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=5)
    random = sample(catalog, "random", **DESIGN)  # type: ignore[arg-type]
    names = ("blur", "noise(severity=5)", "mixed-same")
    sets = [sample(catalog, "changed", like=random)]
    sets = [sample(catalog, f"changed(change='{name}')", like=random) for name in names]
    described = describe_changed_items(with_changed_items(catalog, sets))
    assert described == "120 changed items: 80 of mixed-same; 20 each of blur and noise(severity=5)"


def test_one_set_need_not_be_in_a_list(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=5)
    blurred = sample(catalog, "changed", like=sample(catalog, "random", **DESIGN))  # type: ignore[arg-type]
    assert len(encode(catalog, "pixels(size=2)", tasks=blurred, runtime=Runtime(cache=None))) == 2 * len(catalog)


@pytest.mark.parametrize("change", ["mixed-random", "mixed-rival"])
def test_plates_of_other_items_are_found(tmp_path: Path, change: str) -> None:
    catalog = draw_masked(tmp_path, items=5)
    random = sample(catalog, "random", **DESIGN)  # type: ignore[arg-type]
    tasks = sample(catalog, f"changed(change='{change}')", like=random)
    features = encode(catalog, "pixels(size=2)", tasks=tasks, runtime=Runtime(cache=None))
    assert evaluate(tasks, features, "ncc").methods == ["ncc"]


def test_masks_that_tell_nothing_are_refused_or_left_out_as_asked(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=5)
    random = sample(catalog, "random", **DESIGN)  # type: ignore[arg-type]
    tasks = sample(catalog, "changed(change='only-foreground')", like=random)
    Image.new("L", (64, 48), 0).save(tmp_path / "masks" / "1-2.png")
    with pytest.raises(UnreadableItem, match=r"1-2\.png is empty"):
        encode(catalog, "pixels(size=2)", tasks=tasks, runtime=Runtime(cache=None))
    features = encode(catalog, "pixels(size=2)", tasks=tasks, on_error="skip", runtime=Runtime(cache=None))
    assert list(features.record.skipped) == ["1-2.png @ only-foreground"]
