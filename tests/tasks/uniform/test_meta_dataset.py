"""Ways, shots and queries against the published rules, written out task by task."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.meta_dataset import MetaDataset
from tests.tasks.uniform.test_depletion import catalog_of

SIZES = [2, 3, 7, 18, 19, 20, 30, 60, 130, 400, 5, 21, 22, 23, 24]


@pytest.fixture(scope="module")
def tasks() -> TaskSet:
    """10,000 tasks of classes of very unequal sizes, one of them too small to take part."""
    return sample(catalog_of([*SIZES, 1]), "meta-dataset", tasks=10_000)


def lengths(tasks: TaskSet, column: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.diff(tasks.table.column(column).combine_chunks().offsets.to_numpy()).astype(np.int64)


def by_task(tasks: TaskSet, values: Any) -> list[Any]:
    return np.split(values, tasks.starts[1:-1])


def class_sizes(tasks: TaskSet) -> Any:
    return np.array([SIZES[int(label[5:])] for label in tasks.table.column("label").to_pylist()])


def test_ways_are_uniform_and_classes_are_too(tasks: TaskSet) -> None:
    ways = np.diff(tasks.starts)
    values, counts = np.unique(ways, return_counts=True)
    assert values.tolist() == list(range(5, 16))
    assert stats.chisquare(counts).pvalue > 1e-4
    labels, counts = np.unique(tasks.table.column("label").to_pylist(), return_counts=True)
    assert len(labels) == 15
    assert "class15" not in labels
    assert stats.chisquare(counts).pvalue > 1e-4
    assert tasks.record.summary["classes_left_out"] == ["class15"]


def test_the_most_ways_are_fifty() -> None:
    ways = np.diff(sample(catalog_of([4] * 60), "meta-dataset", tasks=2000).starts)
    counts = np.unique(ways, return_counts=True)[1]
    assert (ways.min(), ways.max(), len(counts)) == (5, 50, 46)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_queries_are_ten_or_half_of_the_smallest_class(tasks: TaskSet) -> None:
    for sizes, queries in zip(by_task(tasks, class_sizes(tasks)), by_task(tasks, lengths(tasks, "query")), strict=True):
        assert set(queries) == {min(10, min(sizes) // 2)}


def test_shots_and_support_sizes_keep_their_bounds(tasks: TaskSet) -> None:
    groups = zip(
        *(by_task(tasks, v) for v in (class_sizes(tasks), lengths(tasks, "query"), lengths(tasks, "support"))),
        strict=True,
    )
    for sizes, queries, shots in groups:
        left = sizes - queries
        assert (shots >= 1).all()
        assert (shots <= left).all()
        # beta is below 1, so a class wants at most min(100, n - q) items, and the floor takes what is not whole.
        assert shots.sum() <= min(500, np.minimum(100, left).sum())
        # p_c is between the smallest and the largest share that weights within [1/2, 2) allow.
        others = sizes.sum() - sizes
        most = 2 * sizes / (2 * sizes + others / 2)
        assert (shots <= most * (500 - len(sizes)) + 1).all()


def test_shots_follow_the_formulas_for_the_drawn_beta_and_weights() -> None:
    """With all classes equal and large, the support's size has a known distribution: way times floor(beta 100 + 1)."""
    tasks = sample(catalog_of([300] * 5), "meta-dataset", tasks=4000)
    shots = lengths(tasks, "support").reshape(-1, 5)
    assert set(lengths(tasks, "query")) == {10}
    size = shots.sum(axis=1)
    # floor loses less than one of each class, and size - way is shared out
    assert size.max() <= 500
    assert stats.kstest((size + 2) / 500, "uniform").statistic < 0.03
    large = shots[size > 400]
    share = large / large.sum(axis=1, keepdims=True)
    # weights in [1/2, 2): one class has at most 2 / (2 + 4/2) and at least 1/2 / (1/2 + 4 * 2) of the rest
    assert share.max() < 0.5 + 0.01
    assert share.min() > 1 / 17 - 0.01
    # log-weights are uniform: the ratio of two shares is log-triangular on (1/4, 4), with variance log(4)^2 / 6
    ratios = np.log((large[:, 0] - 0.5) / (large[:, 1] - 0.5))
    assert np.abs(ratios.mean()) < 4 * np.sqrt(np.log(4) ** 2 / 6 / len(ratios))
    assert ratios.var() == pytest.approx(np.log(4) ** 2 / 6, rel=0.1)


