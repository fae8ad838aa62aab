"""All items of a catalog, decoded once: an array in a file of the cache, mapped into memory."""

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
from shotproof.catalog.clips import clip_digests, clips_of
from shotproof.core.errors import InputError, UnreadableItem, is_want_of_memory
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.numpy_files import BROKEN
from shotproof.core.storage.store import file_digests
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import find_rows
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.models.preprocessing import Medium, Preprocessing

FILES_PER_CHUNK = 8
DIGEST_BYTES = 32  # the SHA-256 of the values, after them
FREE_SHARE = 0.5  # of a GPU's free memory that items may take


@dataclass(frozen=True)
class ItemStore:
    """What is kept of each item, [n, height, width, channels], in the order of the catalog.

    key: the same for the same contents under the same preprocessing
    """

    items: pa.Array
    values: npt.NDArray[Any]
    key: str

    @classmethod
    def of(cls, catalog: Catalog, preprocessing: Preprocessing, runtime: Runtime) -> ItemStore:
        """Decode the items, unless the cache has them.

        Raises:
            UnreadableItem: a file cannot be read.
            InputError: the catalog has no items.
        """
        if not len(catalog):
            raise InputError("the catalog has no items")
        sounds = preprocessing.medium == "sound"
        files: Sequence[Any] = clips_of(catalog) if sounds else catalog.paths
        digests = (clip_digests if sounds else file_digests)(files, runtime).to_pylist()
        key = hashlib.sha256("\0".join([preprocessing.fingerprint, *digests]).encode()).hexdigest()[:32]
        path = None if runtime.cache is None else runtime.cache / "items" / f"{key}.npy"
        shape = (len(catalog), *preprocessing.stored_shape)
        values = _mapped(path, shape, preprocessing)
        if values is None:
            values = _decoded(files, shape, preprocessing, path, runtime)
        return cls(catalog.item_column, values, key)

    def rows_of(self, items: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The row of each item; Mismatch where one is not there."""
        return find_rows(items, self.items, "the item store lacks")

    def tensor(self, device: torch.device) -> ResidentItems:
        """The items where batches are gathered from: in the device's memory if they fit, else in main memory."""
        fits = device.type == "cpu"
        if device.type == "cuda":
            fits = self.values.nbytes <= FREE_SHARE * torch.cuda.mem_get_info(device)[0]
        # The mapped file is read-only, which PyTorch warns of; nothing writes to it.
        values = torch.frombuffer(self.values, dtype=_torch_type(self.values)).view(self.values.shape)
        return ResidentItems(values.to(device) if fits else values, device)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ResidentItems:
    """Items in some memory, [n, height, width, channels], from which batches are taken to a device."""

    values: Tensor
    device: torch.device

    def take(self, rows: Tensor) -> Tensor:
        """Some rows, of any shape [...], on the device: [..., height, width, channels].

        It never waits for a GPU where the rows are in the same memory as the items.
        """
        taken = self.values[rows.to(self.values.device, non_blocking=True)]
        if taken.device.type == "cpu" and self.device.type == "cuda":
            taken = taken.pin_memory()
        return taken.to(self.device, non_blocking=True)

    def __len__(self) -> int:
        return len(self.values)


def medium_of(catalog: Catalog) -> Medium:
    """What the items of a catalog are, by their files' names; an item without a file is a mixture of sounds."""
    ends = {Path(path).suffix.lower().removeprefix(".") for path in catalog.table.column("path").to_pylist()}
    sounds = {end for end in ends if end in SOUND_EXTENSIONS or not end}
    if sounds and sounds != ends:
        raise InputError(f"the catalog has sounds and other files: .{', .'.join(sorted(ends))}")
    return "sound" if sounds else "image"


def _mapped(path: Path | None, shape: tuple[int, ...], preprocessing: Preprocessing) -> npt.NDArray[Any] | None:
    """What the cache has; None where it has nothing, or something broken."""
    if path is None or not path.is_file():
        return None
    try:
        values: npt.NDArray[Any] = np.load(path, mmap_mode="c")
        with path.open("rb") as file:
            file.seek(-DIGEST_BYTES, os.SEEK_END)
            digest = file.read()
    except BROKEN as error:
        if is_want_of_memory(error):
            raise
        return None
    whole = values.shape == shape and values.dtype == preprocessing.stored_type and values.flags.c_contiguous
    return values if whole and hashlib.sha256(values.data).digest() == digest else None


def _decoded(
    files: Sequence[Any], shape: tuple[int, ...], preprocessing: Preprocessing, path: Path | None, runtime: Runtime
) -> npt.NDArray[Any]:
    rows = _rows(files, preprocessing, runtime)
    if path is None:
        values = np.empty(shape, preprocessing.stored_type)
        for place, row in enumerate(rows):
            values[place] = row
        return values
    # Written and not mapped: where a disk is full, a write is refused, but a mapped page ends the process.
    with whole_file(path) as temporary, temporary.open("wb") as file:
        described = np.lib.format.dtype_to_descr(np.dtype(preprocessing.stored_type))
        np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
        hasher = hashlib.sha256()
        for row in rows:
            hasher.update(row.data)
            file.write(row.data)
        file.write(hasher.digest())
    found = _mapped(path, shape, preprocessing)
    assert found is not None  # it was written just now
    return found


def _rows(files: Sequence[Any], preprocessing: Preprocessing, runtime: Runtime) -> Iterator[npt.NDArray[Any]]:
    decode = _Decode(preprocessing)
    with closing(runtime.map(decode, files, what="decoding items", chunk=FILES_PER_CHUNK)) as decoded:
        for one in decoded:
            if isinstance(one, UnreadableItem):
                raise one
            yield np.ascontiguousarray(one, preprocessing.stored_type)


@dataclass(frozen=True)
class _Decode:
    """Decodes a file in a worker process; an unreadable one gives its error, so that the pool goes on."""

    preprocessing: Preprocessing

    def __call__(self, file: Any) -> npt.NDArray[Any] | UnreadableItem:
        try:
            return self.preprocessing.load(file)
        except UnreadableItem as error:
            return error


def _torch_type(values: npt.NDArray[Any]) -> torch.dtype:
    return torch.uint8 if values.dtype == np.uint8 else torch.float16
