"""Base classes of encoders of files: decoding in worker processes, batches for the network, and a cache."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_digests, item_files
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.records import FeaturesRecord
from shotproof.core.runtime.devices import choose_device, threads
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.storage.store import OnError, Store, Writer, feature_store
from shotproof.features.encoder import Encoder
from shotproof.features.features import Features, Tally
from shotproof.media.clip import SOUND_EXTENSIONS, read_clip
from shotproof.media.images import IMAGE_EXTENSIONS, decoded_once
from shotproof.media.unwritten import ItemFile

if TYPE_CHECKING:
    import torch  # imported where it is used, because processes that decode files do not need it

SEGMENT_ROWS = 512
FILES_PER_CHUNK = 8
LONGEST_CLIP = 600  # seconds
FILES_PER_BLOCK = 64  # files that another machine decodes and encodes at a time
EXTENSIONS = {"image": IMAGE_EXTENSIONS, "sound": SOUND_EXTENSIONS}
EXAMPLES = {"image": "lite0 or hf:NAME", "sound": "logmel, birdnet or hf-audio:NAME"}


class NetworkEncoder(Encoder):
    """Encoder that decodes files and passes them through a network, and caches the features by content.

    A subclass defines `fingerprint`, `load` and `forward`, and `network` if it has one.
    """

    medium: ClassVar[str] = "image"  # kind of its items: `image` or `sound`
    maps: bool = False  # whether `forward` returns local maps, [b, d, h, w]
    reduces: ClassVar[bool] = False  # whether `load` decodes photos at reduced size, which is fast
    network: Any = None  # used by `forward`; a module of PyTorch is moved to the device

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return everything that a feature depends on besides the content: name, weights' digest, preprocessing."""

    def files(self, catalog: Catalog) -> Sequence[Any]:
        """Return the argument of `load` for each item, [n]: its file, or what it is made from when it is read."""
        return item_files(catalog)

    def digests(self, files: Sequence[Any], runtime: Runtime, on_error: OnError) -> pa.Array:
        """Compute a digest of each file's content, [n]; with `on_error` skip, null if the file cannot be read."""
        return item_digests(files, runtime, on_error)

    @abstractmethod
    def load(self, path: Any) -> npt.NDArray[Any]:
        """Read a file as the network's input, of the same shape for all files. It runs in worker processes."""

    @abstractmethod
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode a batch of loaded items, [b, ...], as features, [b, d], or with `maps` as maps, [b, d, h, w]."""

    def move(self, device: torch.device) -> torch.device:
        """Move the network to a device, and return the device that it is on. Called once, before the first batch."""
        import torch

        if not isinstance(self.network, torch.nn.Module):
            return torch.device("cpu")
        self.network.to(device)
        return device

    @property
    def stored(self) -> str:
        """Return the cache key of the features: the fingerprint, and whether they are maps."""
        return f"{self.fingerprint} maps" if self.maps else self.fingerprint

    @property
    def keeps_shape(self) -> bool:
        """Return whether cached values cannot be used without their shape."""
        return self.maps

    def shape_of(self, values: npt.NDArray[Any]) -> tuple[int, ...]:
        """Return the shape to store in the cache, from the values of the first batch, [b, ...]."""
        return values.shape[1:]

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """Compute the values of a batch that go into the cache."""
        return self.forward(batch)

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None) -> Features:
        """Encode the items that the cache lacks, and put the features in the order of the catalog."""
        return self.features_of(self.encode_rows(catalog, runtime, on_error, glance))

    def features_of(self, rows: Encoded) -> Features:
        """Convert flat rows to features."""
        array = rows.values.reshape(len(rows.values), *rows.shape) if rows.shape else rows.values
        return Features.from_array(rows.items, array, record=rows.record, tally=rows.tally)

    def encode_rows(
        self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Encoded:
        """Encode the items that the cache lacks, and return all as flat rows in the order of the catalog.

        Args:
            catalog: items to encode
            runtime: runtime settings
            on_error: what to do with an item whose file cannot be read
            glance: also looks at the files that are decoded in this process or its workers, not on other machines
        """
        if not len(catalog):
            raise InputError(f"encoder '{self.name}': the catalog has no items")
        self._require_medium(catalog)
        fingerprint = self.stored
        files = self.files(catalog)
        digests = self.digests(files, runtime, on_error)
        store = feature_store(runtime.cache, fingerprint)
        # Values that cannot be used without their shape are computed again if the shape is missing.
        cached = store.find(pc.unique(digests).drop_null() if store.shape or not self.keeps_shape else digests[:0])
        missing = _files_to_encode(digests, files, cached.column("key"))
        encoded = self._encode_files(missing, store, runtime, on_error, glance)
        table = pa.concat_tables([part for part in (cached, *encoded) if len(part)] or [cached])
        item_rows = pc.index_in(digests, value_set=table.column("key"), skip_nulls=True)
        items = catalog.item_column
        skipped = items.filter(pc.is_null(item_rows)).to_pylist()
        if len(skipped) == len(catalog):
            raise UnreadableItem(f"none of the {len(catalog)} items can be read, e.g. '{skipped[0]}'")
        rows = item_rows.drop_null().to_numpy(zero_copy_only=False)
        values = table.column("value").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        flat = values.reshape(len(table), -1)[rows]
        record = FeaturesRecord(fingerprint=fingerprint, skipped=tuple(skipped))
        encoded_count = sum(map(len, encoded))
        tally = Tally(encoded_count, len(rows) - encoded_count)
        return Encoded(items.filter(pc.is_valid(item_rows)).to_pylist(), flat, tuple(store.shape or ()), record, tally)

    def check(self, catalog: Catalog) -> None:
        """Check that the items are of the encoder's medium."""
        super().check(catalog)
        self._require_medium(catalog)

    def _require_medium(self, catalog: Catalog) -> None:
        """Raise InputError, before decoding anything, if sounds are given instead of images or the other way around."""
        other_media = {
            extension: medium
            for medium, extensions in EXTENSIONS.items()
            if medium != self.medium
            for extension in extensions
        }
        for item, path in zip(catalog.items, catalog.paths, strict=True):
            if medium := other_media.get(path.suffix.lower().removeprefix(".")):
                article = "an" if medium == "image" else "a"
                raise InputError(
                    f"encoder '{self.name}' takes {self.medium}s, but the file of item '{item}' is {article} {medium} "
                    f"({path}): expected an encoder for {medium}s, e.g. {EXAMPLES[medium]}"
                )

    def _encode_files(
        self, files: Mapping[str, Any], store: Store, runtime: Runtime, on_error: OnError, glance: Glance | None
    ) -> list[pa.Table]:
        """Encode files by digest and cache the features; return a table per batch, of `key` (digest) and `value`."""
        tables: list[pa.Table] = []
        if runtime.remote:
            batches = self._encode_remotely(files, runtime, on_error)
        else:
            batches = self.encode_batches(files, runtime, on_error, glance)
        with closing(batches), Writer(store, SEGMENT_ROWS) as writer:
            for digests, values in batches:
                if self.keeps_shape and not tables:
                    store.keep_shape(self.shape_of(values))
                feature = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)
                tables.append(pa.table({"key": pa.array(digests, pa.string()), "value": feature}))
                writer.add(tables[-1])
        return tables

    def encode_batches(
        self, files: Mapping[str, Any], runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Generator[_Batch, None, None]:
        """Encode files by digest with the network in this process; yield the digests and the features of each batch."""
        if not files:
            return
        import torch

        chosen_device = choose_device(runtime.device)
        device = self.move(chosen_device)
        thread_count = torch.get_num_threads() if chosen_device.type == "cpu" else 1

        def compute_features(batch: Sequence[_Decoded]) -> npt.NDArray[Any]:
            with torch.inference_mode():
                tensor = torch.from_numpy(self._stack([item.array for item in batch])).to(device)
                return self._to_finite_array(self.compute(tensor), [files[item.digest] for item in batch])

        arrays = self._decode_all(list(files.values()), runtime, glance)
        # Each thread has its own batch. Threads that share a batch wait for each other at every layer, which takes
        # long on a busy machine, and the features would depend on their number.
        with closing(arrays), _full_precision(), threads(thread_count) as pool:
            batch_size = runtime.batch_size or (4 if chosen_device.type == "cpu" else 64)
            batches = _group_batches(zip(files, arrays, strict=True), batch_size, on_error)
            for batch, values in _map_in_order(pool, compute_features, batches, ahead=2 * thread_count):
                yield [item.digest for item in batch], values

    def _encode_remotely(
        self, files: Mapping[str, Any], runtime: Runtime, on_error: OnError
    ) -> Generator[_Batch, None, None]:
        """Encode files on other machines, which also decode them; yield the digests and the features of each batch."""
        size = (runtime.batch_size or 1) * math.ceil(FILES_PER_BLOCK / (runtime.batch_size or 1))  # full batches
        numbered = list(files.items())
        blocks = [dict(numbered[start : start + size]) for start in range(0, len(numbered), size)]
        work = EncodedBlock(self, on_error)
        for batches, unreadable in runtime.map(work, blocks, title=f"encoding by {self}", steps=len, needs="share"):
            yield from batches
            if unreadable is not None:
                raise unreadable

    def _decode_all(
        self, files: Sequence[Any], runtime: Runtime, glance: Glance | None
    ) -> Generator[npt.NDArray[Any] | UnreadableItem, None, None]:
        """Decode files in worker processes, in order, each once for both the network and the glance."""
        title = f"encoding by {self}"
        if glance is None:
            yield from runtime.map(self._decode, files, title=title, chunk=FILES_PER_CHUNK)
            return
        look_and_load = _LookAndLoad(glance.look, self._decode)
        with closing(runtime.map(look_and_load, files, title=title, chunk=FILES_PER_CHUNK)) as outputs:
            for file, (result, array) in zip(files, outputs, strict=True):
                glance.results[file] = result
                yield array

    def _decode(self, path: Any) -> npt.NDArray[Any] | UnreadableItem:
        """Load a file; return the error of an unreadable one, so that the order is kept."""
        try:
            return self.load(path)
        except UnreadableItem as error:
            return error

    def _stack(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        shapes = sorted({array.shape for array in arrays})
        if len(shapes) > 1:
            raise InputError(
                f"encoder '{self.name}': its preprocessing gives items of different shapes, "
                f"{list(shapes[0])} and {list(shapes[1])}, which cannot be one batch"
            )
        return np.stack(arrays)

    def _to_finite_array(self, features: torch.Tensor, paths: Sequence[Any]) -> npt.NDArray[Any]:
        """Check features and convert them to an array, [b, d] in float32 or maps in float16."""
        if features.ndim != (4 if self.maps else 2) or len(features) != len(paths):
            expected = f"[{len(paths)}, {'d, h, w' if self.maps else 'd'}]"
            raise InputError(
                f"encoder '{self.name}': expected features of shape {expected}, found {list(features.shape)}"
            )
        values: npt.NDArray[Any] = (features.half() if self.maps else features.float()).cpu().numpy()
        has_infinite = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        if has_infinite.any():
            path = paths[int(np.argmax(has_infinite))]
            raise InputError(f"encoder '{self.name}': the feature of {path} has a value that is not finite")
        return values


class SoundEncoder(NetworkEncoder):
    """Encoder of clips: the first `seconds` of each sound, or a shorter one repeated, as one channel at `clip_rate`.

    A mixture without a file is mixed when it is read, and its features are cached by the content of its parts.
    """

    medium = "sound"
    seconds: float  # an option of each subclass

    def extras(self) -> Mapping[str, str]:
        """Return the package that reads sounds."""
        return {"soundfile": "sound"}

    @property
    @abstractmethod
    def clip_rate(self) -> int:
        """Return the sampling rate of the clips."""

    def load(self, path: ItemFile) -> npt.NDArray[np.float32]:
        """Read a clip, [clip_rate * seconds]."""
        return read_clip(path, self.clip_rate, self.seconds)


@dataclass(frozen=True)
class Glance:
    """Function that looks at files while they are decoded for a network, and its results by file."""

    look: Callable[[Path], Any]
    results: dict[Path, Any] = field(default_factory=dict)


def look_while_encoding(
    catalog: Catalog, encoder: NetworkEncoder, look: Callable[[Path], Any], runtime: Runtime
) -> tuple[Features | None, list[Any]]:
    """Encode a catalog and apply a function to its images, decoding each only once.

    Args:
        catalog: catalog of images
        encoder: encoder that opens images at reduced size, as `look` does
        look: function of an image's path; for one that cannot be read, it returns the error
        runtime: runtime settings

    Returns:
        The features, as `encoder.encode` returns them with `on_error` skip, or None if no image can be read; and the
        result of `look` for each image.
    """
    glance = Glance(look)
    try:
        features = encoder.encode(catalog, runtime, "skip", glance)
    except UnreadableItem:
        features = None
    # Images with cached features, and copies of others, were not decoded.
    rest = [path for path in dict.fromkeys(catalog.paths) if path not in glance.results]
    results = runtime.map(look, rest, title=f"looking at {len(rest):,} more images", chunk=FILES_PER_BLOCK)
    glance.results.update(zip(rest, results, strict=True))
    return features, [glance.results[path] for path in catalog.paths]


@dataclass(frozen=True)
class _LookAndLoad:
    """Function object that looks at a file and loads it, decoding it once."""

    look: Callable[[Path], Any]
    load: Callable[[Path], Any]

    def __call__(self, path: Path) -> tuple[Any, Any]:
        with decoded_once():
            return self.look(path), self.load(path)


_Batch = tuple[list[str], npt.NDArray[Any]]  # digests, and the features of these files


@dataclass(frozen=True)
class EncodedBlock:
    """Function object that encodes files on another machine, up to an unreadable one."""

    encoder: NetworkEncoder
    on_error: OnError

    def __call__(self, files: Mapping[str, Any]) -> tuple[list[_Batch], UnreadableItem | None]:
        """Encode files by digest; return the batches, and the error of the first unreadable file."""
        batches: list[_Batch] = []
        try:
            for batch in self.encoder.encode_batches(files, current_runtime(), self.on_error):
                batches.append(batch)  # noqa: PERF402 - batches before an error are returned
        except UnreadableItem as error:
            return batches, error
        return batches, None


class Encoded(NamedTuple):
    """Flat rows of items: values [n, size], and the shape in the cache, if there is one."""

    items: list[str]
    values: npt.NDArray[Any]
    shape: tuple[int, ...]
    record: FeaturesRecord
    tally: Tally


class _Decoded(NamedTuple):
    """Decoded file: the digest of its content, and the array that `load` returned."""

    digest: str
    array: npt.NDArray[Any]


def _group_batches(
    decoded: Iterable[tuple[str, npt.NDArray[Any] | UnreadableItem]], size: int, on_error: OnError
) -> Iterator[list[_Decoded]]:
    """Group decoded files into batches. An error is raised after the files before it, which are encoded and cached."""
    batch: list[_Decoded] = []
    for digest, array in decoded:
        if isinstance(array, UnreadableItem):
            if on_error == "raise":
                if batch:
                    yield batch
                raise array
            continue
        batch.append(_Decoded(digest, array))
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _full_precision() -> AbstractContextManager[None]:
    """Compute a GPU's convolutions in float32, because TF32 gives features that differ from a CPU's by 0.5%."""
    import torch

    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
    return flags


def _map_in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Sequence[_Decoded]], npt.NDArray[Any]],
    batches: Iterable[list[_Decoded]],
    ahead: int,
) -> Iterator[tuple[list[_Decoded], npt.NDArray[Any]]]:
    """Yield each batch with its result, in order, with up to `ahead` others in progress; errors come last."""
    in_progress: deque[tuple[list[_Decoded], Future[npt.NDArray[Any]]]] = deque()
    failure: UnreadableItem | None = None
    try:
        for batch in batches:
            in_progress.append((batch, pool.submit(work, batch)))
            if len(in_progress) > ahead:
                first, future = in_progress.popleft()
                yield first, future.result()
    except UnreadableItem as error:
        failure = error
    for first, future in in_progress:
        yield first, future.result()
    if failure is not None:
        raise failure


def _files_to_encode(digests: pa.Array, paths: Sequence[Any], cached: pa.ChunkedArray) -> dict[str, Any]:
    """Return the first file of each content that is not cached."""
    excluded = {None, *cached.to_pylist()}
    files: dict[str, Any] = {}
    for digest, path in zip(digests.to_pylist(), paths, strict=True):
        if digest not in excluded:
            files.setdefault(digest, path)
    return files
