"""Data sets of Hugging Face: what `datasets` has saved or downloaded, and folders of Parquet files like the hub's.

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
COPIED = ("context", "source")  # further columns that a catalog may have
# How the content of a file begins.
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
    """A file of rows of one split."""

    split: str
    file: Path


@dataclass(frozen=True)
class HuggingFaceLayout(Layout):
    """A folder that `datasets` saved (`save_to_disk`), a folder of Parquet files, or a data set of the hub by its name.

    A name is looked up among what was downloaded before; with `hub`, it is downloaded. The Parquet files of the hub can
    be read in place, without a download of all: `hf://datasets/OWNER/NAME/data`.
    """

    about = "a data set of the Hugging Face hub by name, or saved by `datasets` (extra: datasets)"
    example = "hf:ethz/food101(hub=True)"

    dataset_name: str = option("", "its name on the hub; without one, the folder is read", argument=True)
    config: str | None = option(None, "which of its configurations")
    column: str | None = option(None, "the column of images or sounds; None: the only one")
    label: str | None = option(None, "the column of classes; None: the only one of class labels, or `label`")
    hub: bool = option(False, "whether it may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """What reads it."""
        return {"datasets": "datasets"}

    def place(self) -> Path | None:
        """Where `datasets` keeps what it downloads."""
        self.require_extras()
        import datasets

        if not self.dataset_name:
            return None
        kept = Path(datasets.config.HF_DATASETS_CACHE)
        kept.mkdir(parents=True, exist_ok=True)
        return kept

    def read(self, root: Path) -> Catalog:
        """Return the rows of all splits."""
        self.require_extras()
        parts, features = self._parts(root)
        item, label = self._columns(features)
        names = getattr(features[label], "names", None)
        columns: dict[str, list[Any]] = {name: [] for name in ("item", "path", "label", "split")}
        further = [name for name in COPIED if getattr(features.get(name), "dtype", None) == "string"]
        columns |= {name: [] for name in further}
        for part in parts:
            table = _small_columns(part.file, item, [label, *further])
            paths = _row_paths(part.file, item, table.column("path"), root)
            columns["item"] += paths
            columns["path"] += paths
            columns["label"] += _labels(table.column(label), names, f"{part.file}, column '{label}'")
            columns["split"] += [part.split] * len(paths)
            for name in further:
                columns[name] += table.column(name).to_pylist()
        if not columns["item"]:
            raise InputError(f"{root} has no rows")
        return sorted_catalog(columns, root)

    def _parts(self, root: Path) -> tuple[list[Part], Any]:
        """Return the files of all splits, and what `datasets` knows of their columns."""
        if not self.dataset_name and not any(is_regular(root / name) for name in SAVED):
            return _parquet_files(root)
        with _quiet():
            found = self._named() if self.dataset_name else _saved(root)
        splits = found if isinstance(found, Mapping) else {str(found.split or "all"): found}
        parts = []
        for split, rows in splits.items():
            files = [Path(cache_file["filename"]) for cache_file in rows.cache_files]
            held = sum(len(_small_columns(file, "", [])) for file in files)
            if held != len(rows):  # a view of some rows: a saved one has them all
                raise InputError(f"split '{split}' has {len(rows):,} rows, its files {held:,}: save it (save_to_disk)")
            parts += [Part(str(split), file) for file in files]
        return parts, next(iter(splits.values())).features

    def _named(self) -> Any:
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

    def _columns(self, features: Any) -> tuple[str, str]:
        """Return the columns of items and of classes."""
        import datasets

        items = [name for name, kind in features.items() if isinstance(kind, datasets.Image | datasets.Audio)]
        classes = [name for name, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
        classes = classes if classes or "label" not in features else ["label"]
        chosen = []
        for what, given, found in (("column", self.column, items), ("label", self.label, classes)):
            if given is not None and given not in features:
                raise UnknownName("column", given, features)
            if given is None and len(found) != 1:
                listed = ", ".join(found or features)
                raise InputError(f"layout 'hf': which column? Say {what}='...': {listed}")
            chosen.append(given or found[0])
        return chosen[0], chosen[1]


def _saved(folder: Path) -> Any:
    import datasets

    try:
        return datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise InputError(f"{folder} is not readable as what save_to_disk writes: {first_line(error)}") from error


def _parquet_files(root: Path) -> tuple[list[Part], Any]:
    """Return the Parquet files below a folder, whose names tell the split, as those of the hub do."""
    import datasets

    names = [root.name] if is_regular(root) else sorted(name for name in names_below(root) if name.endswith(".parquet"))
    if not names:
        raise InputError(f"{root} holds neither what save_to_disk writes ({', '.join(SAVED)}) nor Parquet files")
    files = [root if is_regular(root) else root / name for name in names]
    parts = [Part(split_in_name(name) or "all", file) for name, file in zip(names, files, strict=True)]
    try:
        return parts, datasets.Features.from_arrow_schema(pq.read_schema(source_of(files[0])))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise InputError(f"{files[0]} is not readable as Parquet of `datasets`: {first_line(error)}") from error


def _small_columns(file: Path, item: str, names: Sequence[str]) -> pa.Table:
    """Return columns of a file, and as `path` the names that items had before; without the bytes of any item."""
    try:
        if file.suffix == ".arrow":
            table = pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
        else:
            kind = pq.read_schema(source_of(file)).field(item).type
            named = [f"{item}.path"] if pa.types.is_struct(kind) and kind.get_field_index("path") >= 0 else []
            table = pq.read_table(source_of(file), columns=[*names, *named])
        held = item in table.column_names and pa.types.is_struct(table.schema.field(item).type)
        paths = pc.struct_field(table.column(item), "path") if held else pa.nulls(len(table), pa.string())
        return table.select(list(names)).append_column("path", paths)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {first_line(error)}") from error


def _row_paths(file: Path, column: str, names: pa.ChunkedArray, root: Path) -> list[str]:
    """Return the path of each row, from the root where the file lies below it; with the ending that its content has."""
    ends = [(name or "").rpartition(".")[2].lower() for name in names.to_pylist()]
    if any(end not in EXTENSIONS for end in ends):
        default = _ending(file, column)
        ends = [end if end in EXTENSIONS else default for end in ends]
    place, base = absolute(file), absolute(root)
    below = place.is_relative_to(base) and store_of(place) == store_of(base) and place != base
    start = (place.relative_to(base) if below else place).as_posix()
    return [f"{start}!/{column}/{row:09}.{end}" for row, end in enumerate(ends)]


def _ending(file: Path, column: str) -> str:
    """How the name of the first row's item would end, by its content."""
    try:
        with open_file(Path(f"{file}!") / column / "0") as item:
            head = item.read(12)
    except OSError as error:
        raise InputError(f"{file}, column '{column}', row 0: {error.strerror or error}") from error
    found = next((end for start, end in BEGINNINGS.items() if re.match(start, head, re.DOTALL)), None)
    if found is None:
        raise InputError(f"{file}, column '{column}', row 0: expected an image or a sound, found bytes {head[:4]!r}")
    return found


def _labels(column: pa.ChunkedArray, names: Sequence[str] | None, what: str) -> list[str]:
    """Return classes by name; of numbers without names, the numbers."""
    if names is None:
        return ["" if value is None else str(value) for value in column.to_pylist()]
    try:
        return ["" if value is None or value < 0 else names[value] for value in column.to_pylist()]
    except (IndexError, TypeError) as error:
        raise InputError(f"{what}: expected numbers of the {len(names)} classes") from error


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep `datasets` from asking the hub."""
    import datasets
    import huggingface_hub

    places = [(datasets.config, "HF_HUB_OFFLINE"), (huggingface_hub.constants, "HF_HUB_OFFLINE")]
    before = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, True)
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep `datasets` from drawing bars."""
    import datasets

    shown = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not shown:
            datasets.enable_progress_bars()
