from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import soundfile

from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode
from shotproof.features.features import Tally
from shotproof.media.mixture import Mixture
from tests.drawn_clips import draw_clips


def mixtures(folder: Path, gains: list[float]) -> Catalog:
    """Mixtures of two clips that no file holds, one item per gain."""
    draw_clips(folder, 2)
    rows: list[dict[str, Any]] = [
        {"item": f"{gain:g}", "path": "", "label": "a", "split": "test", "gain_db": gain}
        | {"foreground": "000.wav", "background": "001.wav"}
        for gain in gains
    ]
    return Catalog(pa.Table.from_pylist(rows), folder)


def test_mixtures_on_the_fly_are_encoded_as_from_their_files(tmp_path: Path) -> None:
    catalog = mixtures(tmp_path, [-8.0, 0.0])
    names = []
    for gain in (-8.0, 0.0):
        names.append(f"mixed{gain:g}.wav")
        samples = Mixture(tmp_path / "000.wav", tmp_path / "001.wav", gain).samples()
        soundfile.write(tmp_path / names[-1], samples, 16_000, subtype="PCM_16")
    written = Catalog(catalog.table.set_column(1, "path", pa.array(names)), tmp_path)
    on_the_fly = encode(catalog, "logmel", runtime=Runtime(cache=None, workers=1)).array
    np.testing.assert_array_equal(on_the_fly, encode(written, "logmel", runtime=Runtime(cache=None, workers=1)).array)
    assert (on_the_fly[0] != on_the_fly[1]).any()


def test_a_mixture_is_cached_by_what_it_is_made_of(tmp_path: Path) -> None:
    tallies = []
    cached = Runtime(cache=tmp_path / "cache", workers=1)

    def encoded(gains: list[float]) -> None:
        tallies.append(encode(mixtures(tmp_path, gains), "logmel", runtime=cached).tally)

    encoded([-8.0])
    encoded([-8.0])
    encoded([-8.0, -4.0])
    soundfile.write(tmp_path / "other.wav", np.linspace(-0.5, 0.5, 8_000), 16_000)
    os.utime(tmp_path / "other.wav", (1_000_000_000, 1_000_000_000))
    catalog = mixtures(tmp_path, [-8.0])
    other = catalog.table.set_column(
        catalog.table.column_names.index("background"), "background", pa.array(["other.wav"])
    )
    tallies.append(encode(Catalog(other, tmp_path), "logmel", runtime=cached).tally)
    assert tallies == [Tally(1, 0), Tally(0, 1), Tally(1, 1), Tally(1, 0)]


def test_a_mixture_of_a_missing_recording_is_left_out_where_asked(tmp_path: Path) -> None:
    catalog = mixtures(tmp_path, [-8.0, 0.0])
    column = catalog.table.column_names.index("background")
    gone = Catalog(catalog.table.set_column(column, "background", pa.array(["gone.wav", "001.wav"])), tmp_path)
    features = encode(gone, "logmel", on_error="skip", runtime=Runtime(cache=None, workers=1))
    assert (features.table["item"].to_pylist(), features.record.skipped) == (["0"], ("-8",))
