"""Hugging Face data sets: saved or downloaded by `datasets`, or folders of Parquet files like those of the hub.

Items stay where they are: their paths name a row of a file, which is read in place, also at a URL.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.item_paths import EXTENSIONS, split_in_name
from shotproof.core.errors import InputError, UnknownName, first_line
from shotproof.core.options import option
from shotproof.core.storage.files import is_regular, names_below, open_file, source_of
from shotproof.core.storage.places import absolute, store_of

SAVED = ("dataset_dict.json", "state.json")  # what `save_to_disk` writes
COPIED = ("context", "source")  # optional columns of a catalog
# First bytes of a file, and the extension that they imply.
BEGINNINGS = {
    rb"\x89PNG": "png",
    rb"\xff\xd8": "jpg",
    rb"GIF8": "gif",
    rb"BM": "bmp",
    rb"II\*|MM\x00": "tif",
    rb"RIFF....WEBP": "webp",
    rb"RIFF|RF64": "wav",
    rb"fLaC": "flac",
    rb"OggS": "ogg",
    rb"ID3|\xff[\xe2-\xfb]": "mp3",
    rb"FORM": "aif",
}


@dataclass(frozen=True)
class Part:
    """File with rows of one split."""

    split: str
    file: Path


@dataclass(frozen=True)
class HuggingFaceLayout(Layout):
    """A folder saved by `datasets` (`save_to_disk`), a folder of Parquet files, or a data set of the hub by its name.

    A name is looked up among earlier downloads; with `hub`, it is downloaded. Parquet files on the hub can be read in
    place, without a full download: `hf://datasets/OWNER/NAME/data`.
    """

    about = "a data set of the Hugging Face hub by name, or saved by `datasets` (extra: datasets)"
    example = "hf:ethz/food101(hub=True)"

    dataset_name: str = option("", "name on the hub; without one, the folder is read", argument=True)
    config: str | None = option(None, "name of the configuration")
    column: str | None = option(None, "column of images or sounds; None: the only one")
    label: str | None = option(None, "column of classes; None: the only one of type ClassLabel, or `label`")
    hub: bool = option(False, "whether the data set may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """Return the package that reads the data."""
        return {"datasets": "datasets"}

    def place(self) -> Path | None:
        """Return the cache of `datasets` if a data set is named."""
        self.require_extras()
        import datasets

        if not self.dataset_name:
            return None
        cache = Path(datasets.config.HF_DATASETS_CACHE)
        cache.mkdir(parents=True, exist_ok=True)
        return cache

    def read(self, root: Path) -> Catalog:
        """Read the rows of all splits."""
        self.require_extras()
        parts, features = self._find_parts(root)
        item, label = self._choose_columns(features)
        names = getattr(features[label], "names", None)
        columns: dict[str, list[Any]] = {name: [] for name in ("item", "path", "label", "split")}
        further = [name for name in COPIED if getattr(features.get(name), "dtype", None) == "string"]
        columns |= {name: [] for name in further}
        for part in parts:
            table = _read_small_columns(part.file, item, [label, *further])
            paths = _row_paths(part.file, item, table.column("path"), root)
            columns["item"] += paths
            columns["path"] += paths
            columns["label"] += _label_texts(table.column(label), names, f"{part.file}, column '{label}'")
            columns["split"] += [part.split] * len(paths)
            for name in further:
                columns[name] += table.column(name).to_pylist()
        if not columns["item"]:
            raise InputError(f"{root} has no rows")
        return sorted_catalog(columns, root)

    def _find_parts(self, root: Path) -> tuple[list[Part], Any]:
        """Return the files of all splits, and the features that `datasets` has of their columns."""
        if not self.dataset_name and not any(is_regular(root / name) for name in SAVED):
            return _find_parquet_files(root)
        with _quiet():
            dataset = self._load_by_name() if self.dataset_name else _load_saved(root)
        splits = dataset if isinstance(dataset, Mapping) else {str(dataset.split or "all"): dataset}
        parts = []
        for split, rows in splits.items():
            files = [Path(cache_file["filename"]) for cache_file in rows.cache_files]
            file_rows = sum(len(_read_small_columns(file, "", [])) for file in files)
            if file_rows != len(rows):  # a view of some rows; saving it writes exactly these
                raise InputError(
                    f"split '{split}' has {len(rows):,} rows, but its files have {file_rows:,}: "
                    "save the data set with save_to_disk, and give that folder"
                )
            parts += [Part(str(split), file) for file in files]
        return parts, next(iter(splits.values())).features

    def _load_by_name(self) -> Any:
        import datasets

        with contextlib.nullcontext() if self.hub else _offline():
            try:
                return datasets.load_dataset(self.dataset_name, self.config)
            except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
                if self.hub:
                    raise InputError(f"data set '{self.dataset_name}' cannot be read: {first_line(error)}") from error
                raise InputError(
                    f"data set '{self.dataset_name}' has not been downloaded: allow it with hub=True, "
                    "or give a folder that save_to_disk has written"
                ) from error

    def _choose_columns(self, features: Any) -> tuple[str, str]:
        """Return the names of the columns of items and of classes."""
        import datasets

        items = [name for name, kind in features.items() if isinstance(kind, datasets.Image | datasets.Audio)]
        classes = [name for name, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
        classes = classes if classes or "label" not in features else ["label"]
        columns = []
        for option_name, column, candidates in (("column", self.column, items), ("label", self.label, classes)):
            if column is not None and column not in features:
                raise UnknownName("column", column, features)
            if column is None and len(candidates) != 1:
                listed = ", ".join(candidates or features)
                raise InputError(f"layout 'hf': name the column with {option_name}='...', one of {listed}")
            columns.append(column or candidates[0])
        return columns[0], columns[1]


def _load_saved(folder: Path) -> Any:
    import datasets

    try:
        return datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise InputError(f"{folder} cannot be read as a data set saved by save_to_disk: {first_line(error)}") from error


def _find_parquet_files(root: Path) -> tuple[list[Part], Any]:
    """Return the Parquet files below a folder, whose names contain the split, like those of the hub."""
    import datasets

    names = [root.name] if is_regular(root) else sorted(name for name in names_below(root) if name.endswith(".parquet"))
    if not names:
        raise InputError(
            f"{root} is not a data set saved by save_to_disk (no {' or '.join(SAVED)}), and has no Parquet files"
        )
    files = [root if is_regular(root) else root / name for name in names]
    parts = [Part(split_in_name(name) or "all", file) for name, file in zip(names, files, strict=True)]
    try:
        return parts, datasets.Features.from_arrow_schema(pq.read_schema(source_of(files[0])))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise InputError(f"{files[0]} cannot be read as a Parquet file of `datasets`: {first_line(error)}") from error


def _read_small_columns(file: Path, item: str, names: Sequence[str]) -> pa.Table:
    """Read columns of a file, and as `path` the items' original file names; the bytes of items are not read."""
    try:
        if file.suffix == ".arrow":
            table = pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
        else:
            kind = pq.read_schema(source_of(file)).field(item).type
            path_field = [f"{item}.path"] if pa.types.is_struct(kind) and kind.get_field_index("path") >= 0 else []
            table = pq.read_table(source_of(file), columns=[*names, *path_field])
        has_paths = item in table.column_names and pa.types.is_struct(table.schema.field(item).type)
        paths = pc.struct_field(table.column(item), "path") if has_paths else pa.nulls(len(table), pa.string())
        return table.select(list(names)).append_column("path", paths)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {first_line(error)}") from error


