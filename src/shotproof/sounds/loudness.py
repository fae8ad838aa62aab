"""Integrated loudness of recordings (EBU R 128, ITU-R BS.1770), measured once per content."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.core.errors import UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import Store, Writer, file_digests
from shotproof.media.clip import RATE, SECONDS, Short, read_clip, recorded_seconds
from shotproof.media.lufs import METER_RATE, integrated_loudness

GATE_SECONDS = 0.4  # length of the blocks that the standard measures; a shorter sound has none
FILES_PER_CHUNK = 32
FILES_PER_SEGMENT = 2_048


@dataclass(frozen=True)
class Loudness:
    """Loudness of a recording in LUFS, or the problem if it has none (without the file's name)."""

    lufs: float | None
    problem: str | None = None


def measure_loudness(paths: Sequence[Path], runtime: Runtime, short: Short = "repeat") -> list[Loudness]:
    """Measure each file as a clip of 5 s at 16 kHz. A file that cannot be measured has a problem instead."""
    keys = file_digests(paths, runtime, on_error="skip").to_pylist()
    folder = f"loudness-{METER_RATE}{'' if short == 'repeat' else f'-{short}'}"
    store = Store(runtime.cache / folder if runtime.cache else None)
    cached = store.lookup(keys)
    measured = {row: Loudness(cached[key]) for row, key in enumerate(keys) if key in cached}
    rows = [row for row in range(len(paths)) if row not in measured]
    files = [paths[row] for row in rows]
    with Writer(store, FILES_PER_SEGMENT) as writer:
        results = runtime.map(
            functools.partial(_measure, short=short), files, title="measuring loudness", chunk=FILES_PER_CHUNK
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
            return Loudness(None, f"too short to measure: {seconds:.2f} s, expected {GATE_SECONDS} s or more")
    except UnreadableItem as error:
        return Loudness(None, str(error).removeprefix(f"sound {path} "))
    lufs = integrated_loudness(clip)
    return Loudness(lufs) if math.isfinite(lufs) else Loudness(None, "silent: below -70 LUFS throughout")
