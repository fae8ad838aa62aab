from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner, Result

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError, InsufficientData
from tests.drawn_layers import draw_masked
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


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with pictures/, their masks, catalog.parquet without masks, masked.parquet with masks and a mapping."""
    catalog = draw_masked(tmp_path / "pictures", items=3)
    catalog.write(tmp_path / "masked.parquet")
    Catalog(catalog.table.drop_columns(["mask"]), catalog.root).write(tmp_path / "catalog.parquet")
    (tmp_path / "mapping.toml").write_text(
        '[pairs]\nclass0 = ["class2"]\nclass1 = ["class3"]\n[splits]\ntest = ["class0", "class1"]\n'
    )
    return tmp_path


def run_images(folder: Path, *arguments: str, catalog: str = "catalog.parquet") -> Result:
    typed = ["mix", str(folder / catalog), "-o", str(folder / "out"), "--cache", str(folder / "cache")]
    return CliRunner().invoke(app, [*typed, "--workers", "1", *arguments], catch_exceptions=False)


def test_masks_make_a_catalog_with_a_contact_sheet(images: Path) -> None:
    (images / "pictures" / "masks" / "0-0.png").unlink()
    masks = ["--masks", str(images / "pictures" / "masks"), "--sheet", str(images / "sheet.html")]
    said = run_images(images, *masks)
    assert "11 of 12 images have a good mask" in said.stdout
    assert "left out  1 image: mask missing: 0-0.png" in said.stderr
    masked = Catalog.read(images / "out" / "catalog.parquet")
    assert len(masked) == 11
    assert all((images / "out" / mask).is_file() for mask in masked.table["mask"].to_pylist())
    assert "11 of 12 images have a good mask." in (images / "sheet.html").read_text()
    document = json.loads(run_images(images, *masks, "--json").stdout)
    assert (document["items"], document["dropped"]) == (11, {"missing": 1})


def test_a_sheet_is_written_if_no_mask_is_good(images: Path) -> None:
    masks = ["--masks", str(images / "pictures" / "masks"), "--sheet", str(images / "sheet.html")]
    with pytest.raises(InsufficientData, match="none of 12 images has a good mask: 12 small"):
        run_images(images, *masks, "--set", "min_area=0.8")
    assert "Left out: mask small, 12 images" in (images / "sheet.html").read_text()


def test_grabcut_says_how_many_images_it_cuts(images: Path) -> None:
    said = run_images(images, "--cutter", "grabcut(iterations=1)")
    assert "cutting the foreground out of 12 images" in said.stderr
    assert "12 of 12 images have a good mask" in said.stdout
    again = run_images(images, "--cutter", "grabcut(iterations=1)")
    assert "cutting" not in again.stderr


def test_images_with_masks_are_mixed(images: Path) -> None:
    said = run_images(images, "--mapping", str(images / "mapping.toml"), "--clean", catalog="masked.parquet")
    assert "12 images" in said.stdout
    mixed = Catalog.read(images / "out" / "catalog.parquet")
    assert sorted(set(mixed.table["context"].to_pylist())) == ["class2", "class3", "clean"]
    document = json.loads(
        run_images(images, "--mapping", str(images / "mapping.toml"), "--json", catalog="masked.parquet").stdout
    )
    assert document["backgrounds"] == [{"context": "class2", "images": 3}, {"context": "class3", "images": 3}]


def test_foregrounds_alone_are_cut_before_mixing(images: Path) -> None:
    for item in range(3):  # of a background, which is shown whole
        (images / "pictures" / "masks" / f"2-{item}.png").unlink()
    masks = ["--masks", str(images / "pictures" / "masks")]
    said = run_images(images, *masks, "--mapping", str(images / "mapping.toml"), "--per-background", "2")
    assert "6 of 6 images have a good mask" in said.stdout
    assert "4 images" in said.stdout.splitlines()[-1]
    masked = Catalog.read(images / "out" / "cut" / "catalog.parquet")
    assert sum(mask is not None for mask in masked.table["mask"].to_pylist()) == 6
    assert len(Catalog.read(images / "out" / "catalog.parquet")) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to do: expected --cutter grabcut or --masks FOLDER"),
        (("--mapping", "MAPPING", "--dial", "0.5"), "--dial is for sounds, but .* holds images: expected --seed"),
        (("--mapping", "MAPPING", "--gain", "3"), "--gain is for sounds"),
        (("--mapping", "MAPPING", "--on-the-fly"), "--on-the-fly is for sounds"),
        (("--mapping", "MAPPING", "--set", "peak=always"), "--set peak is for sounds"),
        (("--mapping", "MAPPING", "--set", "min_area=0.1"), "--set min_area is for cutting: add --cutter"),
        (("--mapping", "MAPPING", "--sheet", "s.html"), "--sheet .*: add --cutter"),
        (("--mapping", "MAPPING"), "no image has one: name masks .*'mask', or cut them out"),
        (("--cutter", "grabcut", "--masks", "MASKS"), "expected either --cutter or --masks"),
        (("--cutter", "grabcutt"), "unknown cutter 'grabcutt': did you mean 'grabcut'"),
        (("--masks", "nowhere"), "folder nowhere does not exist"),
        (("--masks", "MASKS", "--set", "min_are=0.1"), "unknown setting 'min_are': did you mean 'min_area'"),
        (("--masks", "MASKS", "--set", "min_area=2"), "^--set min_area: expected a number from 0 to 1, found 2"),
        (("--masks", "MASKS", "--clean"), "--clean is for mixing: add --mapping FILE"),
        (("--masks", "MASKS", "--seed", "3"), "--seed is for mixing"),
        (("--masks", "MASKS", "--split", "tset"), "unknown split 'tset': did you mean 'test'"),
    ],
)
def test_images_asked_for_wrongly_are_one_clear_error(images: Path, arguments: tuple[str, ...], message: str) -> None:
    places = {"MAPPING": str(images / "mapping.toml"), "MASKS": str(images / "pictures" / "masks")}
    with pytest.raises(InputError, match=message):
        run_images(images, *(places.get(argument, argument) for argument in arguments))
    assert not (images / "out").exists()


def test_sounds_are_not_cut(data: Path) -> None:
    for flags in (["--cutter", "grabcut"], ["--masks", "masks"], ["--sheet", "sheet.html"]):
        with pytest.raises(InputError, match=f"{flags[0]} is for images, but .* holds sounds: mix them with --mapping"):
            run(data, *flags)
    with pytest.raises(InputError, match=r"--set min_area .*\(--cutter\)"):
        run(data, "--set", "min_area=0.1")
    with pytest.raises(InputError, match=r"^--set min_audible: expected a number"):
        run(data, "--set", "min_audible=2")
    arguments = ["mix", str(data / "catalog.parquet"), "-o", str(data / "out")]
    with pytest.raises(InputError, match="nothing to do: expected --mapping FILE"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