def _row_paths(file: Path, column: str, names: pa.ChunkedArray, root: Path) -> list[str]:
    """Return the path of each row, relative to the root if the file is below it, with the extension of its content."""
    extensions = [(name or "").rpartition(".")[2].lower() for name in names.to_pylist()]
    if any(extension not in EXTENSIONS for extension in extensions):
        default = _guess_extension(file, column)
        extensions = [extension if extension in EXTENSIONS else default for extension in extensions]
    location, base = absolute(file), absolute(root)
    is_below = location.is_relative_to(base) and store_of(location) == store_of(base) and location != base
    prefix = (location.relative_to(base) if is_below else location).as_posix()
    return [f"{prefix}!/{column}/{row:09}.{extension}" for row, extension in enumerate(extensions)]


def _guess_extension(file: Path, column: str) -> str:
    """Return the extension that fits the content of the first row's item."""
    try:
        with open_file(Path(f"{file}!") / column / "0") as item:
            head = item.read(12)
    except OSError as error:
        raise InputError(f"{file}, column '{column}', row 0: {error.strerror or error}") from error
    extension = next((name for start, name in BEGINNINGS.items() if re.match(start, head, re.DOTALL)), None)
    if extension is None:
        raise InputError(f"{file}, column '{column}', row 0: expected an image or a sound, found bytes {head[:4]!r}")
    return extension


def _label_texts(column: pa.ChunkedArray, names: Sequence[str] | None, title: str) -> list[str]:
    """Return the name of each row's class, or its number if classes have no names."""
    if names is None:
        return ["" if value is None else str(value) for value in column.to_pylist()]
    try:
        return ["" if value is None or value < 0 else names[value] for value in column.to_pylist()]
    except (IndexError, TypeError) as error:
        raise InputError(f"{title}: expected class numbers below {len(names)}") from error


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep `datasets` from sending requests to the hub."""
    import datasets
    import huggingface_hub

    modules: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in modules]
    for module in modules:
        module.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for module, value in zip(modules, before, strict=True):
            module.HF_HUB_OFFLINE = value


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep `datasets` from drawing progress bars."""
    import datasets

    already_disabled = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not already_disabled:
            datasets.enable_progress_bars()
