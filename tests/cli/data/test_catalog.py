from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.cli.data.catalog import MAX_PER_KIND
from shotproof.core.errors import InputError, UnknownName, WriteFailed


def call(*arguments: object) -> Result:
    """Run the verb; an error of ours comes through as it would reach the command's own handler."""
    return CliRunner().invoke(app, ["catalog", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for label, count in [("jay", 6), ("robin", 4), ("wren", 5)]:
        for n in range(count):
            path = tmp_path / "birds" / label / f"{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (3, 3, 3), dtype=np.uint8)).save(path)
    return tmp_path / "birds"


def test_names_are_for_people(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("label,name\nrobin,European robin\n")
    made, named = tmp_path / "catalog.parquet", tmp_path / "named.parquet"
    call(birds, "-o", made)
    for source in (birds, made):  # a folder, and a catalog that is there already
        result = call(source, "--names", tmp_path / "names.csv", "-o", named)
        assert "4 (European robin)" in result.output
        assert Catalog.read(named).class_names == {"jay": "jay", "robin": "European robin", "wren": "wren"}
        assert Catalog.read(named).digest == Catalog.read(made).digest


def test_a_folder_becomes_a_catalog_with_a_summary(birds: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "catalog.parquet"
    result = call(birds, "-o", output)
    assert result.exit_code == 0
    assert "15 items" in result.output
    assert "4 (robin)" in result.output
    made = Catalog.read(output)
    assert all(path.is_file() for path in made.paths)
    assert (made.record.name, str(made.record.layout)) == ("birds", "folder")


def test_the_summary_as_json(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "splits.csv").write_text("label,split\njay,train\nwren,train\nrobin,test\n")
    output = tmp_path / "catalog.parquet"
    document = json.loads(call(birds, "--splits", tmp_path / "splits.csv", "-o", output, "--json").output)
    assert document == {
        "items": 15,
        "digest": Catalog.read(output).digest,
        "splits": [
            {"split": "test", "classes": 1, "items": 4, "smallest_class": "robin", "smallest_class_items": 4},
            {"split": "train", "classes": 2, "items": 11, "smallest_class": "wren", "smallest_class_items": 5},
        ],
    }


def test_a_check_without_problems_ends_well(birds: Path) -> None:
    result = call(birds, "--check", "--way", 3, "--shot", 1, "--query", 3)
    assert result.exit_code == 0
    assert "0 problems found" in result.output


def test_a_check_with_problems_ends_with_status_1(birds: Path, tmp_path: Path) -> None:
    output = tmp_path / "catalog.parquet"
    call(birds, "-o", output)
    (birds / "jay" / "0.png").write_text("broken")
    (birds / "jay" / "1.png").unlink()
    result = call(output, "--check", "--way", 3, "--shot", 1, "--query", 4)
    assert result.exit_code == 1
    for kind in ("too-few-classes", "small-class", "unreadable-file", "missing-file"):
        assert kind in result.output
    assert "4 problems found" in result.output
    as_json = call(output, "--check", "--way", 3, "--shot", 1, "--query", 4, "--json")
    assert as_json.exit_code == 1
    problems = json.loads(as_json.output)["problems"]
    assert [problem["where"] for problem in problems] == ["all", "robin", "jay/0.png", "jay/1.png"]


def test_many_problems_of_a_kind_are_cut_but_counted(tmp_path: Path) -> None:
    lines = [f"{n}.png,class{n:02d}" for n in range(MAX_PER_KIND + 7)]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *lines]))
    output = call(tmp_path / "table.csv", "--layout", "table", "--check").output
    assert output.count("small-class") == MAX_PER_KIND + 1
    assert "... and 7 more" in output


def test_labels_are_printed_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("path,label\na.png,[red]x[/red]\n")
    output = call(tmp_path / "table.csv", "--layout", "table", "-o", tmp_path / "c.parquet").output
    assert "[red]x[/red]" in output


def test_bad_input_is_one_clear_error_and_writes_nothing(birds: Path, tmp_path: Path) -> None:
    output = tmp_path / "catalog.parquet"
    with pytest.raises(InputError, match="--output FILE, --check, or --stats"):
        call(birds)
    with pytest.raises(UnknownName, match="did you mean 'mini-imagenet'"):
        call(birds, "--layout", "miniimagenet", "-o", output)
    with pytest.raises(InputError, match=r"bird does not exist: did you mean 'birds'"):
        call(birds.parent / "bird", "-o", output)
    with pytest.raises(InputError, match="not readable as Parquet"):
        call(birds / "jay" / "0.png", "--check")
    with pytest.raises(InputError, match=r"no column 'context': .*--context-column"):
        call(birds, "--stats", "-o", output)
    assert call(birds, "--check", "--way", 0).exit_code == 2
    assert not output.exists()
    with pytest.raises(WriteFailed, match="cannot write"):
        call(birds, "-o", birds)
