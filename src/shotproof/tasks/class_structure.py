"""Distances between classes, from a tree, a matrix, class attributes or features; and class hierarchies.

A file of class distances is of one of these kinds, recognized by its content:

- a tree: CSV with the columns `child,parent`, or JSON or TOML that nests names, leaves being lists or empty;
- a matrix: CSV or Parquet, one row per class with its name in the first column, and one column per class;
- class attributes: CSV or Parquet, one row per class with its name in the first column, and one column per
  attribute; or CUB's `class_attribute_labels_continuous.txt`, with the names in a `classes.txt` in its folder
  or the folder above.
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
from shotproof.core.nouns import counted
from shotproof.core.plain_values import format_value
from shotproof.core.storage.files import LARGEST_TEXT, read_json, read_text, read_toml, require_file
from shotproof.core.tables import conform, read_parquet

Edge = tuple[str | None, str | None]  # child, parent; a root has no parent

_CUB_NAMES = "classes.txt"


def read_class_distances(path: Path, classes: Sequence[str], sizes: Sequence[int]) -> FloatArray:
    """Read the distances between classes, [classes, classes], from a file.

    A tree gives Jiang and Conrath's distance, a matrix its entries, attributes the Euclidean distances between rows.

    Args:
        path: the file
        classes: names of the classes
        sizes: number of items of each class
    """
    require_file(path, f"class distances: file {path}", LARGEST_TEXT)
    distances = _read(path, classes, sizes)
    if not np.isfinite(distances).all():
        raise InputError(f"class distances: {path} has a number that is not finite")
    return distances


def _read(path: Path, classes: Sequence[str], sizes: Sequence[int]) -> FloatArray:
    """Read distances, depending on the kind of file."""
    description = f"class distances: file {path}"
    if path.suffix in (".json", ".toml"):
        return tree_distances(read_nested(path, description), classes, sizes, f"class distances: {path}")
    if path.suffix == ".txt":
        return euclidean(_select_rows(_cub_table(path, description), classes, path))
    # Names are text even if they look like numbers: class 007 is not class 7.
    if path.suffix == ".parquet":
        table = read_parquet(path, description)
    else:
        table = read_csv(path, description, lambda name: name == "parent", text_columns=1)
    if table.column_names == ["child", "parent"]:
        children, parents = (_text_column(table, name, path) for name in ("child", "parent"))
        edges = list(zip(children, parents, strict=True))
        return tree_distances(edges, classes, sizes, f"class distances: {path}")
    row_of_class = _rows_by_class(table, path)
    if set(table.column_names[1:]) == set(row_of_class):
        return _matrix(table, row_of_class, classes, path)
    return euclidean(_select_rows(row_of_class, classes, path))


def euclidean(points: FloatArray) -> FloatArray:
    """Compute the Euclidean distances between the rows of an array [n, d]."""
    from scipy.spatial import distance

    pairwise: FloatArray = distance.squareform(distance.pdist(points))
    return pairwise


def tree_distances(edges: Sequence[Edge], classes: Sequence[str], sizes: Sequence[int], location: str) -> FloatArray:
    """Compute Jiang and Conrath's distance, 2 log n(a) - log n(c) - log n(c'), between all pairs of classes c, c'.

    a is the lowest common ancestor of c and c', and n(node) counts the items of `classes` at or below a node. If a
    tree has several roots, they count as children of one node with all items.

    Raises:
        InputError: a class is not in the tree, or a node has no name or two parents.
    """
    parent_of: dict[str, str] = {}
    for child, parent in edges:
        if not child:
            raise InputError(f"{location}: a row has no child")
        if parent_of.setdefault(child, parent or "") != (parent or ""):
            raise InputError(f"{location}: '{child}' has two parents, '{parent_of[child]}' and '{parent}'")
    # Of all common ancestors of two classes, the lowest has the fewest items.
    items = np.asarray(sizes)
    shared = np.full((len(classes), len(classes)), items.sum())
    for members in classes_of_nodes(edges, classes, location).values():
        both = np.ix_(members, members)
        shared[both] = np.minimum(shared[both], items[members].sum())
    distances = 2 * np.log(shared) - np.log(items)[:, None] - np.log(items)
    lower: FloatArray = np.tril(distances, -1)
    return lower + lower.T


def read_nested(path: Path, description: str) -> list[Edge]:
    """Read the edges (child, parent) of a JSON or TOML file that nests names."""
    nested = read_json(path, description) if path.suffix == ".json" else read_toml(path, description)
    return list(_nested_edges(nested, None, description))


def _nested_edges(value: Any, parent: str | None, description: str) -> Iterator[Edge]:
    if not isinstance(value, dict | list):
        raise InputError(f"{description}: expected nested names, found {format_value(value)}")
    entries = value.items() if isinstance(value, dict) else [(name, {}) for name in value]
    for name, children in entries:
        if not isinstance(name, str) or not isinstance(children, (dict, list, type(None))):
            text = format_value(children if isinstance(name, str) else name)
            location = f"{description}, '{parent}'" if parent else description
            raise InputError(f"{location}: expected nested names with lists or nothing at the leaves, found {text}")
        yield name, parent
        if children:
            yield from _nested_edges(children, name, description)


def _text_column(table: pa.Table, name: str, path: Path) -> list[str | None]:
    """Return a column of names as text, even if they are numbers."""
    try:
        texts: list[str | None] = table.column(name).cast(pa.string()).to_pylist()
    except pa.ArrowException as error:
        dtype = table.schema.field(name).type
        raise InputError(f"class distances: {path}, column '{name}': expected names, found {dtype}") from error
    return texts


def cub_names_file(path: Path) -> Path | None:
    """Return the `classes.txt` that names the classes of a CUB file of class attributes, if there is one."""
    files = [folder / _CUB_NAMES for folder in path.resolve().parents[:2] if path.suffix == ".txt"]
    return next((file for file in files if file.is_file()), None)


def _cub_table(path: Path, description: str) -> dict[str, FloatArray]:
    """Read numbers, one line per class; line n of `classes.txt` names the class of line n."""
    names_file = cub_names_file(path)
    if names_file is None:
        raise InputError(
            f"class distances: {path} needs a {_CUB_NAMES} in its folder or the folder above, with one line per class"
        )
    lines = [line.split(maxsplit=1) for line in read_text(names_file, description).splitlines() if line.strip()]
    names = [line[-1].strip() for line in lines]
    try:
        values = np.loadtxt(io.StringIO(read_text(path, description)), ndmin=2)
    except ValueError as error:
        raise InputError(f"{description}: expected numbers: {first_line(error)}") from error
    if len(names) != len(values):
        raise InputError(f"class distances: {path} has {len(values)} lines, but {names_file} has {len(names)} classes")
    return dict(zip(names, values, strict=True))


def _rows_by_class(table: pa.Table, path: Path) -> dict[str, FloatArray]:
    """Return the numbers of each row by the name in the first column."""
    if not table.column_names:
        raise InputError(f"class distances: {path} has no columns")
    names = _text_column(table, table.column_names[0], path)
    numbers = table.select(table.column_names[1:])
    for name in numbers.column_names:
        dtype = numbers.schema.field(name).type
        if not (pa.types.is_floating(dtype) or pa.types.is_integer(dtype) or pa.types.is_boolean(dtype)):
            raise InputError(
                f"class distances: {path}, column '{name}': expected numbers, found {dtype}; the file must be a "
                "tree (columns child,parent), or a matrix or table of class attributes (classes in the first column, "
                "then numbers)"
            )
        if numbers.column(name).null_count:
            raise InputError(f"class distances: {path}, column '{name}' has an empty value")
    if len(set(names)) < len(names) or None in names or not numbers.column_names:
        raise InputError(f"class distances: {path}: expected each class once in the first column, then numbers")
    values = np.stack([column.cast(pa.float64()).to_numpy() for column in numbers.columns], axis=1)
    return {str(name): row for name, row in zip(names, values, strict=True)}


def _select_rows(row_of_class: Mapping[str, FloatArray], classes: Sequence[str], location: object) -> FloatArray:
    _require_known(classes, row_of_class, f"class distances: {location}")
    return np.stack([row_of_class[name] for name in classes])


def _matrix(table: pa.Table, row_of_class: Mapping[str, FloatArray], classes: Sequence[str], path: Path) -> FloatArray:
    columns = {name: index for index, name in enumerate(table.column_names[1:])}
    matrix = _select_rows(row_of_class, classes, path)[:, [columns[name] for name in classes]]
    if (matrix < 0).any() or np.diagonal(matrix).any():
        raise InputError(f"class distances: {path}: expected distances of at least 0, and 0 from a class to itself")
    if not np.allclose(matrix, matrix.T):
        i, j = np.argwhere(~np.isclose(matrix, matrix.T))[0]
        raise InputError(
            f"class distances: {path}: the distance from '{classes[i]}' to '{classes[j]}' is {matrix[i, j]:g}, but "
            f"{matrix[j, i]:g} in the other direction"
        )
    return (matrix + matrix.T) / 2


def _require_known(classes: Sequence[str], known_names: Any, location: object) -> None:
    unknown = [name for name in classes if name not in known_names]
    if unknown:
        more = f" and {counted(len(unknown) - 1, 'more class', 'more classes')}" if len(unknown) > 1 else ""
        raise InputError(
            f"{location} lacks class '{unknown[0]}'{more} of the catalog"
            f"{did_you_mean(unknown[0], [name for name in known_names if name not in classes])}"
        )


def read_hierarchy(path: Path, classes: Sequence[str]) -> dict[str, list[int]]:
    """Read a hierarchy file: for each node at or above a class, the indices of the classes at or below it."""
    return classes_of_nodes(_edges(path, f"hierarchy: file {path}"), classes, f"hierarchy: {path}")


def classes_of_nodes(edges: Iterable[Edge], classes: Sequence[str], location: str) -> dict[str, list[int]]:
    """Return the indices of the classes at or below each node, by its name; nodes without classes are left out.

    Raises:
        InputError: a class is in no edge, or a node is its own ancestor.
    """
    parents: dict[str, set[str]] = {}
    for child, parent in edges:
        parents.setdefault(child or "", set()).update([parent] if parent else [])
        parents.setdefault(parent or child or "", set())
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = error.args[1]
        first = next((name for name in classes if name in cycle), cycle[0])
        raise InputError(f"{location}: '{first}' is its own ancestor") from error
    _require_known(classes, parents, location)
    classes_of_node: dict[str, list[int]] = {}
    for index, name in enumerate(classes):
        nodes, to_visit = {name}, [name]
        while to_visit:
            parents_to_add = parents[to_visit.pop()] - nodes
            nodes |= parents_to_add
            to_visit += parents_to_add
        for node in nodes:
            classes_of_node.setdefault(node, []).append(index)
    return classes_of_node


def classes_of_folders(classes: Sequence[str], paths: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of the classes in each folder.

    Class `Greek/alpha` is in folder `Greek`. A class named like a folder on its path is in the folder above that one.

    Args:
        classes: names of the classes
        paths: path of an item of each class
    """
    classes_of_folder: dict[str, list[int]] = {}
    for index, (name, path) in enumerate(zip(classes, paths, strict=True)):
        folder = name.rpartition("/")[0]
        if not folder:
            folders = PurePosixPath(path).parts[:-1]
            position = folders.index(name) if name in folders else 0
            folder = folders[position - 1] if position else ""
        if not folder:
            raise InputError(f"folders: class '{name}' is in no folder; its first item is {path}")
        classes_of_folder.setdefault(folder, []).append(index)
    return classes_of_folder


def _edges(path: Path, description: str) -> Sequence[Edge]:
    """Read the edges (child, parent) of a hierarchy file."""
    if path.suffix in (".json", ".toml"):
        return [(child, parent) for child, parent in read_nested(path, description) if parent is not None]
    if path.suffix == ".csv":
        table = read_csv(path, description, is_text=lambda name: True)
        table = conform(table, {"child": "string", "parent": "string"}, description)
        rows = zip(table.column("child").to_pylist(), table.column("parent").to_pylist(), strict=True)
        return [(child, parent) for child, parent in rows if child and parent]
    edges = []
    for number, line in enumerate(read_text(path, description).splitlines(), 1):
        names = line.split()
        if names and len(names) != 2:
            text = format_value(line.strip())
            raise InputError(f"{description}, line {number}: expected a parent and a child, found {text}")
        if names:
            edges.append((names[1], names[0]))
    return edges
