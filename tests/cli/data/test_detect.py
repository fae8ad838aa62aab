from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import Detector, Words, detectors
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime


def run(*arguments: object) -> Result:
    """Run the verb; errors come through as they are raised."""
    return CliRunner().invoke(app, ["detect", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """Six images of two classes, red and blue, the last of them broken; with the column `wet`."""
    items = [f"{label}/{number}" for label in ("owl", "tit") for number in range(3)]
    for number, item in enumerate(items):
        (tmp_path / item).parent.mkdir(exist_ok=True)
        Image.new("RGB", (80, 80), "red" if number % 2 else "blue").save(tmp_path / f"{item}.png")
    (tmp_path / "tit/2.png").write_bytes(b"broken")
    columns = {
        "item": items,
        "path": [f"{item}.png" for item in items],
        "label": [item.split("/")[0] for item in items],
        "split": ["train"] * 3 + ["test"] * 3,
        "wet": [True, False] * 3,
    }
    Catalog(pa.table(columns), tmp_path).write(tmp_path / "catalog.parquet")
    return tmp_path


def test_the_words_of_several_detectors_in_one_file_with_broken_images_told(birds: Path) -> None:
    output = birds / "attributes.parquet"
    result = run(birds / "catalog.parquet", "--detector", "photometric", "--detector", "table", "-o", output)
    assert result.exit_code == 0
    assert "6 items" in result.stdout
    words = Attributes.read(output)
    held = words.to_words()
    assert {"mostly blue", "blue border", "wet"} <= set(held["owl/0"] or [])
    assert {"mostly red", "red border"} <= set(held["owl/1"] or [])
    assert held["tit/2"] == []  # the table knows that it is not wet
    assert [str(detector) for detector in words.record.detectors] == ["photometric", "table"]
    assert str(birds) not in json.dumps(words.record.to_meta())

    result = run(birds / "catalog.parquet", "--detector", "photometric", "-o", output)
    assert "1 item: tit/2" in result.stdout
    assert Attributes.read(output).to_words()["tit/2"] is None


def test_a_split_alone(birds: Path) -> None:
    output = birds / "attributes.parquet"
    run(birds / "catalog.parquet", "--detector", "table", "--split", "test", "-o", output)
    found = Attributes.read(output)
    assert list(found.to_words()) == ["tit/0", "tit/1", "tit/2"]
    assert found.record.split == "test"
    with pytest.raises(UnknownName, match="unknown split 'tset': did you mean 'test'"):
        run(birds / "catalog.parquet", "--detector", "table", "--split", "tset", "-o", output)


def test_statistics_and_accuracy_as_json_are_the_same_while_detecting_and_after(birds: Path) -> None:
    first, second = birds / "first.parquet", birds / "second.parquet"
    Attributes.from_words({"owl/0": ["wet", "dark"], "owl/1": [], "tit/2": ["wet"]}).write(first)
    extra = ["--stats", "--against", first, "--json"]
    while_detecting = json.loads(run(birds / "catalog.parquet", "--detector", "table", "-o", second, *extra).stdout)
    after = json.loads(run(second, birds / "catalog.parquet", *extra).stdout)
    assert after == while_detecting
    assert after["statistics"] == {
        "items": 6,
        "unknown": 0,
        "classes": 2,
        "distinct": 1,
        "per_class": 1.0,
        "per_item": 0.5,
        "words": [{"attribute": "wet", "items": 3, "classes": 2, "share": 0.5}],
    }
    there, back = after["against"]
    assert (there["query"], there["reference"]) == (back["reference"], back["query"]) == (str(second), str(first))
    assert (there["accuracy"], there["items"], there["undefined"], there["unpaired"]) == (25.0, 2, 1, 3)
    assert (back["accuracy"], back["items"], back["undefined"], back["unpaired"]) == (100.0, 1, 2, 3)


def test_tables_for_people(birds: Path) -> None:
    words = birds / "words.parquet"
    pq.write_table(pa.table({"item": ["tit/0"], "attributes": [["a[b]", "wet"]]}), words)  # somebody's own file
    result = run(words, "--against", words)
    assert "100.00%" in result.stdout
    Attributes.from_words({f"tit/{n}": [f"word{w}" for w in range(60)] for n in range(3)}).write(words)
    result = run(words, birds / "catalog.parquet", "--split", "test", "--stats")
    assert "60 distinct attributes; on average 60.00 per class" in result.stdout
    assert "word0" in result.stdout
    assert "more (--json)" in result.stdout


def test_annotations_from_a_file(birds: Path) -> None:
    (birds / "notes.csv").write_text("file,attribute\n" + "".join(f"{n}.png,n{n}\n" for n in range(3)))
    notes = f"table(file='{birds / 'notes.csv'}')"
    with pytest.raises(InputError, match=r"'0\.png' may be any of 2 items"):
        run(birds / "catalog.parquet", "--detector", notes, "-o", birds / "a.parquet")
    output = birds / "a.parquet"
    run(birds / "catalog.parquet", "--detector", notes, "--split", "test", "-o", output)
    assert Attributes.read(output).to_words() == {"tit/0": ["n0"], "tit/1": ["n1"], "tit/2": ["n2"]}
    assert Attributes.read(output).record.detectors[0].options["file"] == "notes.csv"


@dataclass(frozen=True)
class SidewaysDetector(Detector):
    """Says what it was given, in the words."""

    about = "what it was given"

    needed: int = option(help="a number")

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        return {item: [f"needed {self.needed + 1}", f"workers {runtime.workers}"] for item in catalog.items}


def test_a_detector_of_ones_own_gets_its_options_and_the_runtime(birds: Path) -> None:
    detectors.register("sideways", SidewaysDetector)
    try:
        chosen = [birds / "catalog.parquet", "-o", birds / "a.parquet", "--workers", 2, "--detector"]
        run(*chosen, "sideways(needed=41)")
        assert Attributes.read(birds / "a.parquet").to_words()["owl/0"] == ["needed 42", "workers 2"]
        with pytest.raises(InputError, match="detector 'sideways' needs needed"):
            run(*chosen, "sideways")
    finally:
        detectors.unregister("sideways")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--detector", "photometric"], "no output file given: use --output"),
        (["-o", "x.parquet"], "choose one or more with --detector: captions, endpoint, photometric, table, vlm"),
        (["-o", "x.parquet", "--detector", "tabel"], "unknown detector 'tabel': did you mean 'table'"),
        (["-o", "x.parquet", "--detector", "table(url='u')"], "detector 'table' has no option 'url'"),
        (["-o", "x.parquet", "--detector", "captions(taggr='spacy')"], "did you mean 'tagger'"),
        (["-o", "x.parquet", "--detector", "captions"], "detector 'captions' needs file"),
        (["-o", "x.parquet", "--detector", "vlm"], "detector 'vlm' needs model"),
        (["-o", "x.parquet", "--detector", "endpoint"], "detector 'endpoint' needs model"),
        (["-o", "x.parquet", "--detector", "table", "--against", "none.parquet"], "none.parquet does not exist"),
        (["-o", "catalog.parquet", "--detector", "table"], "would overwrite the catalog"),
    ],
)
def test_wrong_arguments_leave_nothing_behind(
    birds: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(birds)
    before = {path: path.read_bytes() for path in birds.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=message):
        run("catalog.parquet", *arguments)
    assert {path: path.read_bytes() for path in birds.iterdir() if path.is_file()} == before


def test_an_attributes_file_is_described_not_detected(birds: Path) -> None:
    words = birds / "words.parquet"
    Attributes.from_words({"owl/0": ["a"]}).write(words)
    assert "1 item, 1 word;" in run(words).stdout
    with pytest.raises(InputError, match=r"holds attributes: .* need a catalog"):
        run(words, "--detector", "table", "-o", birds / "x.parquet")
    with pytest.raises(InputError, match="need the catalog"):
        run(words, "--stats")
    with pytest.raises(InputError, match="does not exist"):
        run(birds / "none.parquet", "--detector", "table", "-o", birds / "x.parquet")


def test_the_number_of_workers_does_not_change_a_byte(birds: Path) -> None:
    rng = np.random.default_rng(0)
    items = [f"{number}.png" for number in range(70)]
    for item in items:
        Image.fromarray(rng.integers(0, 256, (70, 90, 3), dtype=np.uint8)).save(birds / item)
    same = ["x"] * len(items)
    table = pa.table({"item": items, "path": items, "label": same, "split": same})
    Catalog(table, birds).write(birds / "many.parquet")
    files = [birds / f"{workers}.parquet" for workers in (1, 2)]
    for workers, file in enumerate(files, start=1):
        run(birds / "many.parquet", "--detector", "photometric", "--workers", workers, "-o", file)
    assert files[0].read_bytes() == files[1].read_bytes()