def test_items_are_drawn_uniformly() -> None:
    tasks = sample(catalog_of([12] * 6), "meta-dataset", tasks=2000)
    for side in ("support", "query"):
        items = tasks.table.column(side).combine_chunks().flatten().to_pylist()
        counts = np.unique(items, return_counts=True)[1]
        assert len(counts) == 72
        assert stats.chisquare(counts).pvalue > 1e-4


def test_with_sources_the_support_takes_what_the_queries_leave() -> None:
    sources = [f"s{i // 4}" for i in range(6 * 12)]
    catalog = catalog_of([12] * 6, sources)
    source = dict(zip(catalog.items, sources, strict=True))
    for row in sample(catalog, MetaDataset(max_query=2), tasks=200).table.to_pylist():
        assert not {source[i] for i in row["support"]} & {source[i] for i in row["query"]}
        assert len(row["query"]) == 2


def test_limits_are_options_and_recorded() -> None:
    options = {"max_way": 6, "max_query": 3, "max_shot": 2, "max_support": 8}
    tasks = sample(catalog_of([40] * 9), MetaDataset(**options), tasks=300)
    assert np.diff(tasks.starts).max() == 6
    assert set(lengths(tasks, "query")) == {3}
    assert max(shots.sum() for shots in by_task(tasks, lengths(tasks, "support"))) <= 8
    assert options.items() <= tasks.record.options.items()
    assert (tasks.record.way, tasks.record.shot, tasks.record.query) == (None, None, None)


