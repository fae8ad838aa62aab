"""Integrated loudness of recordings (EBU R 128, ITU-R BS.1770), measured once for each content."""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.errors import MissingExtra, UnreadableItem
from shotproof.features.cache import Store, Writer, file_digests
from shotproof.processes import in_processes
from shotproof.progress import progress
from shotproof.sounds.clip import RATE, SECONDS, Samples, read_clip, recorded_seconds, resampled

# The standard's filters are made for this rate. At a lower one they are a little off, and a block that then falls on
# the other side of the gate moves the loudness of a recording by up to a decibel.
METER_RATE = 48_000
GATE_SECONDS = 0.4  # the standard measures blocks of this length, and none of a shorter sound
FILES_PER_CHUNK = 32
FILES_PER_SEGMENT = 2_048


@dataclass(frozen=True)
class Measured:
    """A recording's loudness in LUFS, or, where it has none, why not (without the file's name)."""

    lufs: float | None
    problem: str | None = None


def integrated_loudness(samples: Samples, rate: int = RATE) -> float:
    """LUFS of one channel, [n]; minus infinity where no block is above the gate of -70 LUFS."""
    meter = _meter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mean over no block
        with np.errstate(all="ignore"):
            lufs = float(meter.integrated_loudness(resampled(samples, rate, METER_RATE)))
    return lufs if math.isfinite(lufs) else -math.inf


def measure_loudness(paths: Sequence[Path], cache: Path | None = None, workers: int | None = None) -> list[Measured]:
    """The loudness of each file as a clip of 5 s at 16 kHz; what cannot be measured says why, and stops nothing."""
    keys = _keys(paths, cache)
    store = Store(cache / f"loudness-{METER_RATE}" if cache else None)
    found = store.find(pa.array(sorted({key for key in keys if key}), pa.string()))
    known = dict(zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True))
    measured = {row: Measured(known[key]) for row, key in enumerate(keys) if key in known}
    rows = [row for row in range(len(paths)) if row not in measured]
    with progress("measuring loudness", len(rows)) as advance, Writer(store, FILES_PER_SEGMENT) as writer:
        results = in_processes(_measure, [paths[row] for row in rows], workers or os.cpu_count() or 1, FILES_PER_CHUNK)
        for row, result in zip(rows, results, strict=True):
            measured[row] = result
            if result.lufs is not None:
                writer.add(pa.table({"key": [keys[row]], "value": [result.lufs]}))
            advance(1)
    return [measured[row] for row in range(len(paths))]


def _keys(paths: Sequence[Path], cache: Path | None) -> list[str | None]:
    """The digest of each file's content; None where there is no file."""
    files = [path for path in paths if path.is_file()]
    digests = dict(zip(files, file_digests(files, cache).to_pylist(), strict=True))
    return [digests.get(path) for path in paths]


def _measure(path: Path) -> Measured:
    try:
        clip = read_clip(path, RATE, SECONDS)
        if (seconds := recorded_seconds(path)) < GATE_SECONDS:
            return Measured(None, f"too short to have a loudness: {seconds:.2f} s, expected {GATE_SECONDS} s or more")
    except UnreadableItem as error:
        return Measured(None, str(error).removeprefix(f"sound {path} "))
    lufs = integrated_loudness(clip)
    return Measured(lufs) if math.isfinite(lufs) else Measured(None, "silent: below -70 LUFS throughout")


@functools.cache
def _meter() -> Any:
    try:
        import pyloudnorm
    except ImportError as error:
        raise MissingExtra("measuring loudness", "sound") from error
    return pyloudnorm.Meter(METER_RATE)
