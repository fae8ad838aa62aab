"""What all encoders of files share: decoding in worker processes, a network in batches, nothing done twice."""

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
    import torch  # imported where it is used: processes that decode files have no need of it

SEGMENT_ROWS = 512
FILES_PER_CHUNK = 8
LONGEST_CLIP = 600  # seconds
FILES_PER_BLOCK = 64  # that are decoded and encoded together on another machine
EXTENSIONS = {"image": IMAGE_EXTENSIONS, "sound": SOUND_EXTENSIONS}
EXAMPLES = {"image": "lite0 or hf:NAME", "sound": "logmel, birdnet or hf-audio:NAME"}


class NetworkEncoder(Encoder):
    """An encoder that decodes a file and passes it through a network, whose features are cached by content.

    A subclass gives `fingerprint`, `load` and `forward`, and `network` where it has one.
    """

    medium: ClassVar[str] = "image"  # what its items are: `image` or `sound`
    maps: bool = False  # whether `forward` gives local maps, [b, d, h, w]
    reduces: ClassVar[bool] = False  # whether `load` gives `open_image` a side, so that decoding photos is quick
    network: Any = None  # what `forward` uses; a module of PyTorch is moved to the device

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return all that a feature depends on besides the file's content: name, weights' digest, preprocessing."""

    def files(self, catalog: Catalog) -> Sequence[Any]:
        """What `load` takes for each item, [n]: its file, or of sounds the mixture that it stands for."""
        return item_files(catalog)

    def digests(self, files: Sequence[Any], runtime: Runtime, on_error: OnError) -> pa.Array:
        """Return a digest of the content of each, [n]; with `on_error` skip, null where it cannot be read."""
        return item_digests(files, runtime, on_error)

    @abstractmethod
    def load(self, path: Any) -> npt.NDArray[Any]:
        """One file as the network wants it, all of the same shape; runs in worker processes."""

    @abstractmethod
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return a batch of what `load` gave, [b, ...], to features, [b, d], or with `maps` to maps, [b, d, h, w]."""

    def move(self, device: torch.device) -> torch.device:
        """Move the network to a device and say where it is now; called once, before the first batch."""
        import torch

        if not isinstance(self.network, torch.nn.Module):
            return torch.device("cpu")
        self.network.to(device)
        return device

    @property
    def stored(self) -> str:
        """Under what its features are cached: the fingerprint, and whether they are maps."""
        return f"{self.fingerprint} maps" if self.maps else self.fingerprint

    @property
    def keeps_shape(self) -> bool:
        """Return whether what is cached is of no use without its shape."""
        return self.maps

    def shape_of(self, values: npt.NDArray[Any]) -> tuple[int, ...]:
        """Return the shape to keep, of what the first batch gave, [b, ...]."""
        return values.shape[1:]

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """What is cached of a batch."""
        return self.forward(batch)

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None) -> Features:
        """Encode what the cache lacks, and put the features in the order of the catalog."""
        return self.features_of(self.encode_rows(catalog, runtime, on_error, glance))

    def features_of(self, rows: Encoded) -> Features:
        """Return flat rows as features."""
        array = rows.values.reshape(len(rows.values), *rows.shape) if rows.shape else rows.values
        return Features.from_array(rows.items, array, record=rows.record, tally=rows.tally)

    def encode_rows(
        self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Encoded:
        """Return what the cache has or lacks of each item, as flat rows in the order of the catalog.

        Args:
            catalog: the items
            runtime: how to compute
            on_error: what to do about an item whose file cannot be read
            glance: looks at files that are decoded here; not on other machines
        """
        if not len(catalog):
            raise InputError(f"encoder '{self.name}': the catalog has no items")
        self._refuse_other_media(catalog)
        fingerprint = self.stored
        files = self.files(catalog)
        digests = self.digests(files, runtime, on_error)
        store = feature_store(runtime.cache, fingerprint)
        # What is of no use without its shape is made anew.
        known = store.find(pc.unique(digests).drop_null() if store.shape or not self.keeps_shape else digests[:0])
        missing = _first_files(digests, files, known.column("key"))
        encoded = self._encode_files(missing, store, runtime, on_error, glance)
        table = pa.concat_tables([part for part in (known, *encoded) if len(part)] or [known])
        places = pc.index_in(digests, value_set=table.column("key"), skip_nulls=True)
        items = catalog.item_column
        skipped = items.filter(pc.is_null(places)).to_pylist()
        if len(skipped) == len(catalog):
            raise UnreadableItem(f"none of the {len(catalog)} items can be read, e.g. '{skipped[0]}'")
        rows = places.drop_null().to_numpy(zero_copy_only=False)
        values = table.column("value").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        flat = values.reshape(len(table), -1)[rows]
        record = FeaturesRecord(fingerprint=fingerprint, skipped=tuple(skipped))
        anew = sum(map(len, encoded))
        tally = Tally(anew, len(rows) - anew)
        return Encoded(items.filter(pc.is_valid(places)).to_pylist(), flat, tuple(store.shape or ()), record, tally)

    def check(self, catalog: Catalog) -> None:
        """Refuse items of another medium."""
        super().check(catalog)
        self._refuse_other_media(catalog)

    def _refuse_other_media(self, catalog: Catalog) -> None:
        """Refuse sounds where images are expected, and the other way round, before anything is decoded."""
        others = {end: medium for medium, ends in EXTENSIONS.items() if medium != self.medium for end in ends}
        for item, path in zip(catalog.items, catalog.paths, strict=True):
            if other := others.get(path.suffix.lower().removeprefix(".")):
                raise InputError(
                    f"encoder '{self.name}' takes {self.medium}s, but the file of item '{item}' is of "
                    f"another kind ({path}): expected an encoder for {other}s, e.g. {EXAMPLES[other]}"
                )

    def _encode_files(
        self, files: Mapping[str, Any], store: Store, runtime: Runtime, on_error: OnError, glance: Glance | None
    ) -> list[pa.Table]:
        """Files by digest to tables of `key` (the digest) and `value` (the feature), one table per batch."""
        tables: list[pa.Table] = []
        if runtime.remote:
            batches = self._encoded_elsewhere(files, runtime, on_error)
        else:
            batches = self.encoded(files, runtime, on_error, glance)
        with closing(batches) as encoded, Writer(store, SEGMENT_ROWS) as writer:
            for digests, values in encoded:
                if self.keeps_shape and not tables:
                    store.keep_shape(self.shape_of(values))
                feature = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)
                tables.append(pa.table({"key": pa.array(digests, pa.string()), "value": feature}))
                writer.add(tables[-1])
        return tables

    def encoded(
        self, files: Mapping[str, Any], runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Generator[_Batch, None, None]:
        """Return the digests and the features of files by digest, batch by batch, by the network in this process."""
        if not files:
            return
        import torch

        wanted = choose_device(runtime.device)
        device = self.move(wanted)
        size = torch.get_num_threads() if wanted.type == "cpu" else 1

        def features(batch: Sequence[_Decoded]) -> npt.NDArray[Any]:
            with torch.inference_mode():
                tensor = torch.from_numpy(self._stack([one.array for one in batch])).to(device)
                return self._checked(self.compute(tensor), [files[one.digest] for one in batch])

        decoded = self._decoded(list(files.values()), runtime, glance)
        # Each thread has a batch of its own. One that several threads share makes them wait for each other at every
        # layer, for long on a busy machine, and its features would depend on their number.
        with closing(decoded), _full_precision(), threads(size) as pool:
            batch_size = runtime.batch_size or (4 if wanted.type == "cpu" else 64)
            batches = _batches(zip(files, decoded, strict=True), batch_size, on_error)
            for batch, values in _in_order(pool, features, batches, ahead=2 * size):
                yield [one.digest for one in batch], values

    def _encoded_elsewhere(
        self, files: Mapping[str, Any], runtime: Runtime, on_error: OnError
    ) -> Generator[_Batch, None, None]:
        """Return the same by networks on other machines, each of which decodes its files too."""
        size = (runtime.batch_size or 1) * math.ceil(FILES_PER_BLOCK / (runtime.batch_size or 1))  # of whole batches
        numbered = list(files.items())
        blocks = [dict(numbered[start : start + size]) for start in range(0, len(numbered), size)]
        work = EncodedBlock(self, on_error)
        for batches, unreadable in runtime.map(work, blocks, title=f"encoding by {self}", steps=len, needs="share"):
            yield from batches
            if unreadable is not None:
                raise unreadable

    def _decoded(
        self, files: Sequence[Any], runtime: Runtime, glance: Glance | None
    ) -> Generator[npt.NDArray[Any] | UnreadableItem, None, None]:
        """Decode files in worker processes, in order, each once for the network and for the glance."""
        title = f"encoding by {self}"
        if glance is None:
            yield from runtime.map(self._decode, files, title=title, chunk=FILES_PER_CHUNK)
            return
        both = _Both(glance.look, self._decode)
        with closing(runtime.map(both, files, title=title, chunk=FILES_PER_CHUNK)) as each:
            for file, (seen, array) in zip(files, each, strict=True):
                glance.seen[file] = seen
                yield array

    def _decode(self, path: Any) -> npt.NDArray[Any] | UnreadableItem:
        """What `load` gives; of an unreadable file its error, so that it keeps its place."""
        try:
            return self.load(path)
        except UnreadableItem as error:
            return error

    def _stack(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        shapes = sorted({array.shape for array in arrays})
        if len(shapes) > 1:
            raise InputError(
                f"encoder '{self.name}': its preprocessing gives images of different shapes, "
                f"{list(shapes[0])} and {list(shapes[1])}, which cannot be one batch"
            )
        return np.stack(arrays)

    def _checked(self, features: torch.Tensor, paths: Sequence[Any]) -> npt.NDArray[Any]:
        """Return the features as an array, [b, d] in float32 or maps in float16, before they reach the cache."""
        if features.ndim != (4 if self.maps else 2) or len(features) != len(paths):
            wanted = f"[{len(paths)}, {'d, h, w' if self.maps else 'd'}]"
            raise InputError(f"encoder '{self.name}': expected features of shape {wanted}, got {list(features.shape)}")
        values: npt.NDArray[Any] = (features.half() if self.maps else features.float()).cpu().numpy()
        broken = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        if broken.any():
            path = paths[int(np.argmax(broken))]
            raise InputError(f"encoder '{self.name}': the feature of {path} has a value that is not finite")
        return values


class SoundEncoder(NetworkEncoder):
    """An encoder of clips: the first `seconds` of each sound, a shorter one repeated, as one channel at `clip_rate`.

    A mixture that is not written to disk is made on the fly, and cached by what it is made of.
    """

    medium = "sound"
    seconds: float  # an option of each

    def extras(self) -> Mapping[str, str]:
        """What reads sounds."""
        return {"soundfile": "sound"}

    @property
    @abstractmethod
    def clip_rate(self) -> int:
        """Samples per second of its clips."""

    def load(self, path: ItemFile) -> npt.NDArray[np.float32]:
        """Return the clip, [clip_rate * seconds]."""
        return read_clip(path, self.clip_rate, self.seconds)


@dataclass(frozen=True)
class Glance:
    """What a function says of files while they are decoded for a network, by file."""

    look: Callable[[Path], Any]
    seen: dict[Path, Any] = field(default_factory=dict)


def look_while_encoding(
    catalog: Catalog, encoder: NetworkEncoder, look: Callable[[Path], Any], runtime: Runtime
) -> tuple[Features | None, list[Any]]:
    """Encode a catalog and look at its images, decoding each once for both.

    Args:
        catalog: the images
        encoder: one that opens images at a part of their size, as `look` does
        look: what is asked of each image; it returns the error of one that cannot be read
        runtime: how to compute

    Returns:
        What `encoder.encode` gives with `on_error` skip, None if no image can be read, and what was seen of each image.
    """
    glance = Glance(look)
    try:
        features = encoder.encode(catalog, runtime, "skip", glance)
    except UnreadableItem:
        features = None
    # Images whose features were in the cache, and copies of others, were not decoded.
    rest = [path for path in dict.fromkeys(catalog.paths) if path not in glance.seen]
    seen = runtime.map(look, rest, title=f"looking at {len(rest):,} more images", chunk=FILES_PER_BLOCK)
    glance.seen.update(zip(rest, seen, strict=True))
    return features, [glance.seen[path] for path in catalog.paths]


@dataclass(frozen=True)
class _Both:
    """Look at a file and load it, decoding it once."""

    look: Callable[[Path], Any]
    load: Callable[[Path], Any]

    def __call__(self, path: Path) -> tuple[Any, Any]:
        with decoded_once():
            return self.look(path), self.load(path)


_Batch = tuple[list[str], npt.NDArray[Any]]  # digests, and the features of these


@dataclass(frozen=True)
class EncodedBlock:
    """Encodes some files where it is: what is done before an unreadable one, and that."""

    encoder: NetworkEncoder
    on_error: OnError

    def __call__(self, files: Mapping[str, Any]) -> tuple[list[_Batch], UnreadableItem | None]:
        """Files by digest to batches."""
        done: list[_Batch] = []
        try:
            for batch in self.encoder.encoded(files, current_runtime(), self.on_error):
                done.append(batch)  # noqa: PERF402 - what comes before an error counts
        except UnreadableItem as error:
            return done, error
        return done, None


class Encoded(NamedTuple):
    """Flat rows of items: values [n, size], and the shape that was kept with them, where there is one."""

    items: list[str]
    values: npt.NDArray[Any]
    shape: tuple[int, ...]
    record: FeaturesRecord
    tally: Tally


class _Decoded(NamedTuple):
    """A file that was decoded: the digest of its content, and what `load` gave."""

    digest: str
    array: npt.NDArray[Any]


def _batches(
    decoded: Iterable[tuple[str, npt.NDArray[Any] | UnreadableItem]], size: int, on_error: OnError
) -> Iterator[list[_Decoded]]:
    """Decoded files in batches; what comes before an unreadable file is encoded, and kept, before it is raised."""
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
    """Convolutions of a GPU in float32: the shorter TF32 would give other features (by 0.5%) than a CPU."""
    import torch

    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
    return flags


def _in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Sequence[_Decoded]], npt.NDArray[Any]],
    batches: Iterable[list[_Decoded]],
    ahead: int,
) -> Iterator[tuple[list[_Decoded], npt.NDArray[Any]]]:
    """Each batch with its result, in order, with so many begun ahead; where a batch fails to come, the rest first."""
    begun: deque[tuple[list[_Decoded], Future[npt.NDArray[Any]]]] = deque()
    failure: UnreadableItem | None = None
    try:
        for batch in batches:
            begun.append((batch, pool.submit(work, batch)))
            if len(begun) > ahead:
                first, result = begun.popleft()
                yield first, result.result()
    except UnreadableItem as error:
        failure = error
    for first, result in begun:
        yield first, result.result()
    if failure is not None:
        raise failure


def _first_files(digests: pa.Array, paths: Sequence[Any], known: pa.ChunkedArray) -> dict[str, Any]:
    """Of each content that is not known, the first file that has it."""
    seen = {None, *known.to_pylist()}
    files: dict[str, Any] = {}
    for digest, path in zip(digests.to_pylist(), paths, strict=True):
        if digest not in seen:
            files.setdefault(digest, path)
    return files
