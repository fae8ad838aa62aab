from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner, Result

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from tests.sounds.test_mix import draw_recordings

MAPPING = '[pairs]\ndog = ["rain"]\ncat = ["wind"]\n[splits]\ntest = ["cat", "dog"]\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with catalog.parquet, of which one dog is silent, and mapping.toml."""
    draw_recordings(tmp_path / "raw").write(tmp_path / "catalog.parquet")
    soundfile.write(tmp_path / "raw" / "dog" / "1.wav", np.zeros(16_000), 16_000)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    return tmp_path


def run(data: Path, *arguments: str) -> Result:
    paths = ["mix", str(data / "catalog.parquet"), "--mapping", str(data / "mapping.toml"), "-o", str(data / "out")]
    typed = [*paths, "--cache", str(data / "cache"), "--workers", "1", "--set", "embedding=none", *arguments]
    return CliRunner().invoke(app, typed, catch_exceptions=False)


def test_it_mixes_says_what_it_left_out_and_gives_the_measures(data: Path) -> None:
    said = run(data, "--clean", "--gain", "6", "--dial", "0.5")
    assert "skipped  dog/1.wav (dog): silent" in said.stderr
    assert "10 sounds" in said.stdout
    mixed = Catalog.read(data / "out" / "catalog.parquet")
    assert sorted(set(mixed.table["context"].to_pylist())) == ["clean", "rain", "wind"]
    assert mixed.record.mix["margin_db"] == 6
    assert mixed.record.mix["dial"] == 0.5
    assert [line.split()[:2] for line in said.stdout.splitlines() if line.startswith("rain")] == [["rain", "2"]]


def test_json_has_the_same(data: Path) -> None:
    document = json.loads(run(data, "--json", "--on-the-fly").stdout)
    assert document["items"] == 5
    assert [record["item"] for record in document["skipped"]] == ["dog/1.wav"]
    assert [(record["label"], record["sounds"]) for record in document["foregrounds"]] == [("cat", 3), ("dog", 2)]


def test_a_csv_mapping_and_another_manner(data: Path) -> None:
    (data / "mapping.toml").unlink()
    (data / "mapping.csv").write_text("foreground,background,split\ndog,rain,test\ncat,wind,test\n")
    paths = ["mix", str(data / "catalog.parquet"), "--mapping", str(data / "mapping.csv"), "-o", str(data / "out")]
    manner = ["--set", "peak=always", "--set", "short=pad", "--set", "embedding=none", "--workers", "1"]
    said = CliRunner().invoke(app, [*paths, *manner, "--cache", str(data / "cache")], catch_exceptions=False)
    assert "5 sounds" in said.stdout
    mixed = Catalog.read(data / "out" / "catalog.parquet")
    assert (mixed.record.mix["peak"], mixed.record.mix["short"]) == ("always", "pad")
    with pytest.raises(InputError, match="peak: expected clipping or always, found 'never'"):
        CliRunner().invoke(app, [*paths, "--set", "peak=never"], catch_exceptions=False)


def test_what_was_asked_wrongly_is_one_clear_error(data: Path) -> None:
    with pytest.raises(InputError, match="dial: expected a number of at least 0, found -2"):
        run(data, "--dial", "-2")
    with pytest.raises(InputError, match="unknown setting 'peek': did you mean 'peak'"):
        run(data, "--set", "peek=always")
    (data / "mapping.toml").write_text('[pairs]\ndogg = ["rain"]\n')
    with pytest.raises(InputError, match="no recording has the foreground 'dogg': did you mean 'dog'"):
        run(data)
