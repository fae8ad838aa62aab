"""What all encoders of files share: decoding in worker processes, a network in batches, nothing done twice."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch.utils.data import DataLoader, Dataset

from shotproof.catalog.catalog import Catalog
from shotproof.devices import choose_device
from shotproof.errors import InputError, UnreadableItem
from shotproof.features.cache import Store, Writer, feature_store, file_digests
from shotproof.features.encoder import Encoder, EncodeSettings
from shotproof.features.features import Features
from shotproof.images import IMAGE_EXTENSIONS
from shotproof.progress import progress
from shotproof.sounds.clip import SOUND_EXTENSIONS

SEGMENT_ROWS = 512
EXTENSIONS = {"image": IMAGE_EXTENSIONS, "sound": SOUND_EXTENSIONS}
EXAMPLES = {"image": "lite0 or hf:NAME", "sound": "logmel, birdnet or hf-audio:NAME"}


class NetworkEncoder(Encoder):
    """An encoder that decodes a file and passes it through a network, whose features are cached by content.

    A subclass gives `fingerprint`, `load` and `forward`, and `move` where it can use more than the CPU.
    It is sent to the worker processes, without its attribute `network`.
    """

    kind: ClassVar[str] = "image"  # what its items are: `image` or `sound`
    maps: bool = False  # whether `forward` gives local maps, [b, d, h, w]

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """All that a feature depends on besides the file's content: name, weights' digest, preprocessing."""

    def files(self, catalog: Catalog) -> Sequence[Any]:
        """What `load` takes for each item, [n]: its file."""
        return catalog.paths

    def digests(self, files: Sequence[Any], cache: Path | None) -> pa.Array:
        """A digest of the content of each, [n]."""
        return file_digests(files, cache)

    @abstractmethod
    def load(self, path: Any) -> npt.NDArray[Any]:
        """One file as the network wants it, all of the same shape; runs in worker processes."""

    @abstractmethod
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """A batch of what `load` gave, [b, ...], to features, [b, d], or with `maps` to maps, [b, d, h, w]."""

    def move(self, device: torch.device) -> torch.device:
        """Move the network to a device and say where it is now; called once, before the first batch."""
        return torch.device("cpu")

    def encode(self, catalog: Catalog, settings: EncodeSettings) -> Features:
        """Encode what the cache lacks, and put the features in the order of the catalog."""
        if not len(catalog):
            raise InputError(f"encoder '{self.name}': the catalog has no items")
        self._refuse_other_kinds(catalog)
        files = self.files(catalog)
        digests = self.digests(files, settings.cache)
        fingerprint = f"{self.fingerprint} maps" if self.maps else self.fingerprint
        store = feature_store(settings.cache, fingerprint)
        # Maps without their shape are of no use, and made anew.
        known = store.find(pc.unique(digests) if store.shape or not self.maps else digests[:0])
        missing = _first_files(digests, files, known.column("key"))
        settings.tally.encoded = len(missing)
        settings.tally.reused = len(catalog) - len(missing)
        encoded = self._encode_files(missing, store, settings)
        table = pa.concat_tables([part for part in (known, *encoded) if len(part)])
        rows = pc.index_in(digests, value_set=table.column("key")).to_numpy(zero_copy_only=False)
        values = table.column("value").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        array = values.reshape(len(table), *(store.shape or [-1]))[rows]
        return Features.from_array(catalog.items, array, {"fingerprint": fingerprint})

    def _refuse_other_kinds(self, catalog: Catalog) -> None:
        """Refuse sounds where images are expected, and the other way round, before anything is decoded."""
        others = {extension: kind for kind in EXTENSIONS if kind != self.kind for extension in EXTENSIONS[kind]}
        for row, path in enumerate(catalog.paths):
            if other := others.get(path.suffix.lower().removeprefix(".")):
                raise InputError(
                    f"encoder '{self.name}' takes {self.kind}s, but the file of item '{catalog.items[row]}' is of "
                    f"another kind ({path}): expected an encoder for {other}s, e.g. {EXAMPLES[other]}"
                )

    def _encode_files(self, files: Mapping[str, Any], store: Store, settings: EncodeSettings) -> list[pa.Table]:
        """Files by digest to tables of `key` (the digest) and `value` (the feature), a table a batch."""
        if not files:
            return []
        wanted = choose_device(settings.device)
        device = self.move(wanted)
        batch_size = settings.batch_size or (4 if wanted.type == "cpu" else 64)
        size = torch.get_num_threads() if wanted.type == "cpu" else 1
        digests, paths = list(files), list(files.values())
        loader = _decoding(self, paths, batch_size, settings.workers)

        def features(start: int, arrays: Sequence[Any]) -> npt.NDArray[Any]:
            with torch.inference_mode():
                batch = torch.from_numpy(self._stack(arrays)).to(device)
                return self._checked(self.forward(batch), paths[start : start + len(arrays)])

        tables: list[pa.Table] = []
        with (
            progress(f"encoding by {self.name}", len(files)) as advance,
            Writer(store, SEGMENT_ROWS) as writer,
            _full_precision(),
            _threads(size) as threads,
        ):
            batches = zip(count(step=batch_size), loader, strict=False)
            for start, values in _in_order(threads, features, batches, ahead=2 * size):
                keys = pa.array(digests[start : start + len(values)], pa.string())
                if self.maps and not start:
                    store.keep_shape(values.shape[1:])
                feature = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)
                tables.append(pa.table({"key": keys, "value": feature}))
                writer.add(tables[-1])
                advance(len(values))
        return tables

    def _stack(self, arrays: Sequence[Any]) -> npt.NDArray[Any]:
        for array in arrays:
            if isinstance(array, UnreadableItem):
                raise array
        shapes = sorted({array.shape for array in arrays})
        if len(shapes) > 1:
            raise InputError(
                f"encoder '{self.name}': its preprocessing gives images of different shapes, "
                f"{list(shapes[0])} and {list(shapes[1])}, which cannot be one batch"
            )
        return np.stack(arrays)

    def _checked(self, features: torch.Tensor, paths: Sequence[Any]) -> npt.NDArray[Any]:
        """The features as an array, [b, d] in float32 or maps in float16, before they reach the cache."""
        if features.ndim != (4 if self.maps else 2) or len(features) != len(paths):
            wanted = f"[{len(paths)}, {'d, h, w' if self.maps else 'd'}]"
            raise InputError(f"encoder '{self.name}': expected features of shape {wanted}, got {list(features.shape)}")
        values: npt.NDArray[Any] = (features.half() if self.maps else features.float()).cpu().numpy()
        broken = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        if broken.any():
            path = paths[int(np.argmax(broken))]
            raise InputError(f"encoder '{self.name}': the feature of {path} has a value that is not finite")
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "network"}


class _Files(Dataset[Any]):
    """Decodes a file in a worker; an unreadable one comes back as its error, so that it keeps its message."""

    def __init__(self, encoder: NetworkEncoder, paths: Sequence[Any]) -> None:
        self.encoder = encoder
        self.paths = list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> npt.NDArray[Any] | UnreadableItem:
        try:
            return self.encoder.load(self.paths[index])
        except UnreadableItem as error:
            return error


def _full_precision() -> AbstractContextManager[None]:
    """Convolutions of a GPU in float32: the shorter TF32 would give other features (by 0.5%) than a CPU."""
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
    return flags


@contextmanager
def _threads(size: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads for the network, each with a batch of its own.

    A batch that several threads share makes them wait for each other at every layer, for long on a busy machine,
    and its features would depend on their number.
    """
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(size, initializer=torch.set_num_threads, initargs=(1,)) as threads:
            yield threads
    finally:
        torch.set_num_threads(before)


