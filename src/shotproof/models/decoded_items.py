"""Decoded items of a catalog: an array in a cache file, memory-mapped."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_digests, item_files
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError, UnreadableItem, is_out_of_memory
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.numpy_files import BROKEN
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import find_rows
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.models.preprocessing import Medium, Preprocessing

FILES_PER_CHUNK = 8
DIGEST_BYTES = 32  # the SHA-256 of the values is appended to the file
FREE_SHARE = 0.5  # largest share of a GPU's free memory that items may take


@dataclass(frozen=True)
class ItemStore:
    """Stored form of each item, [n, height, width, channels], in the order of the catalog.

    key: identifies the contents and the preprocessing
    """

    items: pa.Array
    values: npt.NDArray[Any]
    key: str

    @classmethod
    def of(
        cls, catalog: Catalog, preprocessing: Preprocessing, runtime: Runtime, rows: IntArray | None = None
    ) -> ItemStore:
        """Decode the items, or read them from the cache.

        Args:
            catalog: items, with all that changed ones are made of
            preprocessing: preprocessing of the items
            runtime: where and how to compute
            rows: rows of the items to decode; None is all

        Raises:
            UnreadableItem: a file cannot be read.
            InputError: the catalog has no items.
        """
        if not len(catalog):
            raise InputError("the catalog has no items")
        files, items = item_files(catalog), catalog.item_column
        if rows is not None:
            files, items = [files[row] for row in rows], items.take(pa.array(rows))
        digests = item_digests(files, runtime).to_pylist()
        key = hashlib.sha256("\0".join([preprocessing.fingerprint, *digests]).encode()).hexdigest()[:32]
        path = None if runtime.cache is None else runtime.cache / "items" / f"{key}.npy"
        shape = (len(items), *preprocessing.stored_shape)
        values = _map_cached(path, shape, preprocessing)
        if values is None:
            values = _decode_all(files, shape, preprocessing, path, runtime)
        return cls(items, values, key)

    def rows_of(self, items: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Return the row of each item. Raise Mismatch if an item is missing."""
        return find_rows(items, self.items, "the item store lacks")

    def tensor(self, device: torch.device) -> ResidentItems:
        """Load the items into the device's memory if they fit, else keep them in main memory."""
        fits = device.type == "cpu"
        if device.type == "cuda":
            fits = self.values.nbytes <= FREE_SHARE * torch.cuda.mem_get_info(device)[0]
        # PyTorch warns about read-only arrays; nothing writes to this one.
        values = torch.frombuffer(self.values, dtype=_torch_type(self.values)).view(self.values.shape)
        return ResidentItems(values.to(device) if fits else values, device)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ResidentItems:
    """Items in memory, [n, height, width, channels], from which batches are copied to a device."""

    values: Tensor
    device: torch.device

    def take(self, rows: Tensor) -> Tensor:
        """Gather rows of any shape [...] on the device: [..., height, width, channels].

        Does not wait for the GPU if the rows are in the same memory as the items.
        """
        batch = self.values[rows.to(self.values.device, non_blocking=True)]
        if batch.device.type == "cpu" and self.device.type == "cuda":
            batch = batch.pin_memory()
        return batch.to(self.device, non_blocking=True)

    def __len__(self) -> int:
        return len(self.values)


def medium_of(catalog: Catalog) -> Medium:
    """Infer from file extensions whether a catalog holds images or sounds; items without a file are sound mixtures."""
    extensions = {Path(path).suffix.lower().removeprefix(".") for path in catalog.table.column("path").to_pylist()}
    sound_extensions = {extension for extension in extensions if extension in SOUND_EXTENSIONS or not extension}
    if sound_extensions and sound_extensions != extensions:
        raise InputError(f"the catalog mixes sounds and other files: .{', .'.join(sorted(extensions))}")
    return "sound" if sound_extensions else "image"


def _map_cached(path: Path | None, shape: tuple[int, ...], preprocessing: Preprocessing) -> npt.NDArray[Any] | None:
    """Map the cached array into memory; None if it is missing or damaged."""
    if path is None or not path.is_file():
        return None
    try:
        values: npt.NDArray[Any] = np.load(path, mmap_mode="c")
        with path.open("rb") as file:
            file.seek(-DIGEST_BYTES, os.SEEK_END)
            digest = file.read()
    except BROKEN as error:
        if is_out_of_memory(error):
            raise
        return None
    is_complete = values.shape == shape and values.dtype == preprocessing.stored_type and values.flags.c_contiguous
    return values if is_complete and hashlib.sha256(values.data).digest() == digest else None


def _decode_all(
    files: Sequence[Any], shape: tuple[int, ...], preprocessing: Preprocessing, path: Path | None, runtime: Runtime
) -> npt.NDArray[Any]:
    rows = _decode_rows(files, preprocessing, runtime)
    if path is None:
        values = np.empty(shape, preprocessing.stored_type)
        for index, row in enumerate(rows):
            values[index] = row
        return values
    # Write the file instead of mapping it: on a full disk a write raises an error, but a mapped page kills the process.
    with whole_file(path) as temporary, temporary.open("wb") as file:
        dtype_description = np.lib.format.dtype_to_descr(np.dtype(preprocessing.stored_type))
        np.lib.format.write_array_header_1_0(file, {"descr": dtype_description, "fortran_order": False, "shape": shape})
        hasher = hashlib.sha256()
        for row in rows:
            hasher.update(row.data)
            file.write(row.data)
        file.write(hasher.digest())
    mapped = _map_cached(path, shape, preprocessing)
    assert mapped is not None  # just written
    return mapped


def _decode_rows(files: Sequence[Any], preprocessing: Preprocessing, runtime: Runtime) -> Iterator[npt.NDArray[Any]]:
    decode = _Decode(preprocessing)
    with closing(runtime.map(decode, files, title="decoding items", chunk=FILES_PER_CHUNK)) as decoded:
        for row in decoded:
            if isinstance(row, UnreadableItem):
                raise row
            yield np.ascontiguousarray(row, preprocessing.stored_type)


@dataclass(frozen=True)
class _Decode:
    """Callable that decodes a file in a worker process and returns, not raises, the error of an unreadable file."""

    preprocessing: Preprocessing

    def __call__(self, file: Any) -> npt.NDArray[Any] | UnreadableItem:
        try:
            return self.preprocessing.load(file)
        except UnreadableItem as error:
            return error


def _torch_type(values: npt.NDArray[Any]) -> torch.dtype:
    return torch.uint8 if values.dtype == np.uint8 else torch.float16
