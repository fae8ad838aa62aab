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
        return tree_distances(_parents(read_nested(path, what), path), classes, sizes, path)
    if path.suffix == ".txt":
        return euclidean(_rows_of(_cub_table(path, what), classes, path))
    # Names are text, also where they look like numbers: class 007 is not class 7.
    is_csv = path.suffix != ".parquet"
    table = read_csv(path, what, lambda name: name == "parent", texts=1) if is_csv else read_parquet(path, what)
    if table.column_names == ["child", "parent"]:
        children, parents = (_texts(table, name, path) for name in ("child", "parent"))
        return tree_distances(_parents(zip(children, parents, strict=True), path), classes, sizes, path)
    named = _named_rows(table, path)
    if set(table.column_names[1:]) == set(named):
        return _matrix(table, named, classes, path)
    return euclidean(_rows_of(named, classes, path))


def euclidean(points: FloatArray) -> FloatArray:
    """The distances between the rows of [n, d]."""
    from scipy.spatial import distance

    pairwise: FloatArray = distance.squareform(distance.pdist(points))
    return pairwise


def tree_distances(
    parent: Mapping[str, str | None], classes: Sequence[str], sizes: Sequence[int], where: object = "the hierarchy"
) -> FloatArray:
    """Jiang and Conrath's distance, 2 log n(a) - log n(c) - log n(c'), of classes c, c' with lowest common ancestor a.

    n counts the items of the given classes at or below a node; above several roots are all items. A class that is not
    in the tree is an error.
    """
    _require_known(classes, parent.keys(), f"class distances: {where}")
    above = [_ancestors(name, parent, where) for name in classes]
    count: dict[str, int] = {}
    for ancestors, size in zip(above, sizes, strict=True):
        for node in ancestors:
            count[node] = count.get(node, 0) + size
    distances = np.zeros((len(classes), len(classes)))
    for i, first in enumerate(above):
        rank = {node: place for place, node in enumerate(first)}
        for j in range(i):
            common = next((node for node in above[j] if node in rank), None)
            shared = sum(sizes) if common is None else count[common]
            apart = 2 * np.log(shared) - np.log(sizes[i]) - np.log(sizes[j])
            distances[i, j] = distances[j, i] = apart
    return distances


def _ancestors(name: str, parent: Mapping[str, str | None], where: object) -> list[str]:
    """A node and all above it, upwards."""
    found: dict[str, None] = {}
    node: str | None = name
    while node is not None:
        if node in found:
            raise InputError(f"{where}: '{node}' is above itself")
        found[node] = None
        node = parent.get(node)
    return list(found)


def _parents(edges: Iterable[tuple[str | None, str | None]], where: object) -> dict[str, str | None]:
    """Edges to the parent of each node; a node that is only ever a parent is a root."""
    parent: dict[str, str | None] = {}
    roots: dict[str, None] = {}
    for child, above in edges:
        if not child:
            raise InputError(f"{where}: a row has no child")
        if parent.setdefault(child, above or None) != (above or None):
            raise InputError(f"{where}: '{child}' has two parents, '{parent[child]}' and '{above}'")
        if above:
            roots[above] = None
    return {**dict.fromkeys(roots), **parent}


def read_nested(path: Path, what: str) -> list[tuple[str, str | None]]:
    """The edges, (child, parent), of a JSON or TOML file that nests names."""
    nested = read_json(path, what) if path.suffix == ".json" else read_toml(path, what)
    return list(_nested_edges(nested, None, what))


def _nested_edges(value: Any, above: str | None, what: str) -> Iterator[tuple[str, str | None]]:
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


Edge = tuple[str, str]  # child, parent


def read_hierarchy(path: Path, classes: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the classes that each node of a file spans, by its name; those that span none are left out."""
    return spanned(_edges(path, f"hierarchy: file {path}"), classes, path)


def spanned(edges: Iterable[Edge], classes: Sequence[str], where: object) -> dict[str, list[int]]:
    """The numbers of the classes at or below each node; InputError where a class is in no edge, or below itself."""
    parents: dict[str, set[str]] = {}
    for child, parent in edges:
        parents.setdefault(child, set()).add(parent)
        parents.setdefault(parent, set())
    _require_known(classes, parents, f"hierarchy: {where}")
    found: dict[str, list[int]] = {}
    for number, name in enumerate(classes):
        for node in _at_or_above(name, parents, where):
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


def _at_or_above(name: str, parents: dict[str, set[str]], where: object) -> set[str]:
    """A node and all above it."""
    found, waiting = {name}, [name]
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent == name:
                raise InputError(f"hierarchy: {where}: '{name}' is above itself")
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def _edges(path: Path, what: str) -> list[Edge]:
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
