"""Distances between classes from every kind of file, against numbers worked out by hand or by SciPy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import cdist

from shotproof.core.errors import InputError
from shotproof.tasks.class_structure import read_class_distances

CLASSES, SIZES = ["cat", "dog", "oak"], [10, 20, 5]
TREE = "child,parent\ncat,animal\ndog,animal\nwolf,animal\noak,plant\nanimal,life\nplant,life\n"
NESTED = {"life": {"animal": ["cat", "dog", "wolf"], "plant": {"oak": {}}}}


def jiang_conrath(common: int, a: int, b: int) -> float:
    return 2 * math.log(common) - math.log(a) - math.log(b)


def written(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tree.csv", TREE),
        ("rooted.csv", TREE + "life,\n"),
        ("forest.csv", "child,parent\ncat,animal\ndog,animal\noak,plant\n"),
        ("tree.json", json.dumps(NESTED)),
        ("tree.toml", "[life]\nanimal = ['cat', 'dog', 'wolf']\n[life.plant]\noak = {}\n"),
    ],
)
def test_a_tree_gives_jiang_and_conraths_distance(tmp_path: Path, name: str, text: str) -> None:
    distances = read_class_distances(written(tmp_path, name, text), CLASSES, SIZES)
    near, far, farther = jiang_conrath(30, 10, 20), jiang_conrath(35, 10, 5), jiang_conrath(35, 20, 5)
    np.testing.assert_allclose(distances, [[0, near, far], [near, 0, farther], [far, farther, 0]], atol=1e-12)


def test_a_class_above_another_is_its_own_ancestor(tmp_path: Path) -> None:
    path = written(tmp_path, "tree.csv", "child,parent\nwolf,dog\ndog,animal\n")
    distances = read_class_distances(path, ["dog", "wolf"], [6, 2])
    assert distances[0, 1] == pytest.approx(jiang_conrath(8, 6, 2))


def test_names_that_look_like_numbers_are_names(tmp_path: Path) -> None:
    path = written(tmp_path, "tree.csv", "child,parent\n007,1\n7,1\n08,2\n")
    distances = read_class_distances(path, ["007", "7", "08"], SIZES)
    assert distances[0, 1] == pytest.approx(jiang_conrath(30, 10, 20))
    assert distances[0, 2] == pytest.approx(jiang_conrath(35, 10, 5))


def test_a_matrix_is_taken_as_it_is_whatever_the_order(tmp_path: Path) -> None:
    text = "class,oak,cat,elm,dog\ndog,3,1,9,0\ncat,2,0,9,1\noak,0,2,9,3\nelm,9,9,0,9\n"
    distances = read_class_distances(written(tmp_path, "matrix.csv", text), CLASSES, SIZES)
    assert distances.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    columns = {"class": CLASSES, "cat": [0.0, 1, 2], "dog": [1.0, 0, 3], "oak": [2.0, 3, 0]}
    pq.write_table(pa.table(columns), tmp_path / "matrix.parquet")
    assert read_class_distances(tmp_path / "matrix.parquet", CLASSES, SIZES).tolist() == distances.tolist()


def test_class_attributes_give_euclidean_distances(tmp_path: Path) -> None:
    values = np.array([[1.0, 2.5, 0], [3, 0, 1], [0, 0, 7]])
    rows = "".join(f"{name},{','.join(map(str, row))}\n" for name, row in zip(CLASSES, values, strict=True))
    table = written(tmp_path, "table.csv", f"class,red,blue,wings\n{rows}elm,1,1,1\n")
    np.testing.assert_allclose(read_class_distances(table, CLASSES, SIZES), cdist(values, values))
    (tmp_path / "attributes").mkdir()
    written(tmp_path, "classes.txt", "1 cat\n2 oak\n3 dog\n")
    lines = "\n".join(" ".join(map(str, values[row])) for row in (0, 2, 1))
    path = written(tmp_path, "attributes/class_attribute_labels_continuous.txt", lines)
    np.testing.assert_allclose(read_class_distances(path, CLASSES, SIZES), cdist(values, values))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "child,parent\ncat,x\ndogg,x\noak,x\n", "lacks class 'dog' .*: did you mean 'dogg'"),
        ("t.csv", "child,parent\ncat,x\n", "lacks class 'dog' and 1 more class of"),
        ("t.csv", TREE + "life,cat\n", "'cat' is its own ancestor"),
        ("t.csv", TREE + "oak,animal\n", "'oak' has two parents, 'plant' and 'animal'"),
        ("t.csv", TREE + ",life\n", "a row has no child"),
        ("t.csv", "class,a,b\ncat,1,2\ndog,1,2\n", "lacks class 'oak'"),
        ("t.csv", "class,a\ncat,1\ncat,1\n", "each class once"),
        ("t.csv", "class,a\ncat,red\ndog,blue\noak,green\n", "column 'a': expected numbers, found string"),
        ("t.csv", "class,a\ncat,1\ndog,\noak,2\n", "column 'a' has an empty value"),
        (
            "t.csv",
            "class,cat,dog,oak\ncat,0,1,2\ndog,1,0,3\noak,9,3,0\n",
            "from 'cat' to 'oak' is 2, but 9 in the other direction",
        ),
        ("t.csv", "class,cat,dog,oak\ncat,1,1,2\ndog,1,0,3\noak,2,3,0\n", "and 0 from a class to itself"),
        ("t.csv", "class,a\ncat,1\ndog,inf\noak,2\n", "not finite"),
        ("t.csv", "", "CSV"),
        ("t.json", "[" * 100_000, "deeper than 100"),
        ("t.json", "{", "is not .* JSON"),
        ("t.json", '{"cat": 3}', "expected nested names"),
        ("t.toml", "a = ", "is not .* TOML"),
        ("t.parquet", "no parquet", "Parquet"),
        ("t.txt", "1 2\n", "needs a classes.txt"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_class_distances(written(tmp_path, name, text), CLASSES, SIZES)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tree\.csv"):
        read_class_distances(tmp_path / "tree.csv", CLASSES, SIZES)


def test_lines_and_names_that_do_not_fit(tmp_path: Path) -> None:
    written(tmp_path, "classes.txt", "1 cat\n2 oak\n")
    with pytest.raises(InputError, match=r"1 lines.* 2 classes"):
        read_class_distances(written(tmp_path, "values.txt", "1 2\n"), CLASSES, SIZES)