def _in_order(
    threads: ThreadPoolExecutor,
    work: Callable[[int, Any], npt.NDArray[Any]],
    batches: Iterable[tuple[int, Any]],
    ahead: int,
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The start and the result of each batch, in order, with so many begun ahead."""
    begun: deque[tuple[int, Future[npt.NDArray[Any]]]] = deque()
    for start, batch in batches:
        begun.append((start, threads.submit(work, start, batch)))
        if len(begun) > ahead:
            first, result = begun.popleft()
            yield first, result.result()
    for first, result in begun:
        yield first, result.result()


def _first_files(digests: pa.Array, paths: Sequence[Any], known: pa.ChunkedArray) -> dict[str, Any]:
    """Of each content that is not known, the first file that has it."""
    seen = set(known.to_pylist())
    files: dict[str, Any] = {}
    for digest, path in zip(digests.to_pylist(), paths, strict=True):
        if digest not in seen:
            files.setdefault(digest, path)
    return files


def _decoding(encoder: NetworkEncoder, paths: Sequence[Any], batch_size: int, workers: int | None) -> DataLoader[Any]:
    """Batches of decoded files, in order, whatever the number of workers."""
    if workers is None:  # a single batch is done sooner than a worker is started
        workers = min(8, os.cpu_count() or 1) if len(paths) > batch_size else 0
    with warnings.catch_warnings():
        # The number of workers is the user's choice.
        warnings.filterwarnings("ignore", message="This DataLoader will create", category=UserWarning)
        return DataLoader(
            _Files(encoder, paths),
            batch_size=batch_size,
            num_workers=workers,
            collate_fn=list,  # arrays go through a pipe, not through shared memory, which may be small
            generator=torch.Generator(),  # its own, so that the user's random state is left alone
        )
