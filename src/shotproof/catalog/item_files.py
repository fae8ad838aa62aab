"""The clips of a catalog of sounds: files, or mixtures that were never written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.plain_values import shown
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.places import joined
from shotproof.core.storage.store import OnError, file_digests
from shotproof.core.tables import conform
from shotproof.media.clip import Short
from shotproof.media.mixture import Clip, Mixture, Peak

MOST_GAIN_DB = 200.0  # from the quietest to the loudest that 32 bits hold


def clips_of(catalog: Catalog) -> list[Clip]:
    """What `read_clip` takes for each item: its file, or, where its path is empty, the mixture that it stands for."""
    paths = catalog.table.column("path").to_pylist()
    if all(paths):
        return list(catalog.paths)
    # How the sum is scaled and short recordings are filled up are columns where they are not the default.
    manners = {"peak": get_args(Peak), "short": get_args(Short)}
    further = [name for name in manners if name in catalog.table.column_names]
    kinds = {"foreground": "string", "background": "string", "gain_db": "number", **dict.fromkeys(further, "string")}
    rows = conform(catalog.table, kinds, "catalog").select(list(kinds)).to_pylist()
    for row, path in zip(rows, paths, strict=True):
        if not path and not row["foreground"]:
            raise InputError("catalog, column 'foreground' has an empty value, as has 'path': expected one of them")
        if row["gain_db"] is not None and not row["gain_db"] <= MOST_GAIN_DB:
            raise InputError(
                f"catalog, column 'gain_db': expected at most {MOST_GAIN_DB:g} dB, found {shown(row['gain_db'])}"
            )
        for name in further:
            if row[name] not in manners[name]:
                known = " or ".join(manners[name])
                raise InputError(f"catalog, column '{name}': expected {known}, found {shown(row[name])}")
    root = catalog.root
    return [
        joined(root, path)
        if path
        else Mixture(
            joined(root, row["foreground"]),
            None if row["background"] is None else joined(root, row["background"]),
            0.0 if row["gain_db"] is None else row["gain_db"],
            **{name: row[name] for name in further},
        )
        for path, row in zip(paths, rows, strict=True)
    ]


def clip_digests(clips: Sequence[Clip], runtime: Runtime, on_error: OnError = "raise") -> pa.Array:
    """Return a digest of the content of each clip, [n]: that of its file, or of all that a mixture is made of.

    With `on_error` skip, it is null where a file cannot be read.
    """
    files = sorted({file for clip in clips for file in (clip.files if isinstance(clip, Mixture) else [clip])})
    known: dict[Path, str | None] = dict(zip(files, file_digests(files, runtime, on_error).to_pylist(), strict=True))

    def digest(clip: Clip) -> str | None:
        if isinstance(clip, Path):
            return known[clip]
        parts = [known[file] for file in clip.files]
        if None in parts:
            return None
        manner = [name for name in (clip.peak, clip.short) if name not in ("clipping", "repeat")]
        recipe = "\0".join(["mixture", *map(str, parts), repr(clip.gain_db), *manner])
        return hashlib.sha256(recipe.encode()).hexdigest()

    return pa.array([digest(clip) for clip in clips], pa.string())
