"""Layouts of data sets on disk: a layout turns a folder or a table into a catalog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import apply_names, apply_splits
from shotproof.catalog.layouts.item_paths import unreadable_path
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Component
from shotproof.core.records import CatalogRecord, Maker
from shotproof.core.registry import Registry
from shotproof.core.storage.files import find, find_all
from shotproof.core.storage.places import ARCHIVES, absolute, url_of


class Layout(Component, ABC):
    """Layout on disk of one data set, or of one kind of data set.

    dataset: name of the data set, if the layout is that of a single one
    license, citation: license and citation of that data set
    """

    kind = "layout"
    dataset: ClassVar[str] = ""
    license: ClassVar[str | None] = None
    citation: ClassVar[str | None] = None

    def place(self) -> Path | None:
        """Return the default location of the data; None if the user has to give it."""
        return None

    @abstractmethod
    def read(self, root: Path) -> Catalog:
        """Read the catalog of the data at `root`: items in sorted order, paths relative to the catalog's root."""


layouts: Registry[Layout] = Registry(
    "layout",
    {
        "aircraft": "shotproof.catalog.layouts.meta_dataset:AircraftLayout",
        "cifar-fs": "shotproof.catalog.layouts.image_sets:CifarFsLayout",
        "cu-birds": "shotproof.catalog.layouts.meta_dataset:CuBirdsLayout",
        "cub": "shotproof.catalog.layouts.cub:CubLayout",
        "cure-or": "shotproof.catalog.layouts.image_sets:CureOrLayout",
        "dtd": "shotproof.catalog.layouts.meta_dataset:DtdLayout",
        "esc50": "shotproof.catalog.layouts.sound_sets:Esc50Layout",
        "fc100": "shotproof.catalog.layouts.image_sets:Fc100Layout",
        "folder": "shotproof.catalog.layouts.folder:FolderLayout",
        "fsd50k": "shotproof.catalog.layouts.sound_sets:Fsd50kLayout",
        "fungi": "shotproof.catalog.layouts.meta_dataset:FungiLayout",
        "hf": "shotproof.catalog.layouts.hugging_face:HuggingFaceLayout",
        "ilsvrc-2012": "shotproof.catalog.layouts.meta_dataset:IlsvrcLayout",
        "metacoco": "shotproof.catalog.layouts.image_sets:MetaCoCoLayout",
        "mini-imagenet": "shotproof.catalog.layouts.image_sets:MiniImageNetLayout",
        "mscoco": "shotproof.catalog.layouts.mscoco:MsCocoLayout",
        "nico": "shotproof.catalog.layouts.nico:NicoLayout",
        "objectnet": "shotproof.catalog.layouts.image_sets:ObjectNetLayout",
        "omniglot": "shotproof.catalog.layouts.meta_dataset:OmniglotLayout",
        "orbit": "shotproof.catalog.layouts.image_sets:OrbitLayout",
        "quickdraw": "shotproof.catalog.layouts.quickdraw:QuickdrawLayout",
        "table": "shotproof.catalog.layouts.table:TableLayout",
        "tiered-imagenet": "shotproof.catalog.layouts.image_sets:TieredImageNetLayout",
        "traffic-sign": "shotproof.catalog.layouts.meta_dataset:TrafficSignLayout",
        "urbansound8k": "shotproof.catalog.layouts.sound_sets:UrbanSound8KLayout",
        "vgg-flower": "shotproof.catalog.layouts.meta_dataset:VggFlowerLayout",
        "vocalsound": "shotproof.catalog.layouts.sound_sets:VocalSoundLayout",
        "webdataset": "shotproof.catalog.layouts.web_dataset:WebDatasetLayout",
    },
)


def read_layout(
    root: str | Path | None,
    layout: str | Mapping[str, Any] | Layout = "folder",
    *,
    splits: str | Path | None = None,
    names: str | Path | None = None,
    name: str | None = None,
) -> Catalog:
    """Read a data set from disk as a catalog.

    Args:
        root: the folder of the data, its URL, an archive, or the table; None if the layout knows it, e.g. `hf:NAME`
        layout: a spelling such as `nico(version='nico++')`, a table such as {"name": "nico", ...}, or a layout
        splits: a CSV with the columns label and split, which replaces the splits that the layout reads
        names: a CSV with the columns label and name: names of the classes in pages and tables
        name: name of the data set in pages and tables; by default that of the layout's data set if the layout is for
            a single one, otherwise the folder's name

    Returns:
        The catalog, sorted by item.

    Raises:
        UnknownName: no layout has this name.
        InputError: the data does not have this layout; the message names the file or folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "jay").mkdir()
        >>> (folder / "jay" / "1.png").touch()
        >>> read_layout(folder, name="birds").table.column("label").to_pylist()
        ['jay']
    """
    reader = layouts.make(layout)
    location = reader.place() if root is None else root
    if location is None:
        raise InputError(
            f"layout '{reader.name}' needs the location of the data: a folder, a table, an archive or a URL"
        )
    root = Path(location)
    try:
        is_file = find(root).kind == "file"
        root_name = root.stem if is_file else absolute(root).name
        if is_file and root.suffix in ARCHIVES:
            root = root.with_name(f"{root.name}!")
            find(root)  # raises OSError if the file is not an archive
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{root} does not exist{_similar_names(root)}") from error
    except OSError as error:
        raise unreadable_path(root, error) from error
    catalog = reader.read(root)
    record = replace(
        catalog.record,
        name=name or catalog.record.name or reader.dataset or root_name,
        layout=Maker.of(reader),
        license=catalog.record.license or reader.license,
        citation=catalog.record.citation or reader.citation,
    )
    catalog = replace(catalog, record=record)
    catalog = catalog if splits is None else apply_splits(catalog, Path(splits))
    return catalog if names is None else apply_names(catalog, Path(names))


def sorted_catalog(columns: Mapping[str, Any], root: Path, **notes: Any) -> Catalog:
    """Build a catalog from columns, sorted by item. Default columns: the path is the item, and the split is `all`."""
    items = columns["item"]
    table = pa.table({"item": items, "path": items, "split": ["all"] * len(items), **columns})
    return Catalog(table.sort_by("item").combine_chunks(), root, CatalogRecord(notes=notes))


def require_files(root: Path, paths: Sequence[str], listing: Path, first_line: int) -> None:
    """Raise InputError if a listing, one path per line, names files that do not exist below `root`."""
    files = find_all([root / path for path in paths])
    missing = [row for row, file in enumerate(files) if file is None or file.kind != "file"]
    if missing:
        raise InputError(
            f"{listing}, line {missing[0] + first_line}: {root / paths[missing[0]]} does not exist "
            f"({len(missing)} of {len(paths)} files are missing)"
        )


def _similar_names(path: Path) -> str:
    if url_of(path) or not path.parent.is_dir():
        return ""
    return did_you_mean(path.name, (other.name for other in path.parent.iterdir() if not other.name.startswith(".")))
