from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError, Mismatch, UnknownName, UnreadableItem
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode as encode_items
from shotproof.features.features import Features
from shotproof.pipeline.encode_tasks import encode
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.drawn_images import draw_catalog
from tests.drawn_layers import draw_masked


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    drawn = draw_catalog(tmp_path / "images", 6)
    split = pa.array(["train", "test"] * 3)
    table = drawn.table.set_column(drawn.table.column_names.index("split"), "split", split)
    Catalog(table, drawn.root).write(tmp_path / "catalog.parquet")
    return tmp_path / "catalog.parquet"


def run(catalog: Path, *arguments: str) -> str:
    output, cache = str(catalog.parent / "features.parquet"), str(catalog.parent / "cache")
    typed = ["encode", str(catalog), "-o", output, "--cache", cache, "--workers", "1", *arguments]
    return CliRunner().invoke(app, typed, catch_exceptions=False).stdout


def test_it_writes_what_the_function_gives_and_says_what_was_done(catalog: Path) -> None:
    first = run(catalog, "--encoder", "pixels(size=4)")
    written = Features.read(catalog.parent / "features.parquet")
    expected = encode_items(Catalog.read(catalog), "pixels(size=4)", runtime=Runtime(cache=None))
    assert written.digest == expected.digest
    assert written.record.encoder == Maker("pixels", "pixels(size=4)", {"size": 4, "maps": False})
    assert re.fullmatch(
        r".*features\.parquet: 6 items, 48 dimensions by pixels\(size=4\); 6 encoded, 0 from the cache, [\d.]+ s\n",
        first,
    )
    assert "0 encoded, 6 from the cache" in run(catalog, "--encoder", "pixels(size=4)")


def test_a_split_is_encoded_alone(catalog: Path) -> None:
    assert "3 items" in run(catalog, "--encoder", "pixels", "--split", "test")
    assert Features.read(catalog.parent / "features.parquet").table.num_rows == 3


