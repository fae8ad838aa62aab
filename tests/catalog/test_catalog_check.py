from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.catalog_check import FILES_PER_CHUNK, Problem, check_catalog
from shotproof.core.runtime.runtime import runtime
from tests.drawn_layers import draw_masked


def make(rows: list[tuple[str, str | None, str]], root: Path = Path()) -> Catalog:
    items, labels, splits = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"item": items, "path": items, "label": labels, "split": splits}
    return Catalog(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), root)


def paint(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)).save(path)


def found(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in problems]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "", " ", None]), st.sampled_from(["s", "t"])), max_size=25),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_the_table_is_judged_as_by_counting(
    pairs: list[tuple[str | None, str]], way: int, shot: int, query: int
) -> None:
    catalog = make([(f"i{n}", label, split) for n, (label, split) in enumerate(pairs)])
    problems = found(check_catalog(catalog, way=way, shot=shot, query=query, read_files=False))
    counts = Counter((label, split) for label, split in pairs if label and label.strip())
    large = Counter(split for (_, split), count in counts.items() if count >= shot + query)
    expected = [("empty-label", f"i{n}") for n, (label, _) in enumerate(pairs) if not label or not label.strip()]
    expected += [
        ("label-in-several-splits", label) for label in "abc" if (label, "s") in counts and (label, "t") in counts
    ]
    expected += [("too-few-classes", s) for s in sorted({s for _, s in pairs}) or ["all"] if large[s] < way]
    expected += [("small-class", label) for (label, _), count in counts.items() if count < shot + query]
    assert Counter(problems) == Counter(expected)


def test_messages_give_the_counts() -> None:
    rows = [(f"i{n}", "jay", "test") for n in range(3)]
    few, small = check_catalog(make(rows), way=5, shot=1, query=15, read_files=False)
    assert few.message == "0 of 1 classes have 16 items or more, 5-way tasks need 5 such classes"
    assert small.message == "3 items in split test, tasks take 1 + 15 per class"


def test_broken_and_missing_files_are_named(tmp_path: Path) -> None:
    paint(tmp_path / "good.png", 0)
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:60])
    (tmp_path / "folder.png").mkdir()
    names = ["good.png", "text.png", "cut.png", "folder.png", "gone.png"]
    catalog = make([(name, "a", "all") for name in names], tmp_path)
    problems = check_catalog(catalog, way=1, shot=1, query=1)
    assert found(problems) == [
        ("unreadable-file", "text.png"),
        ("unreadable-file", "cut.png"),
        ("unreadable-file", "folder.png"),
        ("missing-file", "gone.png"),
    ]


def test_files_with_the_same_content_are_sorted_by_how_bad_that_is(tmp_path: Path) -> None:
    rows = [
        ("same1.png", "a", "s"),
        ("same2.png", "a", "s"),
        ("splits1.png", "a", "s"),
        ("splits2.png", "a", "t"),
        ("labels1.png", "a", "s"),
        ("labels2.png", "b", "t"),
        ("labels3.png", "b", "t"),
        ("alone.png", "b", "s"),
    ]
    for name, _, _ in rows:
        paint(tmp_path / name, seed=int.from_bytes(name[:2].encode(), "big"))
    problems = check_catalog(make(rows, tmp_path), way=1, shot=1, query=1)
    duplicates = [problem for problem in problems if problem.kind.startswith("duplicate")]
    assert found(duplicates) == [
        ("duplicate-across-labels", "labels1.png"),
        ("duplicate-across-splits", "splits1.png"),
        ("duplicate-file", "same1.png"),
    ]
    assert "labels2.png (b, t), labels3.png (b, t)" in duplicates[0].message


def test_a_good_catalog_has_no_problems_and_workers_change_nothing(tmp_path: Path) -> None:
    names = [f"{label}/{n}.png" for label, n in itertools.product("ab", range(FILES_PER_CHUNK))]
    for seed, name in enumerate(names):
        paint(tmp_path / name, seed)
    good = make([(name, name[0], "all") for name in names], tmp_path)
    assert check_catalog(good, way=2, shot=5, query=15, runtime=runtime(workers=2)) == []
    (tmp_path / names[3]).unlink()
    (tmp_path / names[100]).write_bytes((tmp_path / names[5]).read_bytes())
    alone, together = (check_catalog(good, way=2, shot=5, query=15, runtime=runtime(workers=n)) for n in (1, 2))
    assert alone == together
    assert found(alone) == [("missing-file", names[3]), ("duplicate-across-labels", names[5])]


def test_masks_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=2, items=3)
    Image.new("L", (64, 48)).save(tmp_path / "masks" / "0-1.png")
    (tmp_path / "masks" / "1-2.png").unlink()
    problems = check_catalog(catalog, way=2, shot=1, query=1)
    assert found(problems) == [("unusable-mask", "0-1.png"), ("unusable-mask", "1-2.png")]
    assert problems[0].message.endswith("0-1.png is empty")
    numbered = catalog.table.drop_columns(["mask"]).append_column("mask", pa.array(range(6)))
    assert check_catalog(Catalog(numbered, tmp_path), way=2, shot=1, query=1) == []


@pytest.mark.parametrize("workers", [None, 1])
def test_an_empty_catalog_is_a_problem(workers: int | None) -> None:
    problems = check_catalog(make([]), way=1, shot=1, query=1, runtime=runtime(workers=workers))
    assert found(problems) == [("too-few-classes", "all")]