@pytest.mark.parametrize(
    ("sizes", "options", "error", "message"),
    [
        ([5] * 4 + [1], {}, InsufficientData, "5 classes with 2 items or more, the data has 4"),
        ([5] * 5, {"max_way": 4}, InputError, "max_way: expected a whole number from 5 to 10,000,000, found 4"),
        (
            [5] * 5,
            {"max_support": 20},
            InputError,
            r"max_support: expected .*at least max_way \(50\), found 20",
        ),
    ],
)
def test_bad_input(sizes: list[int], options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sample(catalog_of(sizes), MetaDataset(**options))


def test_queries_that_use_up_all_sources_are_an_error() -> None:
    catalog = catalog_of([6] * 5, [f"s{i // 6}" for i in range(30)])
    with pytest.raises(InsufficientData, match=r"class 'class0\d': in 100 draws, 3 queries of its 6 items"):
        MetaDataset().bind(catalog, TaskShape(), 0).draw(range(1))


# n1 spans 0 to 6, n2 spans 4 to 11 (two parents for 4 to 6), n3 spans as many as n2, n4 too few, and the root all.
EDGES = {
    "root": ["n1", "n3", "n4"],
    "n1": [f"class{c:02d}" for c in range(7)],
    "n3": ["n2"],
    "n2": [f"class{c:02d}" for c in range(4, 12)],
    "n4": [f"class{c:02d}" for c in range(12, 15)],
}
SPANNED = {"n1": range(7), "n2": range(4, 12), "root": range(15)}


def write_edges(folder: Path, kind: str) -> Path:
    """The hierarchy in WordNet's form or as a table."""
    pairs = [(parent, child) for parent, children in EDGES.items() for child in children]
    file = folder / f"is_a.{kind}"
    lines = [f"{p} {c}" for p, c in pairs] if kind == "txt" else ["child,parent", *(f"{c},{p}" for p, c in pairs)]
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_a_task_has_the_classes_of_one_node(tmp_path: Path, kind: str) -> None:
    catalog = catalog_of([6] * 15)
    drawn = sample(catalog, MetaDataset(hierarchy=write_edges(tmp_path, kind), max_way=7), tasks=900)
    rows = drawn.table.to_pylist()
    nodes, labels = [], Counter[str]()
    for start, stop in zip(drawn.starts[:-1], drawn.starts[1:], strict=True):
        (node,) = {row["node"] for row in rows[start:stop]}
        own = [int(row["label"][5:]) for row in rows[start:stop]]
        # All of its classes, or as many of them as a task may have.
        assert len(set(own)) == min(7, len(SPANNED[node]))
        assert set(own) <= set(SPANNED[node])
        nodes.append(node)
        labels.update(own if node == "root" else [])
    counts = Counter(nodes)
    assert set(counts) == set(SPANNED)  # n3 is n2 again, n4 has too few
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    assert stats.chisquare(list(labels.values())).pvalue > 1e-4
    assert len(labels) == 15


def test_nodes_of_too_many_classes_are_not_drawn(tmp_path: Path) -> None:
    sampler = MetaDataset(hierarchy=str(write_edges(tmp_path, "txt")), max_leaves=8)
    drawn = sample(catalog_of([6] * 15), sampler, tasks=50)
    assert set(drawn.table.column("node").to_pylist()) == {"n1", "n2"}
    assert drawn.record.summary["classes_left_out"] == ["class12", "class13", "class14"]


def test_a_hierarchy_that_has_changed_is_refused(tmp_path: Path) -> None:
    file = write_edges(tmp_path, "txt")
    drawn = sample(catalog_of([6] * 15), MetaDataset(hierarchy=str(file)), tasks=2)
    file.write_text(file.read_text() + "n5 class00\n")
    with pytest.raises(Mismatch, match="the tasks were drawn with"):
        sample(catalog_of([6] * 15), {"name": "meta-dataset", **drawn.record.options}, tasks=2)


def test_a_task_has_the_characters_of_one_alphabet() -> None:
    sizes = {"Greek": 9, "Latin": 6, "Short": 4}
    names = [f"{alphabet}/char{c:02d}" for alphabet, count in sizes.items() for c in range(count)]
    items = [f"images/{name}/{i}.png" for name in names for i in range(8)]
    labels = [item[len("images/") :].rpartition("/")[0] for item in items]
    columns = {"item": items, "path": items, "label": labels, "split": ["test"] * len(items)}
    drawn = sample(Catalog(pa.table(columns)), "meta-dataset(folders=True)", tasks=2000)
    ways: dict[str, list[int]] = {}
    for start, stop in zip(drawn.starts[:-1], drawn.starts[1:], strict=True):
        rows = drawn.table.slice(int(start), int(stop - start)).to_pylist()
        (alphabet,) = {row["label"].split("/")[0] for row in rows}
        assert {row["node"] for row in rows} == {alphabet}
        ways.setdefault(alphabet, []).append(len(rows))
    assert stats.binomtest(len(ways["Greek"]), 2000).pvalue > 1e-4
    for alphabet, found in ways.items():
        counts = np.bincount(found)[5:]
        assert len(counts) == sizes[alphabet] - 4
        assert stats.chisquare(counts).pvalue > 1e-4
    assert set(ways) == {"Greek", "Latin"}
    # Where labels are the folders of the characters alone, the alphabet is the folder above.
    short = [item.split("/")[1] + item.split("/")[2][-2:] for item in items]
    moved = [f"images/{item.split('/')[1]}/{label}/{item[-5:]}" for item, label in zip(items, short, strict=True)]
    again = sample(
        Catalog(pa.table({**columns, "path": moved, "label": short})), "meta-dataset(folders=True)", tasks=50
    )
    assert set(again.table.column("node").to_pylist()) == {"Greek", "Latin"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, InputError, "hierarchy: file .* does not exist"),
        ("a b c\n", InputError, "line 1: expected a parent .*found 'a b c'"),
        ("root class00\nroot class0l\n", InputError, "lacks class 'class01' and 4 more classes .* mean 'class0l'"),
        (
            "".join(f"class{c:02d} class{(c + 1) % 6:02d}\n" for c in range(6)),
            InputError,
            "'class00' is its own ancestor",
        ),
        ("".join(f"n{c} class{c:02d}\n" for c in range(6)), InsufficientData, "at least 5 classes .* of 12 has 1"),
    ],
)
def test_bad_hierarchies(tmp_path: Path, text: str | None, error: type[Exception], message: str) -> None:
    file = tmp_path / "is_a.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(error, match=message):
        sample(catalog_of([6] * 6), MetaDataset(hierarchy=str(file)), tasks=2)


def test_folders_and_a_hierarchy_exclude_each_other() -> None:
    catalog = catalog_of([6] * 6)
    with pytest.raises(InputError, match="hierarchy or folders, not both"):
        sample(catalog, MetaDataset(hierarchy="is_a.txt", folders=True))
    flat = catalog.table.set_column(1, "path", pa.array([item.replace("/", "-") for item in catalog.items]))
    with pytest.raises(InputError, match="folders: class 'class00' is in no folder"):
        sample(Catalog(flat), "meta-dataset(folders=True)", tasks=2)
