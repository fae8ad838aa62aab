"""Integrated loudness of recordings (EBU R 128, ITU-R BS.1770), measured once for each content."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shotproof.core.errors import MissingExtra, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import Store, Writer, file_digests
from shotproof.media.clip import RATE, SECONDS, Samples, Short, read_clip, recorded_seconds, resampled

# The standard's filters are made for this rate. At a lower one they are a little off, and a block that then falls on
# the other side of the gate moves the loudness of a recording by up to a decibel.
METER_RATE = 48_000
GATE_SECONDS = 0.4  # the standard measures blocks of this length, and none of a shorter sound
FILES_PER_CHUNK = 32
FILES_PER_SEGMENT = 2_048


@dataclass(frozen=True)
class Loudness:
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


def measure_loudness(paths: Sequence[Path], runtime: Runtime, short: Short = "repeat") -> list[Loudness]:
    """The loudness of each file as a clip of 5 s at 16 kHz; what cannot be measured says why, and stops nothing."""
    keys = file_digests(paths, runtime, on_error="skip").to_pylist()
    kept = f"loudness-{METER_RATE}{'' if short == 'repeat' else f'-{short}'}"
    store = Store(runtime.cache / kept if runtime.cache else None)
    known = store.known(keys)
    measured = {row: Loudness(known[key]) for row, key in enumerate(keys) if key in known}
    rows = [row for row in range(len(paths)) if row not in measured]
    files = [paths[row] for row in rows]
    with Writer(store, FILES_PER_SEGMENT) as writer:
        results = runtime.map(
            functools.partial(_measure, short=short), files, what="measuring loudness", chunk=FILES_PER_CHUNK
        )
        for row, result in zip(rows, results, strict=True):
            measured[row] = result
            if result.lufs is not None:
                writer.add_value(keys[row], result.lufs)
    return [measured[row] for row in range(len(paths))]


def _measure(path: Path, short: Short) -> Loudness:
    try:
        clip = read_clip(path, RATE, SECONDS, short)
        if (seconds := recorded_seconds(path)) < GATE_SECONDS:
            return Loudness(None, f"too short to have a loudness: {seconds:.2f} s, expected {GATE_SECONDS} s or more")
    except UnreadableItem as error:
        return Loudness(None, str(error).removeprefix(f"sound {path} "))
    lufs = integrated_loudness(clip)
    return Loudness(lufs) if math.isfinite(lufs) else Loudness(None, "silent: below -70 LUFS throughout")


@functools.cache
def _meter() -> Any:
    try:
        import pyloudnorm
    except ImportError as error:
        raise MissingExtra("measuring loudness", "sound") from error
    return pyloudnorm.Meter(METER_RATE)