def test_brought_features_say_nothing_of_the_cache(catalog: Path) -> None:
    np.save(catalog.parent / "f.npy", np.eye(6))
    printed = run(catalog, "--encoder", f"file:{catalog.parent / 'f.npy'}")
    assert "6 items, 6 dimensions" in printed
    assert "cache" not in printed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--encoder", "pixls"], UnknownName, "did you mean 'pixels'"),
        (["--encoder", "pixels", "--split", "tset"], UnknownName, "did you mean 'test'"),
        (["--encoder", "pixels(hub=True)"], InputError, "encoder 'pixels' has no option 'hub'"),
        (["--encoder", "pixels(size=0)"], InputError, "size: expected a whole number from 1 to 256, found 0"),
        (["--encoder", "pixels", "--device", "gpu"], InputError, "device 'gpu' cannot be used"),
        (["--encoder", "hf:no/model"], InputError, "hub"),
    ],
)
def test_bad_input_is_an_error_and_writes_nothing(
    catalog: Path, arguments: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(catalog, *arguments)
    assert not (catalog.parent / "features.parquet").exists()


def test_items_that_cannot_be_read_are_named_and_skipped_when_asked(catalog: Path) -> None:
    items = Catalog.read(catalog)
    items.paths[2].write_bytes(b"broken")
    items.paths[4].unlink()
    with pytest.raises(UnreadableItem, match=r"00[24]\.png cannot be read"):
        run(catalog, "--encoder", "pixels")
    output = catalog.parent / "features.parquet"
    typed = ["encode", str(catalog), "-o", str(output), "--cache", "none", "--encoder", "pixels", "--skip-bad"]
    said = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert "4 items" in said.stdout
    assert "2 skipped" in said.stdout
    skipped = (items.items[2], items.items[4])
    assert all(f"skipped  {item}: unreadable" in said.stderr for item in skipped)
    assert Features.read(output).record.skipped == skipped


def test_a_missing_catalog_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.parquet does not exist"):
        run(tmp_path / "none.parquet", "--encoder", "pixels")


def test_every_stage_has_a_file_of_its_own(catalog: Path) -> None:
    folder = catalog.parent / "stages"
    printed = run(catalog, "--split", "test", "--encoder", "lite0", "--stage", "all", "-o", str(folder))
    assert "3 items, 17 stages by lite0; 3 encoded, 0 from the cache" in printed
    assert sorted(path.name for path in folder.iterdir()) == [f"stage-{number:02}.parquet" for number in range(1, 18)]
    fourth = run(catalog, "--split", "test", "--encoder", "lite0", "--stage", "4")
    assert "0 encoded, 3 from the cache" in fourth  # one pass gave them all
    read = Features.read(catalog.parent / "features.parquet")
    assert read.digest == Features.read(folder / "stage-04.parquet").digest
    assert read.name == "lite0(stage=4)"


@pytest.mark.parametrize(
    ("encoder", "stage", "message"),
    [
        ("lite0", "two", "or all, found 'two'"),
        ("lite0", "18", "stage: expected a whole number from 1 to 17 or None, found 18"),
        ("pixels", "all", "encoder 'pixels' has no stages"),
    ],
)
def test_a_stage_that_there_is_not(catalog: Path, encoder: str, stage: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        run(catalog, "--encoder", encoder, "--stage", stage)


def draw_blurred(folder: Path, catalog: Catalog) -> tuple[Path, Path]:
    """Files of random tasks, and of the same with blurred queries."""
    random = sample(catalog, "random", way=3, shot=1, query=2, tasks=4)
    blurred = sample(catalog, "changed(change='blur')", like=random)
    files = folder / "random.parquet", folder / "blurred.parquet"
    for file, tasks in zip(files, (random, blurred), strict=True):
        tasks.write(file)
    return files


def test_changed_items_of_task_sets_are_encoded_so_that_these_can_be_evaluated(tmp_path: Path) -> None:
    masked = draw_masked(tmp_path)
    masked.write(tmp_path / "catalog.parquet")
    random, blurred = draw_blurred(tmp_path, masked)
    features, results = tmp_path / "features.parquet", str(tmp_path / "results.parquet")
    evaluated = ["evaluate", str(blurred), str(features), "-m", "ncc", "-o", results]
    run(tmp_path / "catalog.parquet", "--encoder", "pixels(size=4)")
    with pytest.raises(Mismatch) as error:
        CliRunner().invoke(app, evaluated, catch_exceptions=False)
    assert re.match(r"the features lack \d+ changed items of .*blurred\.parquet, e\.g\. '.* @ blur'", str(error.value))
    advised = str(error.value).partition("encode them too, shotproof ")[2].replace("CATALOG", "catalog.parquet")
    assert advised == f'encode catalog.parquet --encoder "pixels(size=4)" --tasks {blurred}'
    typed = ["--encoder", "pixels(size=4)", "--tasks", str(blurred), "--tasks", str(random)]
    assert "48 items" in run(tmp_path / "catalog.parquet", *typed)
    assert CliRunner().invoke(app, evaluated, catch_exceptions=False).exit_code == 0
    assert Results.read(results).methods == ["ncc"]


def test_task_sets_that_change_nothing_are_noted(tmp_path: Path) -> None:
    draw_masked(tmp_path).write(tmp_path / "catalog.parquet")
    random, blurred = draw_blurred(tmp_path, Catalog.read(tmp_path / "catalog.parquet"))
    typed = ["encode", str(tmp_path / "catalog.parquet"), "--encoder", "pixels", "--cache", "none"]
    said = CliRunner().invoke(app, [*typed, "--tasks", str(random), "-o", str(tmp_path / "f.parquet")])
    assert "are not changed: --tasks adds nothing" in said.stderr
    said = CliRunner().invoke(app, [*typed, "--tasks", str(blurred), "-o", str(tmp_path / "f.parquet")])
    assert "encoding 24 changed items: 24 of blur" in said.stderr
    with pytest.raises(InputError, match=r"--tasks .*\.parts.* -o f\.parquet"):
        CliRunner().invoke(
            app, [*typed, "--tasks", str(blurred), "-o", str(tmp_path / "f.parts")], catch_exceptions=False
        )


def test_masks_that_cannot_be_used_are_all_named_with_what_is_wrong(tmp_path: Path) -> None:
    draw_masked(tmp_path).write(tmp_path / "catalog.parquet")
    catalog = Catalog.read(tmp_path / "catalog.parquet")
    Image.new("L", (64, 48)).save(tmp_path / "masks" / "1-0.png")
    (tmp_path / "masks" / "2-0.png").unlink()
    like = sample(catalog, "random", way=3, shot=1, query=2, tasks=40)
    tasks, features = tmp_path / "same.parquet", tmp_path / "features.parquet"
    sample(catalog, "changed(change='mixed-same')", like=like).write(tasks)
    typed = ["--encoder", "pixels(size=4)", "--tasks", str(tasks)]
    with pytest.raises(UnreadableItem, match=r"2 masks .*1-0\.png is empty") as caught:
        run(tmp_path / "catalog.parquet", *typed)
    assert "2-0.png does not exist" in str(caught.value)
    assert "draw the tasks from a catalog without" in str(caught.value)
    with pytest.raises(UnreadableItem, match="2 masks cannot be used"):
        encode(catalog, "pixels(size=4)", tasks=[TaskSet.read(tasks)], runtime=Runtime(cache=None))
    typed = ["encode", str(tmp_path / "catalog.parquet"), *typed, "--cache", "none", "--skip-bad", "-o", str(features)]
    said = CliRunner().invoke(app, typed, catch_exceptions=False).stderr
    skipped = [line for line in said.splitlines() if line.startswith("skipped  ")]
    assert {line.rpartition("/")[2] for line in skipped} == {"1-0.png is empty", "2-0.png does not exist"}
    assert "draw the tasks from a catalog without" in said
    evaluated = ["evaluate", str(tasks), str(features), "-m", "ncc", "-o", str(tmp_path / "results.parquet")]
    with pytest.raises(Mismatch, match=r"lack \d+ changed items .* --skip-bad.*draw the tasks") as caught_later:
        CliRunner().invoke(app, evaluated, catch_exceptions=False)
    assert "encode them too" not in str(caught_later.value)
