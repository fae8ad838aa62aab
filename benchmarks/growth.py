"""How time and memory grow with the items: `python -m benchmarks.growth [--items 10000 100000 ...] [--workers 1 2]`.

Catalogs, attributes and features in parts: 1,000 items of each class, 8 contexts, 20 words of which an item holds 5 on
average, features of 384 numbers in float16. Each command runs in a process of its own, and reads all its files anew.
Memory is that of the process and its workers together, without pages of mapped files, which the system may drop.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.watched import watch
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.records import FeaturesRecord
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import is_regular
from shotproof.core.storage.parts import WHOLE, part_path
from shotproof.features.feature_parts import join_parts
from shotproof.features.features import Features

ITEMS_PER_CLASS, CONTEXTS, WORDS, DIMENSIONS, TASKS = 1000, 8, 20, 384, 600
SHARED = 32  # numbers of a feature that the items of a class have in common
VECTORS = 2**13  # different ones
PART = 2**16

SAMPLERS = {
    "random": "random",
    "fewstab": "fewstab attributes.parts",
    "ood": "ood",
    "hardest": "hardest features.parts",
}


def make(root: Path, items: int) -> None:
    """Write the files, unless they exist."""
    if is_regular(root / "features.parts" / WHOLE):
        return
    rng = np.random.default_rng(0)
    numbers = np.arange(items)
    names = item_names(range(items))
    classes = pa.array([f"class{c:06}" for c in range(items // ITEMS_PER_CLASS)])
    contexts = pa.array([f"context{c}" for c in range(CONTEXTS)])
    columns = {
        "item": names,
        "path": names,
        "label": classes.take(pa.array(numbers // ITEMS_PER_CLASS)),
        "split": pa.repeat("test", items),
        "context": contexts.take(pa.array(rng.integers(CONTEXTS, size=items))),
    }
    if not is_regular(root / "catalog.parts" / WHOLE):
        Catalog(pa.table(columns)).write(root / "catalog.parts")
    words_held = rng.integers(2**WORDS, size=items, dtype=np.uint32) & rng.integers(
        2**WORDS, size=items, dtype=np.uint32
    )
    lists = np.unpackbits(words_held.view(np.uint8).reshape(items, 4), axis=1, bitorder="little")[:, :WORDS]
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.bitwise_count(words_held), dtype=np.int32)]))
    words = pa.array([f"word{w:02}" for w in range(WORDS)]).take(pa.array(np.flatnonzero(lists) % WORDS))
    attributes = pa.ListArray.from_arrays(offsets, words)
    if not is_regular(root / "attributes.parts" / WHOLE):
        Attributes(pa.table({"item": names, "attributes": attributes})).write(root / "attributes.parts")
    parts = range(0, items, PART)
    list(Runtime().map(WritePart(root / "features.parts"), [range(s, min(s + PART, items)) for s in parts], title=None))
    join_parts(root / "features.parts", len(parts), FeaturesRecord(name="made up"))


@dataclass(frozen=True)
class WritePart:
    """Task that writes the features of a range of items, unless they exist."""

    folder: Path

    def __call__(self, numbers: range) -> None:
        """Write the features of these items."""
        path = part_path(self.folder, numbers.start // PART)
        if is_regular(path):
            return
        noise = np.random.default_rng(1).normal(size=(VECTORS, DIMENSIONS)).astype(np.float16)
        rows = np.asarray(numbers)
        values = noise[rows * 7919 % VECTORS]
        values[:, :SHARED] = noise[
            rows // ITEMS_PER_CLASS % VECTORS, :SHARED
        ]  # the part that the items of a class share
        Features.from_array(item_names(numbers).to_pylist(), values).write(path)


def item_names(numbers: range) -> pa.Array:
    """Return the names of the items with these numbers."""
    digits = pc.utf8_lpad(pa.array(np.asarray(numbers)).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise("item", digits, "")


def _private_memory(number: int) -> float:
    """Measure the memory of a process and its children without mapped files, in GB."""
    process = psutil.Process(number)
    total = 0
    for member in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # the process has just ended
            memory = member.memory_info()
            total += memory.rss - memory.shared
    return total / 2**30


def main() -> None:
    """Measure, and print one row per command: items, workers, what, clock, processors, memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    parser.add_argument("--folder", type=Path, help="keep the files here for later runs (default: remove them)")
    options = parser.parse_args()
    for items in options.items:
        with tempfile.TemporaryDirectory() as temporary:
            root = (options.folder or Path(temporary)) / str(items)
            root.mkdir(parents=True, exist_ok=True)
            started = time.perf_counter()
            make(root, items)
            size = sum(path.stat().st_size for path in root.glob("*.parts/*"))
            print(f"{items:,} items: {size / 2**30:.2f} GB, made in {time.perf_counter() - started:.0f} s", flush=True)
            for workers in options.workers:
                for name in options.samplers:
                    measure(root, items, workers, name)


def measure(root: Path, items: int, workers: int, name: str) -> None:
    """Print the time and memory of drawing one sampler's tasks and evaluating them."""
    sample = f"sample catalog.parts --sampler {SAMPLERS[name]} --tasks {TASKS} -o {name}.parquet"
    evaluate = f"evaluate {name}.parquet features.parts -m ncc -m ridge -o results.parquet"
    for step in (sample, evaluate):
        cost = watch(f"{step} --workers {workers} --no-progress", root, _private_memory)
        row = f"{items:>12,} {workers} {step.split()[0]:<9} {name:<8} {cost.seconds:7.1f} s"
        print(f"{row} {cost.processor:7.1f} s {cost.gigabytes:6.2f} GB", flush=True)


if __name__ == "__main__":
    main()
