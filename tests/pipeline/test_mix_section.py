"""Experiments that mix recordings with backgrounds first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.study import run
from shotproof.sounds.mix import MixSettings, mix
from shotproof.worlds.sounds import SoundsWorld
from tests.experiment_files import up_to_results

EXPERIMENT = """
[catalog]
root = "recordings"
[mix]
mapping = "mapping.csv"
clean = true
on_the_fly = true
embedding = "none"
gain = 6
[features]
encoders = ["logmel"]
[tasks]
way = 2
shots = [1]
query = 1
tasks = 4
samplers = ["ood"]
split = "test"
placebo = false
[evaluate]
methods = ["ncc"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings in folders, of which one is silent, and their mapping as a CSV."""
    folder = tmp_path_factory.mktemp("sounds")
    write_recordings(folder, SoundsWorld(foregrounds=2, backgrounds=3, items=4))
    soundfile.write(folder / "recordings" / "rumble" / "0003.flac", np.zeros(80_000), 16_000)
    return folder


def write_recordings(folder: Path, world: SoundsWorld) -> None:
    """The recordings of a world in folders, and their mapping as a CSV."""
    world.write(folder / "recordings")
    mapping = world.mapping()
    lines = ["foreground,background,pairing,split"]
    for pairing, labels in (("pair", mapping.pairs), ("hard", mapping.hard)):
        lines += [f"{front.replace(' ', '-')},{back},{pairing},test" for front in labels for back in labels[front]]
    (folder / "mapping.csv").write_text("\n".join(lines) + "\n")


def written(world: Path, *changes: tuple[str, str]) -> Path:
    text = EXPERIMENT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (world / "experiment.toml").write_text(text)
    return world / "experiment.toml"


def test_a_run_mixes_first_and_has_nothing_to_do_the_second_time(world: Path) -> None:
    file = written(world)
    dry = run(file, dry_run=True)
    assert not (world / "out").exists()
    first = run(file)
    assert up_to_results(first.made) == up_to_results(dry.made)
    (folder,) = (name for name in up_to_results(first.made) if name.startswith("mixed-"))
    assert "tasks-ood-2way-1shot.parquet" in up_to_results(first.made)
    # The data is what `mix` makes of the same recordings.
    recordings = Catalog.read(world / "out" / folder).record.sources["catalog"]
    mixed = Catalog.read(world / "out" / "catalog.parquet")
    again = Experiment.read(file)
    assert again.mix is not None
    plain = read_layout(world / "recordings", "folder")
    assert recordings.digest == plain.digest
    settings = MixSettings(clean=True, on_the_fly=True, embedding=None, margin_db=6)
    expected = mix(
        plain, again.mix.mapping, world / "by-hand", settings, runtime=Runtime(cache=world / "cache", workers=1)
    )
    assert mixed.digest == expected.digest
    assert mixed.record.mix == expected.record.mix
    assert [one["item"] for one in mixed.record.skipped] == ["rumble/0003.flac"]
    second = run(file)
    assert second.made == []
    assert sorted(second.reused) == sorted(first.made)
    # Another dial is another folder, and all that depends on it is made anew.
    changed = run(written(world, ("gain = 6", "gain = 6\ndial = 2")), dry_run=True)
    assert sorted(name.split("/")[0][:5] for name in up_to_results(changed.made)) == sorted(
        name.split("/")[0][:5] for name in up_to_results(first.made)
    )
    assert folder not in up_to_results(changed.made)


def test_interrupted_mixing_goes_on_where_it_stopped(world: Path) -> None:
    file = written(world, ("on_the_fly = true", 'peak = "always"\nshort = "pad"'), ('"out"', '"files"'))
    run(file)
    (folder,) = (world / "files").glob("mixed-*")
    sounds = {path: path.read_bytes() for path in sorted((folder / "sounds").rglob("*.flac"))}
    assert len(sounds) == 2 * 4 * 4  # three backgrounds and clean
    times = {path: path.stat().st_mtime_ns for path in sounds}
    lost = next(iter(sounds))
    lost.unlink()
    (folder / "catalog.parquet").unlink()  # it is written last
    run(file)
    assert {path: path.read_bytes() for path in sorted((folder / "sounds").rglob("*.flac"))} == sounds
    assert [path for path, time in times.items() if path.stat().st_mtime_ns != time] == [lost]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((("gain = 6", "gian = 6"),), "[mix]: unknown key 'gian': did you mean 'gain'"),
        ((("gain = 6", "margin_db = 6"),), "[mix]: unknown key 'margin_db': did you mean 'gain'"),
        ((("gain = 6", "dial = -1"),), "[mix], dial: expected a number of at least 0, found -1"),
        ((("gain = 6", 'peak = "alway"'),), "[mix], peak: expected clipping or always, found 'alway': did you mean"),
        ((("gain = 6", 'gain = "loud"'),), "[mix], gain: expected a number from -200 to 200, found 'loud'"),
        ((("gain = 6", "max_alike = 0.9"),), "[mix]: max_alike needs an embedding"),
        ((('embedding = "none"', 'embedding = "logmell"'),), "[mix]: unknown encoder 'logmell': did you mean 'logmel'"),
        (
            (('mapping = "mapping.csv"', ""),),
            "[mix]: the key 'mapping' is missing: a TOML or CSV file, or one of esc50",
        ),
        (
            (('"mapping.csv"', '"esc5"'),),
            "[mix], mapping: mapping esc5 is ",
        ),
        ((('"mapping.csv"', '"esc50"'),), "[mix]: mapping: no recording has the foreground 'breathing'"),
        ((("query = 1", "query = 9"),), "[tasks], sampler 'ood': "),
        (
            (('["ood"]', "[\"ood(context_column='place')\"]"),),
            "[tasks], sampler 'ood(context_column='place')'",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_mixed(world: Path, changes: Any, message: str) -> None:
    file = written(world, *changes, ('"out"', '"refused"'))
    for dry_run in (True, False):
        with pytest.raises(InputError) as caught:
            run(file, dry_run=dry_run)
        assert str(caught.value).startswith(f"{file}, {message}")
    assert not (world / "refused").exists()


def test_names_are_those_of_the_mixtures(world: Path) -> None:
    (world / "names.csv").write_text("label,name\nlow-chirp,a low chirp\nrumble,a rumble\n")
    run(written(world, ('root = "recordings"', 'root = "recordings"\nnames = "names.csv"'), ('"out"', '"named"')))
    mixed = Catalog.read(world / "named" / "catalog.parquet")
    assert mixed.class_names["low-chirp"] == "a low chirp"
