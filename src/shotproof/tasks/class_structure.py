"""How far apart classes are: from a hierarchy, a matrix, a table of class attributes, or features.

A file of one of these kinds, told apart by its content:

- a tree: CSV with the columns `child,parent`, or JSON or TOML that nests names, leaves being lists or empty;
- a matrix: CSV or Parquet, one row per class with its name in the first column, and one column per class;
- class attributes: CSV or Parquet, one row per class with its name in the first column, and one column per
  attribute; or CUB's `class_attribute_labels_continuous.txt`, whose names are in the `classes.txt` of its
  folder or the one above.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, did_you_mean, first_line
from shotproof.core.plain_values import shown
from shotproof.core.storage.files import LARGEST_TEXT, read_json, read_text, read_toml, require_file
from shotproof.core.tables import conform, read_parquet

Edge = tuple[str | None, str | None]  # child, parent; a root has no parent

_CUB_NAMES = "classes.txt"


def read_class_distances(path: Path, classes: Sequence[str], sizes: Sequence[int]) -> FloatArray:
    """The distances between these classes, [classes, classes], from a file; `sizes` are their numbers of items.

    A tree gives Jiang and Conrath's distance, a matrix what it says, attributes the Euclidean distance of their rows.
    """
    require_file(path, f"class distances: file {path}", LARGEST_TEXT)
    distances = _read(path, classes, sizes)
    if not np.isfinite(distances).all():
        raise InputError(f"class distances: {path} has a number that is not finite")
    return distances


def _read(path: Path, classes: Sequence[str], sizes: Sequence[int]) -> FloatArray:
    """By the kind of file."""
    what = f"class distances: file {path}"
    if path.suffix in (".json", ".toml"):
        return tree_distances(read_nested(path, what), classes, sizes, f"class distances: {path}")
    if path.suffix == ".txt":
        return euclidean(_rows_of(_cub_table(path, what), classes, path))
    # Names are text, also where they look like numbers: class 007 is not class 7.
    is_csv = path.suffix != ".parquet"
    table = read_csv(path, what, lambda name: name == "parent", texts=1) if is_csv else read_parquet(path, what)
    if table.column_names == ["child", "parent"]:
        children, parents = (_texts(table, name, path) for name in ("child", "parent"))
        edges = list(zip(children, parents, strict=True))
        return tree_distances(edges, classes, sizes, f"class distances: {path}")
    named = _named_rows(table, path)
    if set(table.column_names[1:]) == set(named):
        return _matrix(table, named, classes, path)
    return euclidean(_rows_of(named, classes, path))


def euclidean(points: FloatArray) -> FloatArray:
    """The distances between the rows of [n, d]."""
    from scipy.spatial import distance

    pairwise: FloatArray = distance.squareform(distance.pdist(points))
    return pairwise


def tree_distances(edges: Sequence[Edge], classes: Sequence[str], sizes: Sequence[int], where: str) -> FloatArray:
    """Jiang and Conrath's distance, 2 log n(a) - log n(c) - log n(c'), of classes c, c' with lowest common ancestor a.

    n counts the items of the given classes at or below a node; above several roots are all items. A class that is not
    in the tree is an error.
    """
    parent_of: dict[str, str] = {}
    for child, parent in edges:
        if not child:
            raise InputError(f"{where}: a row has no child")
        if parent_of.setdefault(child, parent or "") != (parent or ""):
            raise InputError(f"{where}: '{child}' has two parents, '{parent_of[child]}' and '{parent}'")
    # Of the nodes above two classes, the lowest has the fewest items.
    items = np.asarray(sizes)
    shared = np.full((len(classes), len(classes)), items.sum())
    for members in spanned(edges, classes, where).values():
        both = np.ix_(members, members)
        shared[both] = np.minimum(shared[both], items[members].sum())
    distances = 2 * np.log(shared) - np.log(items)[:, None] - np.log(items)
    lower: FloatArray = np.tril(distances, -1)
    return lower + lower.T


def read_nested(path: Path, what: str) -> list[Edge]:
    """The edges, (child, parent), of a JSON or TOML file that nests names."""
    nested = read_json(path, what) if path.suffix == ".json" else read_toml(path, what)
    return list(_nested_edges(nested, None, what))


def _nested_edges(value: Any, above: str | None, what: str) -> Iterator[Edge]:
    if not isinstance(value, dict | list):
        raise InputError(f"{what}: expected nested names, found {shown(value)}")
    entries = value.items() if isinstance(value, dict) else [(name, {}) for name in value]
    for name, below in entries:
        if not isinstance(name, str) or not isinstance(below, (dict, list, type(None))):
            found = shown(below if isinstance(name, str) else name)
            place = f"{what}, '{above}'" if above else what
            raise InputError(f"{place}: expected nested names with lists or nothing at the leaves, found {found}")
        yield name, above
        if below:
            yield from _nested_edges(below, name, what)


def _texts(table: pa.Table, name: str, path: Path) -> list[str | None]:
    """A column of names, which may be numbers."""
    try:
        texts: list[str | None] = table.column(name).cast(pa.string()).to_pylist()
    except pa.ArrowException as error:
        kind = table.schema.field(name).type
        raise InputError(f"class distances: {path}, column '{name}': expected names, found {kind}") from error
    return texts


def names_beside(path: Path) -> Path | None:
    """The file with the names of the classes, where class distances are CUB's and it is there."""
    files = [folder / _CUB_NAMES for folder in path.resolve().parents[:2] if path.suffix == ".txt"]
    return next((file for file in files if file.is_file()), None)


