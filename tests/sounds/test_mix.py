from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.catalog_check import check_catalog
from shotproof.catalog.item_files import item_digests, item_files
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.media.clip import read_clip
from shotproof.media.mixture import Mixture
from shotproof.sounds.mapping import PairMapping
from shotproof.sounds.mix import MixSettings, expected_mixtures, mix
from shotproof.sounds.quality import Thresholds
from tests.drawn_clips import tone
from tests.meter import lufs

MAPPING = PairMapping(
    {"dog": ("rain",), "cat": ("wind",)}, {"dog": ("wind",), "cat": ("rain",)}, {"dog": "train", "cat": "test"}
)
PLAIN = MixSettings(embedding=None)


def draw_recordings(folder: Path, count: int = 3) -> Catalog:
    """So many recordings of four labels, of different loudness, and one label that no mapping names."""
    rows = []
    for place, label in enumerate(("dog", "cat", "rain", "wind", "extra")):
        for number in range(count):
            path = f"{label}/{number}.wav"
            (folder / label).mkdir(parents=True, exist_ok=True)
            soundfile.write(folder / path, 3.0 / (place + 1) * tone(5 * place + number, 1.0), 16_000, subtype="FLOAT")
            rows.append({"item": path, "path": path, "label": label, "split": "all", "source": f"{label}{number // 2}"})
    return Catalog(pa.Table.from_pylist(rows), folder)


def same_bytes(one: Path, other: Path) -> bool:
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_every_recording_meets_each_of_its_backgrounds_once(tmp_path: Path) -> None:
    mixed = mix(
        draw_recordings(tmp_path / "raw"), MAPPING, tmp_path / "out", PLAIN, runtime=Runtime(cache=None, workers=1)
    )
    rows = mixed.table.to_pylist()
    assert Counter((row["label"], row["context"], row["pairing"], row["split"]) for row in rows) == {
        ("dog", "rain", "pair", "train"): 3,
        ("dog", "wind", "hard", "train"): 3,
        ("cat", "wind", "pair", "test"): 3,
        ("cat", "rain", "hard", "test"): 3,
    }
    for row in rows:
        label, number = Path(row["foreground"]).parts[-2:]
        assert row["label"] == label
        assert row["source"] == f"{label}{int(number[0]) // 2}"
        assert Path(row["background"]).parts[-2] == row["context"]
    # Over one foreground and one background class, each recording of the background is used as often.
    pairs = {(row["label"], row["background"]) for row in rows}
    assert len(pairs) == len(rows)
    written = Catalog.read(tmp_path / "out" / "catalog.parquet")
    assert written.digest == mixed.digest
    assert all(path.is_file() for path in written.paths)
    assert str(tmp_path) not in json.dumps(written.record.to_meta())


@pytest.mark.parametrize("dial", [0.5, 1.0, 2.0])
def test_the_margin_measured_again_by_another_meter(tmp_path: Path, dial: float) -> None:
    settings = MixSettings(dial=dial, embedding=None)
    mixed = mix(
        draw_recordings(tmp_path / "raw"), MAPPING, tmp_path / "out", settings, runtime=Runtime(cache=None, workers=1)
    )
    scaled = 0
    for path, row in zip(mixed.paths, mixed.table.to_pylist(), strict=True):
        samples, rate = soundfile.read(path)
        assert (samples.shape, rate) == ((80_000,), 16_000)
        front = row["peak_scale"] * read_clip(mixed.root / row["foreground"])
        margin = lufs(front) - lufs(samples - front)
        assert margin == pytest.approx(8 - 20 * np.log10(dial), abs=0.5)
        pcm = soundfile.read(path, dtype="int16")[0].astype(np.int32)
        assert np.abs(pcm).max() <= 32_767
        assert np.abs(pcm).max() == 32_767 or row["peak_scale"] == 1
        scaled += row["peak_scale"] < 1
    assert 0 < scaled < len(mixed)


