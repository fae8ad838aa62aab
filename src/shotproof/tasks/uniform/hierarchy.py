"""Class hierarchies: which classes a node spans, from a file of edges or from the folders of the classes.

A file is of one of these kinds, told apart by its ending:

- `.txt`, in WordNet's form as ImageNet publishes it (`wordnet.is_a.txt`): a parent and a child per line;
- `.csv` with the columns `child,parent`;
- `.json` or `.toml` that nests names, leaves being lists or empty.

A node may have several parents. The classes that it spans are those at or below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.files import read_text
from shotproof.core.plain_values import shown
from shotproof.core.tables import conform
from shotproof.tasks.semantic.class_distances import read_nested

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
    unknown = [name for name in classes if name not in parents]
    if unknown:
        more = f" and {len(unknown) - 1} more classes" if len(unknown) > 1 else ""
        near = did_you_mean(unknown[0], [name for name in parents if name not in classes])
        raise InputError(f"hierarchy: {where} lacks the class '{unknown[0]}'{more} of the catalog{near}")
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