def _cub_table(path: Path, what: str) -> dict[str, FloatArray]:
    """One line per class, numbers only; `classes.txt` names the classes by the number of their line."""
    found = names_beside(path)
    if found is None:
        raise InputError(
            f"class distances: {path} needs a {_CUB_NAMES} in its folder or the one above, with one line per class"
        )
    lines = [line.split(maxsplit=1) for line in read_text(found, what).splitlines() if line.strip()]
    names = [line[-1].strip() for line in lines]
    try:
        values = np.loadtxt(io.StringIO(read_text(path, what)), ndmin=2)
    except ValueError as error:
        raise InputError(f"{what}: expected numbers: {first_line(error)}") from error
    if len(names) != len(values):
        raise InputError(f"class distances: {path} has {len(values)} lines, {found} has {len(names)} classes")
    return dict(zip(names, values, strict=True))


def _named_rows(table: pa.Table, path: Path) -> dict[str, FloatArray]:
    """Each row's numbers by the name in its first column."""
    if not table.column_names:
        raise InputError(f"class distances: {path} has no columns")
    names = _texts(table, table.column_names[0], path)
    numbers = table.select(table.column_names[1:])
    for name in numbers.column_names:
        kind = numbers.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise InputError(
                f"class distances: {path}, column '{name}': expected numbers, found {kind}; a file is a tree (columns "
                "child,parent), a matrix or a table of class attributes (classes in the first column, then numbers)"
            )
        if numbers.column(name).null_count:
            raise InputError(f"class distances: {path}, column '{name}' has an empty value")
    if len(set(names)) < len(names) or None in names or not numbers.column_names:
        raise InputError(f"class distances: {path}: expected each class once in the first column, then numbers")
    values = np.stack([column.cast(pa.float64()).to_numpy() for column in numbers.columns], axis=1)
    return {str(name): row for name, row in zip(names, values, strict=True)}


def _rows_of(named: Mapping[str, FloatArray], classes: Sequence[str], where: object) -> FloatArray:
    _require_known(classes, named, f"class distances: {where}")
    return np.stack([named[name] for name in classes])


def _matrix(table: pa.Table, named: Mapping[str, FloatArray], classes: Sequence[str], path: Path) -> FloatArray:
    columns = {name: place for place, name in enumerate(table.column_names[1:])}
    matrix = _rows_of(named, classes, path)[:, [columns[name] for name in classes]]
    if (matrix < 0).any() or np.diagonal(matrix).any():
        raise InputError(f"class distances: {path}: expected numbers from 0 up, and 0 from a class to itself")
    if not np.allclose(matrix, matrix.T):
        i, j = np.argwhere(~np.isclose(matrix, matrix.T))[0]
        raise InputError(
            f"class distances: {path}: from '{classes[i]}' to '{classes[j]}' it is {matrix[i, j]:g}, the other way "
            f"{matrix[j, i]:g}"
        )
    return (matrix + matrix.T) / 2


def _require_known(classes: Sequence[str], known: Any, where: object) -> None:
    unknown = [name for name in classes if name not in known]
    if unknown:
        more = f" and {len(unknown) - 1} more classes" if len(unknown) > 1 else ""
        raise InputError(
            f"{where} lacks the class '{unknown[0]}'{more} of the catalog"
            f"{did_you_mean(unknown[0], [name for name in known if name not in classes])}"
        )


def read_hierarchy(path: Path, classes: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the classes that each node of a file spans, by its name; those that span none are left out."""
    return spanned(_edges(path, f"hierarchy: file {path}"), classes, f"hierarchy: {path}")


def spanned(edges: Iterable[Edge], classes: Sequence[str], where: str) -> dict[str, list[int]]:
    """The numbers of the classes at or below each node; InputError where a class is in no edge, or one below itself."""
    parents: dict[str, set[str]] = {}
    for child, parent in edges:
        parents.setdefault(child or "", set()).update([parent] if parent else [])
        parents.setdefault(parent or child or "", set())
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        circle = error.args[1]
        first = next((name for name in classes if name in circle), circle[0])
        raise InputError(f"{where}: '{first}' is above itself") from error
    _require_known(classes, parents, where)
    found: dict[str, list[int]] = {}
    for number, name in enumerate(classes):
        above, waiting = {name}, [name]
        while waiting:
            new = parents[waiting.pop()] - above
            above |= new
            waiting += new
        for node in above:
            found.setdefault(node, []).append(number)
    return found


def folders_of(classes: Sequence[str], paths: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the classes in each folder; `paths` has an item's path for each class.

    The folder of the class `Greek/alpha` is `Greek`. A class whose name is that of a folder is in the one above.
    """
    found: dict[str, list[int]] = {}
    for number, (name, path) in enumerate(zip(classes, paths, strict=True)):
        above = name.rpartition("/")[0]
        if not above:
            folders = PurePosixPath(path).parts[:-1]
            place = folders.index(name) if name in folders else 0
            above = folders[place - 1] if place else ""
        if not above:
            raise InputError(f"folders: class '{name}' is in no folder: its first item is {path}")
        found.setdefault(above, []).append(number)
    return found


def _edges(path: Path, what: str) -> Sequence[Edge]:
    if path.suffix in (".json", ".toml"):
        return [(child, parent) for child, parent in read_nested(path, what) if parent is not None]
    if path.suffix == ".csv":
        table = conform(read_csv(path, what, is_text=lambda name: True), {"child": "string", "parent": "string"}, what)
        rows = zip(table.column("child").to_pylist(), table.column("parent").to_pylist(), strict=True)
        return [(child, parent) for child, parent in rows if child and parent]
    edges = []
    for number, line in enumerate(read_text(path, what).splitlines(), 1):
        names = line.split()
        if names and len(names) != 2:
            raise InputError(f"{what}, line {number}: expected a parent and a child, found {shown(line.strip())}")
        if names:
            edges.append((names[1], names[0]))
    return edges