def test_always_and_pad_in_files_and_on_the_fly(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    made = MixSettings(clean=True, embedding=None, peak="always", short="pad")
    runtime = Runtime(cache=None, workers=1)
    written = mix(recordings, MAPPING, tmp_path / "disk", made, runtime=runtime)
    unwritten = mix(recordings, MAPPING, tmp_path / "fly", replace(made, on_the_fly=True), runtime=runtime)
    assert unwritten.digest == written.digest
    assert written.record.mix["peak"] == "always"
    for clip, path, row in zip(item_files(unwritten), item_files(written), written.table.to_pylist(), strict=True):
        pcm = soundfile.read(path, dtype="int16")[0].astype(np.int32)
        assert np.abs(pcm).max() == 32_767
        assert not pcm[16_000:].any()  # recordings are of one second
        np.testing.assert_array_equal(read_clip(clip), read_clip(path))
        total = read_clip(written.root / row["foreground"], seconds=1.0)
        if row["background"] is not None:
            total = total + 10 ** (row["gain_db"] / 20) * read_clip(written.root / row["background"], seconds=1.0)
        np.testing.assert_allclose(pcm[:16_000] / 32_768, row["peak_scale"] * total, atol=1e-4)
    plain = mix(
        recordings, MAPPING, tmp_path / "plain", replace(made, peak="clipping", short="repeat"), runtime=runtime
    )
    assert {"peak", "short"} & {*plain.table.column_names, *plain.record.mix} == set()
    # Features are kept by these digests: the same parts mixed otherwise are another sound.
    one = item_files(unwritten)[0]
    assert isinstance(one, Mixture)
    manners = [one, replace(one, peak="clipping"), replace(one, short="repeat")]
    assert len(set(item_digests(manners, runtime).to_pylist())) == 3
    for name, value in (("peak", "clipping"), ("short", "repeat")):
        with pytest.raises(InputError, match=f"holds mixtures .* {name} "):
            mix(recordings, MAPPING, tmp_path / "disk", replace(made, **{name: value}), runtime=runtime)
    with pytest.raises(InputError, match=r"holds mixtures .* peak .* clipping .* now always"):
        mix(recordings, MAPPING, tmp_path / "plain", replace(made, short="repeat"), runtime=runtime)


@pytest.mark.parametrize(("name", "value"), [("peak", "allways"), ("short", "pads")])
def test_a_manner_that_there_is_not(name: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected .*, found '{value}': did you mean"):
        MixSettings(**{name: value})


def test_what_is_expected_before_listening_is_what_comes(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    settings = MixSettings(clean=True, embedding=None, on_the_fly=True, seed=3)
    expected = expected_mixtures(recordings, MAPPING, tmp_path / "out", settings)
    assert not (tmp_path / "out").exists()
    made = mix(recordings, MAPPING, tmp_path / "out", settings, runtime=Runtime(cache=None, workers=1))
    columns = ["item", "label", "split", "context", "source", "pairing", "foreground", "background"]
    assert expected.table.select(columns) == made.table.select(columns)


def test_on_the_fly_gives_the_samples_of_the_files_and_the_same_catalog(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    made = MixSettings(clean=True, embedding=None)
    fly = MixSettings(clean=True, on_the_fly=True, embedding=None)
    written = mix(recordings, MAPPING, tmp_path / "disk", made, runtime=Runtime(cache=None, workers=1))
    mix(recordings, MAPPING, tmp_path / "fly" / "deep", fly, runtime=Runtime(cache=None, workers=1))
    unwritten = Catalog.read(tmp_path / "fly" / "deep" / "catalog.parquet")
    assert unwritten.digest == written.digest
    assert sorted(path.name for path in (tmp_path / "fly" / "deep").iterdir()) == ["catalog.parquet", "mix.json"]
    for clip, path in zip(item_files(unwritten), item_files(written), strict=True):
        np.testing.assert_array_equal(read_clip(clip), read_clip(path))
        np.testing.assert_array_equal(read_clip(clip, 8_000, 2.0), read_clip(path, 8_000, 2.0))
    digests = item_digests(item_files(unwritten), Runtime(cache=None)).to_pylist()
    assert len(set(digests)) == len(unwritten)
    # The check reads them as they are made: those of one class and dial are all different.
    assert not check_catalog(unwritten, way=1, shot=1, query=1, runtime=Runtime(workers=1))
    (tmp_path / "raw" / "rain" / "0.wav").rename(tmp_path / "raw" / "rain" / "away.wav")
    problems = check_catalog(unwritten, way=1, shot=1, query=1, runtime=Runtime(workers=1))
    assert {problem.kind for problem in problems} == {"unreadable-file"}
    (tmp_path / "raw" / "rain" / "away.wav").rename(tmp_path / "raw" / "rain" / "0.wav")
    # Written elsewhere, the catalog still finds the recordings.
    unwritten.write(tmp_path / "elsewhere" / "catalog.parquet")
    moved = Catalog.read(tmp_path / "elsewhere" / "catalog.parquet")
    assert moved.digest == unwritten.digest
    np.testing.assert_array_equal(read_clip(item_files(moved)[0]), read_clip(item_files(unwritten)[0]))


def test_a_dial_of_zero_leaves_the_foreground_alone(tmp_path: Path) -> None:
    settings = MixSettings(dial=0.0, clean=True, embedding=None)
    mixed = mix(
        draw_recordings(tmp_path / "raw"), MAPPING, tmp_path / "out", settings, runtime=Runtime(cache=None, workers=1)
    )
    samples_of: dict[str, list[bytes]] = {}
    for path, row in zip(mixed.paths, mixed.table.to_pylist(), strict=True):
        samples_of.setdefault(row["foreground"], []).append(soundfile.read(path)[0].tobytes())
    assert all(len(samples) == 3 and len(set(samples)) == 1 for samples in samples_of.values())
    assert mixed.table["context"].to_pylist().count("clean") == 6


def test_the_same_bytes_in_any_number_of_processes_and_after_an_interruption(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw", count=14)  # more than one chunk of mixtures
    cache = tmp_path / "cache"
    whole = mix(recordings, MAPPING, tmp_path / "one", PLAIN, runtime=Runtime(cache=cache, workers=1))
    mix(recordings, MAPPING, tmp_path / "two", PLAIN, runtime=Runtime(cache=cache, workers=2))
    assert same_bytes(tmp_path / "one", tmp_path / "two")
    # What an interrupted run leaves: some files, no catalog. Those that are there are not written again.
    kept, *missing = sorted((tmp_path / "two" / "sounds").rglob("*.flac"))
    stamp = kept.stat().st_mtime_ns
    for path in (*missing, tmp_path / "two" / "catalog.parquet"):
        path.unlink()
    again = mix(recordings, MAPPING, tmp_path / "two", PLAIN, runtime=Runtime(cache=cache, workers=1))
    assert again.digest == whole.digest
    assert same_bytes(tmp_path / "one", tmp_path / "two")
    assert kept.stat().st_mtime_ns == stamp


def test_a_folder_of_other_mixtures_is_left_alone(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    mix(recordings, MAPPING, tmp_path / "out", PLAIN, runtime=Runtime(cache=None, workers=1))
    with pytest.raises(InputError, match=r"dial .* 1\.0 .* now 2\.0: choose another folder"):
        mix(
            recordings,
            MAPPING,
            tmp_path / "out",
            MixSettings(dial=2.0, embedding=None),
            runtime=Runtime(cache=None, workers=1),
        )
    shutil.copy(tmp_path / "raw" / "dog" / "0.wav", tmp_path / "raw" / "dog" / "1.wav")
    with pytest.raises(InputError, match=r"holds mixtures .* recordings "):
        mix(recordings, MAPPING, tmp_path / "out", PLAIN, runtime=Runtime(cache=None, workers=1))


def test_bad_recordings_are_left_out_by_name_and_the_rest_is_mixed(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw", count=4)
    dogs = tmp_path / "raw" / "dog"
    soundfile.write(dogs / "0.wav", np.zeros(16_000), 16_000)
    soundfile.write(dogs / "1.wav", tone(0, 0.1), 16_000)
    soundfile.write(dogs / "2.wav", np.stack([tone(1, 2.0, 48_000)] * 2, axis=1), 48_000)  # nothing wrong with it
    rain = tmp_path / "raw" / "rain" / "3.wav"
    rain.write_bytes(rain.read_bytes()[:30_000])
    mixed = mix(recordings, MAPPING, tmp_path / "out", PLAIN, runtime=Runtime(cache=None, workers=1))
    assert {row["item"]: row["reason"] for row in mixed.record.skipped} == {
        "dog/0.wav": "silent: below -70 LUFS throughout",
        "dog/1.wav": "too short to measure: 0.10 s, expected 0.4 s or more",
        "rain/3.wav": "is cut off after 0.47 s",
    }
    assert Counter(zip(*(mixed.table[name].to_pylist() for name in ("label", "context")), strict=True)) == {
        ("cat", "rain"): 4,
        ("cat", "wind"): 4,
        ("dog", "rain"): 2,
        ("dog", "wind"): 2,
    }
    for path in dogs.iterdir():
        soundfile.write(path, np.zeros(16_000), 16_000)
    with pytest.raises(InputError, match=r"4 recordings of 'dog' .* dog/0.wav: silent"):
        mix(recordings, MAPPING, tmp_path / "other", PLAIN, runtime=Runtime(cache=None, workers=1))


def test_thresholds_filter_and_count(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    every = mix(
        recordings, MAPPING, tmp_path / "out", MixSettings(embedding="logmel"), runtime=Runtime(cache=None, workers=1)
    )
    limit = float(np.median(every.table["alike"].to_numpy()))
    kept = MixSettings(thresholds=Thresholds(max_alike=limit))
    mixed = mix(recordings, MAPPING, tmp_path / "out", kept, runtime=Runtime(cache=None, workers=1))
    assert len(mixed) + mixed.record.dropped["alike"] == len(every)
    assert max(mixed.table["alike"].to_pylist()) <= limit
    with pytest.raises(InsufficientData, match=r"no mixture .* thresholds: 12 inaudible"):
        mix(
            recordings,
            MAPPING,
            tmp_path / "quiet",
            MixSettings(dial=0.0, embedding=None, thresholds=Thresholds(min_audible=0.1)),
            runtime=Runtime(cache=None, workers=1),
        )


def test_so_many_recordings_a_background(tmp_path: Path) -> None:
    settings = MixSettings(per_background=2, embedding=None, on_the_fly=True)
    mixed = mix(
        draw_recordings(tmp_path / "raw"), MAPPING, tmp_path / "out", settings, runtime=Runtime(cache=None, workers=1)
    )
    assert len(mixed) == 8
    other = mix(
        draw_recordings(tmp_path / "raw"),
        MAPPING,
        tmp_path / "other",
        MixSettings(seed=1, per_background=2, embedding=None, on_the_fly=True),
        runtime=Runtime(cache=None, workers=1),
    )
    assert other.table["foreground"].to_pylist() != mixed.table["foreground"].to_pylist()


def test_a_catalog_that_is_split_keeps_its_splits(tmp_path: Path) -> None:
    recordings = draw_recordings(tmp_path / "raw")
    splits = pa.array(["base" if "dog" in item else "novel" for item in recordings.table["item"].to_pylist()])
    table = recordings.table.set_column(recordings.table.column_names.index("split"), "split", splits)
    mapping = PairMapping(MAPPING.pairs, MAPPING.hard, {})
    settings = MixSettings(embedding=None, on_the_fly=True)
    mixed = mix(
        Catalog(table, recordings.root), mapping, tmp_path / "out", settings, runtime=Runtime(cache=None, workers=1)
    )
    assert set(zip(mixed.table["label"].to_pylist(), mixed.table["split"].to_pylist(), strict=True)) == {
        ("dog", "base"),
        ("cat", "novel"),
    }


def test_items_with_the_same_name_or_with_odd_ones_are_kept_apart(tmp_path: Path) -> None:
    rows = []
    for label in ("dog", "rain"):
        for item in ("a/x.wav", "b/x.wav", "a/X.wav", "../ñ?.wav", f"{'long' * 40}.wav"):
            path = f"{label}-{len(rows)}.wav"
            soundfile.write(tmp_path / path, tone(len(rows), 0.5), 16_000)
            rows.append({"item": f"{label}/{item}", "path": path, "label": label, "split": "all"})
    mapping = PairMapping({"dog": ("rain",)}, {}, {"dog": "test"})
    mixed = mix(
        Catalog(pa.Table.from_pylist(rows), tmp_path),
        mapping,
        tmp_path / "out",
        PLAIN,
        runtime=Runtime(cache=None, workers=1),
    )
    assert len({item.lower() for item in mixed.table["item"].to_pylist()}) == len(mixed) == 5
    assert all(path.resolve().is_relative_to(tmp_path / "out" / "sounds" / "dog") for path in mixed.paths)
    assert mixed.table["source"].to_pylist()[0].startswith("dog/")


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings, message in (
        ({"dial": -1.0}, "dial: expected a number of at least 0, found -1"),
        ({"margin_db": float("nan")}, "margin_db: expected a number from -200 to 200, found nan"),
        ({"per_background": 0}, "per_background: expected a whole number from 1 to 10,000,000 or None, found 0"),
        ({"thresholds": Thresholds(max_alike=0.5), "embedding": None}, "max_alike needs an embedding"),
        ({"format": "flc"}, "format: expected flac or wav, found 'flc': did you mean 'flac'"),
    ):
        with pytest.raises(InputError, match=message):
            MixSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("splits", [{}, MAPPING.splits])
def test_splits_that_the_seed_draws_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, splits: dict[str, str]
) -> None:
    mapping = PairMapping(MAPPING.pairs, MAPPING.hard, splits)
    settings = MixSettings(embedding=None, on_the_fly=True)
    runtime = Runtime(cache=None, workers=1)
    mix(draw_recordings(tmp_path / "raw"), mapping, tmp_path / "out", settings, runtime=runtime)
    assert len(caplog.messages) == (0 if splits else 1)
    for message in caplog.messages:
        assert "no [splits]" in message
        assert "2 foregrounds" in message
        assert "2 for train" in message
