"""Mixing: milliseconds of one core for loudness and for a mixture, and the memory of a large run."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import Runtime
from shotproof.sounds.loudness import measure_loudness
from shotproof.sounds.mix import MixSettings, mix
from shotproof.worlds.sounds import SoundsWorld

WORLD = SoundsWorld(foregrounds=16, backgrounds=8, items=40)
COPIES = 10  # of each recording, under another name: 16 x 400 x 8 = 51,200 mixtures


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure seconds of one core: other programs on the machine matter little."""
    started = time.process_time()
    work()
    return time.process_time() - started


def copies(catalog: Catalog) -> Catalog:
    """Copy the recordings several times, as other items."""
    place = catalog.table.column_names.index("item")
    items = catalog.items
    tables = [
        catalog.table.set_column(place, "item", pa.array([f"{item}-{copy}" for item in items], pa.string()))
        for copy in range(COPIES)
    ]
    return Catalog(pa.concat_tables(tables), catalog.root, catalog.record)


def peak_mb() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run() -> None:
    """Synthesize sounds, then measure and mix them in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        catalog, here = WORLD.write(folder / "raw"), Runtime(workers=1, cache=folder / "cache")
        measure_loudness(catalog.paths[:1], Runtime(workers=1, cache=None))  # imports
        seconds = cpu_seconds(lambda: measure_loudness(catalog.paths, here))
        print(f"loudness, with decoding: {1000 * seconds / len(catalog):.1f} ms per recording, once")
        settings = MixSettings(embedding=None)
        written: list[Catalog] = []
        seconds = cpu_seconds(
            lambda: written.append(mix(catalog, WORLD.mapping(), folder / "mixed", settings, runtime=here))
        )
        print(f"mixtures as FLAC: {1000 * seconds / len(written[0]):.1f} ms each ({len(written[0]):,})")
        before, fly = peak_mb(), MixSettings(embedding=None, on_the_fly=True)
        large = copies(catalog)
        seconds = cpu_seconds(lambda: written.append(mix(large, WORLD.mapping(), folder / "large", fly, runtime=here)))
        count = len(written[1])
        print(
            f"mixtures on the fly: {1000 * seconds / count:.1f} ms each ({count:,}); "
            f"peak memory {before:.0f} MB before, {peak_mb():.0f} MB after"
        )
