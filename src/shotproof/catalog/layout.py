"""How data sets lie on disk: a layout turns a folder (or a table) into a catalog."""

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
    """How one data set, or one kind of data set, lies on disk.

    dataset: the name of the one data set that lies like this, where it is one
    license, citation: of that data set
    """

    kind = "layout"
    dataset: ClassVar[str] = ""
    license: ClassVar[str | None] = None
    citation: ClassVar[str | None] = None

    def place(self) -> Path | None:
        """Where the data lies if nobody says; None where somebody has to."""
        return None

    @abstractmethod
    def read(self, root: Path) -> Catalog:
        """Return the catalog of the data at `root`: items in sorted order, paths relative to the catalog's root."""


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
    """Read data as it lies on disk.

    Args:
        root: the folder of the data, a URL of one, an archive, or the table; None where the layout knows, as `hf:NAME`
        layout: a spelling such as `nico(version='nico++')`, a table such as {"name": "nico", ...}, or a layout
        splits: a CSV with the columns label and split, which replaces the splits that the layout found
        names: a CSV with the columns label and name: what pages and tables call the classes
        name: what pages and tables call the data set; by default its own name where the layout is that of one data set,
            else the folder's

    Returns:
        The catalog, whose items are sorted.

    Raises:
        UnknownName: no layout has this name.
        InputError: the data does not lie as the layout says; the message names the file or folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "jay").mkdir()
        >>> (folder / "jay" / "1.png").touch()
        >>> read_layout(folder, name="birds").table.column("label").to_pylist()
        ['jay']
    """
    made = layouts.make(layout)
    given = made.place() if root is None else root
    if given is None:
        raise InputError(f"layout '{made.name}' needs the place of the data: a folder, a table, an archive or a URL")
    root = Path(given)
    try:
        is_file_itself = find(root).kind == "file"
        named = root.stem if is_file_itself else absolute(root).name
        if is_file_itself and root.suffix in ARCHIVES:
            root = root.with_name(f"{root.name}!")
            find(root)  # refuses what is no archive
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{root} does not exist{_similar_names(root)}") from error
    except OSError as error:
        raise unreadable_path(root, error) from error
    catalog = made.read(root)
    record = replace(
        catalog.record,
        name=name or catalog.record.name or made.dataset or named,
        layout=Maker.of(made),
        license=catalog.record.license or made.license,
        citation=catalog.record.citation or made.citation,
    )
    catalog = replace(catalog, record=record)
    catalog = catalog if splits is None else apply_splits(catalog, Path(splits))
    return catalog if names is None else apply_names(catalog, Path(names))


def sorted_catalog(columns: Mapping[str, Any], root: Path, **notes: Any) -> Catalog:
    """A catalog of these columns, sorted by item; the item is the path, and the split `all`, unless columns say it."""
    items = columns["item"]
    table = pa.table({"item": items, "path": items, "split": ["all"] * len(items), **columns})
    return Catalog(table.sort_by("item").combine_chunks(), root, CatalogRecord(notes=notes))


def require_files(root: Path, paths: Sequence[str], listing: Path, first_line: int) -> None:
    """Refuse a listing, one path per line, that names files which are not below `root`."""
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
