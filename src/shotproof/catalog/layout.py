"""How a data set lies on disk: one file per layout, each turning a folder (or a table) into a catalog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.class_folders import unreadable_path
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.catalog.names import apply_names
from shotproof.catalog.splits import apply_splits
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.files import find, is_regular
from shotproof.core.options import Component
from shotproof.core.places import ARCHIVES, absolute, url_of
from shotproof.core.records import CatalogRecord, Maker
from shotproof.core.registry import Registry
from shotproof.core.tables import conform


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
        """The catalog of the data at `root`: items in sorted order, paths relative to the catalog's root."""


layouts: Registry[Layout] = Registry(
    "layout",
    {
        "folder": "shotproof.catalog.layouts.folder:FolderLayout",
        "cub": "shotproof.catalog.layouts.cub:CubLayout",
        "mini-imagenet": "shotproof.catalog.layouts.mini_imagenet:MiniImageNetLayout",
        "tiered-imagenet": "shotproof.catalog.layouts.tiered_imagenet:TieredImageNetLayout",
        "esc50": "shotproof.catalog.layouts.esc50:Esc50Layout",
        "urbansound8k": "shotproof.catalog.layouts.urbansound8k:UrbanSound8KLayout",
        "vocalsound": "shotproof.catalog.layouts.vocalsound:VocalSoundLayout",
        "metacoco": "shotproof.catalog.layouts.metacoco:MetaCoCoLayout",
        "nico": "shotproof.catalog.layouts.nico:NicoLayout",
        "ilsvrc-2012": "shotproof.catalog.layouts.ilsvrc_2012:IlsvrcLayout",
        "omniglot": "shotproof.catalog.layouts.omniglot:OmniglotLayout",
        "aircraft": "shotproof.catalog.layouts.aircraft:AircraftLayout",
        "cu-birds": "shotproof.catalog.layouts.cu_birds:CuBirdsLayout",
        "dtd": "shotproof.catalog.layouts.dtd:DtdLayout",
        "quickdraw": "shotproof.catalog.layouts.quickdraw:QuickdrawLayout",
        "fungi": "shotproof.catalog.layouts.fungi:FungiLayout",
        "vgg-flower": "shotproof.catalog.layouts.vgg_flower:VggFlowerLayout",
        "traffic-sign": "shotproof.catalog.layouts.traffic_sign:TrafficSignLayout",
        "mscoco": "shotproof.catalog.layouts.mscoco:MsCocoLayout",
        "orbit": "shotproof.catalog.layouts.orbit:OrbitLayout",
        "cure-or": "shotproof.catalog.layouts.cure_or:CureOrLayout",
        "objectnet": "shotproof.catalog.layouts.objectnet:ObjectNetLayout",
        "fsd50k": "shotproof.catalog.layouts.fsd50k:Fsd50kLayout",
        "cifar-fs": "shotproof.catalog.layouts.cifar_fs:CifarFsLayout",
        "fc100": "shotproof.catalog.layouts.fc100:Fc100Layout",
        "table": "shotproof.catalog.layouts.table:TableLayout",
        "hf": "shotproof.catalog.layouts.hugging_face:HuggingFaceLayout",
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


def read_listing(path: Path, names: Mapping[str, str]) -> pa.Table:
    """A CSV that lists files, one per line: the named columns, under our names, as text without an empty value."""
    table = read_csv(path, str(path), is_text=lambda name: True)
    table = conform(table, dict.fromkeys(names, "string"), str(path)).select(list(names))
    for name in names:
        empty = pc.index(table.column(name), "").as_py()
        if empty >= 0:
            raise InputError(f"{path}, line {empty + 2}: empty {name}")
    return table.rename_columns(list(names.values()))


def require_files(root: Path, paths: Sequence[str], listing: Path, first_line: int) -> None:
    """Refuse a listing, one path per line, that names files which are not below `root`."""
    missing = [index for index, path in enumerate(paths) if not is_regular(root / path)]
    if missing:
        raise InputError(
            f"{listing}, line {missing[0] + first_line}: {root / paths[missing[0]]} does not exist "
            f"({len(missing)} of {len(paths)} files are missing)"
        )


def _similar_names(path: Path) -> str:
    if url_of(path) or not path.parent.is_dir():
        return ""
    return did_you_mean(path.name, (other.name for other in path.parent.iterdir() if not other.name.startswith(".")))
