"""How a data set lies on disk: one layout a file, each turning a folder (or a table) into a catalog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.csv_file import read_csv
from shotproof.catalog.splits import apply_splits
from shotproof.errors import InputError, did_you_mean
from shotproof.registry import Registry
from shotproof.tables import Meta, conform


class Layout(ABC):
    """A declaration of a data set's form; its options are the keyword arguments of its constructor."""

    about: ClassVar[str]
    licence: ClassVar[str | None] = None
    citation: ClassVar[str | None] = None

    @abstractmethod
    def read(self, root: Path) -> Catalog:
        """The catalog of the data at `root`: items in sorted order, paths relative to the catalog's root."""


layouts: Registry[Layout] = Registry(
    "layout",
    {
        "folder": "shotproof.catalog.folder:FolderLayout",
        "cub": "shotproof.catalog.cub:CubLayout",
        "mini-imagenet": "shotproof.catalog.mini_imagenet:MiniImageNetLayout",
        "tiered-imagenet": "shotproof.catalog.tiered_imagenet:TieredImageNetLayout",
        "esc50": "shotproof.catalog.esc50:Esc50Layout",
        "urbansound8k": "shotproof.catalog.urbansound8k:UrbanSound8KLayout",
        "vocalsound": "shotproof.catalog.vocalsound:VocalSoundLayout",
        "metacoco": "shotproof.catalog.metacoco:MetaCoCoLayout",
        "nico": "shotproof.catalog.nico:NicoLayout",
        "table": "shotproof.catalog.table:TableLayout",
    },
)


def read_layout(
    root: str | Path, layout: str | Layout = "folder", *, splits: str | Path | None = None, **options: Any
) -> Catalog:
    """Read the data at `root`, by a layout's name and its options or by a layout of one's own.

    `splits` is a CSV with the columns label and split, which replaces the splits that the layout found.
    """
    if isinstance(layout, str):
        name, layout = layout, layouts.make(layout, **options)
    elif options:
        raise InputError(f"options ({', '.join(options)}) go with a layout's name, not with a layout object")
    else:
        name = type(layout).__name__
    root = Path(root)
    if not root.exists():
        raise InputError(f"{root} does not exist{_similar_names(root)}")
    catalog = layout.read(root)
    meta: Meta = {"made_by": {"layout": name, **options}, **catalog.meta}
    meta |= {key: text for key in ("licence", "citation") if (text := getattr(layout, key))}
    catalog = Catalog(catalog.table, catalog.root, meta)
    return catalog if splits is None else apply_splits(catalog, Path(splits))


def sorted_catalog(columns: Mapping[str, Any], root: Path, meta: Meta | None = None) -> Catalog:
    """A catalog of these columns, sorted by item; without a `path` column, the item is the path."""
    with_path = {"item": columns["item"], "path": columns["item"], **columns}
    return Catalog(pa.table(with_path).sort_by("item").combine_chunks(), root, meta or {})


def read_listing(path: Path, names: Mapping[str, str]) -> pa.Table:
    """A CSV that lists files, a line each: the named columns, under our names, as text without an empty value."""
    table = read_csv(path, str(path), is_text=lambda name: True)
    table = conform(table, dict.fromkeys(names, "string"), str(path)).select(list(names))
    for name in names:
        empty = pc.index(table.column(name), "").as_py()
        if empty >= 0:
            raise InputError(f"{path}, line {empty + 2}: empty {name}")
    return table.rename_columns(list(names.values()))


def require_files(root: Path, paths: Sequence[str], listing: Path, first_line: int) -> None:
    """Refuse a listing, one path a line, that names files which are not below `root`."""
    missing = [index for index, path in enumerate(paths) if not (root / path).is_file()]
    if missing:
        raise InputError(
            f"{listing}, line {missing[0] + first_line}: {root / paths[missing[0]]} does not exist "
            f"({len(missing)} of {len(paths)} files are missing)"
        )


def _similar_names(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return did_you_mean(path.name, (other.name for other in path.parent.iterdir() if not other.name.startswith(".")))
