from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, layouts, read_layout
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import option
from shotproof.core.records import CatalogRecord, Maker


@dataclass(frozen=True)
class LinesLayout(Layout):
    """One item per line of a text file: a layout as a user would write it."""

    about = "a text file with one line per item"
    license = "none"

    label: str = option("x", "of all items")

    def read(self, root: Path) -> Catalog:
        items = sorted(root.read_text().split())
        columns = {"item": items, "path": items, "label": [self.label] * len(items), "split": ["all"] * len(items)}
        return Catalog(pa.table(columns), root.parent, CatalogRecord(notes={"lines": len(items)}))


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Path]:
    layouts.register("lines", LinesLayout)
    (tmp_path / "items.txt").write_text("b\na\n")
    yield tmp_path / "items.txt"
    layouts.unregister("lines")


def test_a_layout_of_ones_own_is_one_class_and_one_registration(lines: Path) -> None:
    catalog = read_layout(lines, "lines(label='jay')")
    assert catalog.table["label"].to_pylist() == ["jay", "jay"]
    made = Maker("lines", "lines(label='jay')", {"label": "jay"})
    assert catalog.record == CatalogRecord("items", layout=made, license="none", notes={"lines": 2})
    assert read_layout(lines, LinesLayout("jay")).digest == catalog.digest
    assert read_layout(lines, {"name": "lines", "label": "jay"}).record == catalog.record


def test_a_catalog_is_called_as_its_data_set_its_folder_or_as_one_says(data_of: dict[str, Path]) -> None:
    names = {name: read_layout(root, name).record.name for name, root in data_of.items()}
    assert names == {
        "folder": "folder",
        "tiered-imagenet": "tieredImageNet",
        "mini-imagenet": "miniImageNet",
        "esc50": "ESC-50",
        "urbansound8k": "UrbanSound8K",
        "vocalsound": "VocalSound",
        "table": "table",
    }
    assert read_layout(data_of["esc50"], "esc50", name="sounds").record.name == "sounds"


def test_a_root_that_is_a_link_to_itself_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"loop is a link .*itself"):
        read_layout(tmp_path / "loop")


def test_a_splits_file_replaces_the_splits(lines: Path) -> None:
    (lines.parent / "splits.csv").write_text("label,split\njay,test\n")
    catalog = read_layout(lines, "lines(label='jay')", splits=lines.parent / "splits.csv")
    assert catalog.splits == ["test"]
    assert (catalog.record.splits or {})["file"] == "splits.csv"


def test_what_was_asked_wrongly_is_one_clear_error(lines: Path) -> None:
    with pytest.raises(UnknownName, match="unknown layout 'foldr': did you mean 'folder'"):
        read_layout(lines, "foldr")
    with pytest.raises(InputError, match="layout 'lines' has no option 'lable': did you mean 'label'"):
        read_layout(lines, "lines(lable='jay')")
    with pytest.raises(InputError, match=r"item\.txt does not exist: did you mean 'items\.txt'"):
        read_layout(lines.parent / "item.txt", "lines")
    with pytest.raises(InputError, match="does not exist"):
        read_layout(lines.parent / "no" / "where", "lines")


@pytest.mark.parametrize("name", layouts.names())
def test_every_layout_says_what_it_is_and_refuses_an_empty_folder(tmp_path: Path, name: str) -> None:
    assert len(layouts.make(name).about.splitlines()) == 1
    with pytest.raises(InputError, match=str(tmp_path)):
        read_layout(tmp_path, name)


@pytest.fixture
def data_of(tmp_path: Path) -> dict[str, Path]:
    """Data in each layout, below one folder."""
    for path in ("folder/jay/1.png", "tiered-imagenet/train/a/1.png", "tiered-imagenet/val/b/2.png"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    (tmp_path / "tiered-imagenet/test/c").mkdir(parents=True)
    (tmp_path / "tiered-imagenet/test/c/3.png").touch()
    (tmp_path / "mini-imagenet" / "images").mkdir(parents=True)
    for split in ("train", "val", "test"):
        (tmp_path / "mini-imagenet" / f"{split}.csv").write_text(f"filename,label\n{split}.jpg,{split}\n")
        (tmp_path / "mini-imagenet" / "images" / f"{split}.jpg").touch()
    for path in ("esc50/audio/1.wav", "urbansound8k/audio/fold1/1.wav", "vocalsound/audio_16k/f0001_0_sigh.wav"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    for path, line in {
        "esc50/meta/esc50.csv": "filename,fold,category,src_file\n1.wav,1,dog,7\n",
        "urbansound8k/metadata/UrbanSound8K.csv": "slice_file_name,fold,class,fsID,salience\n1.wav,1,siren,7,1\n",
    }.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(line)
    (tmp_path / "table.csv").write_text("path,label\nb.png,x\na.png,y\n")
    return {
        "folder": tmp_path / "folder",
        "tiered-imagenet": tmp_path / "tiered-imagenet",
        "mini-imagenet": tmp_path / "mini-imagenet",
        "esc50": tmp_path / "esc50",
        "urbansound8k": tmp_path / "urbansound8k",
        "vocalsound": tmp_path / "vocalsound",
        "table": tmp_path / "table.csv",
    }


@pytest.mark.parametrize(
    "name", ["folder", "tiered-imagenet", "mini-imagenet", "esc50", "urbansound8k", "vocalsound", "table"]
)
def test_a_catalog_says_nothing_of_the_machine_it_was_made_on(
    data_of: dict[str, Path], name: str, tmp_path: Path
) -> None:
    catalog = read_layout(data_of[name], name)
    assert str(tmp_path) not in json.dumps(catalog.record.to_meta())
    assert catalog.record.layout is not None
    assert catalog.record.layout.spelling == name
    assert catalog.table["item"].to_pylist() == sorted(catalog.table["item"].to_pylist())
    for column in ("item", "path"):
        assert not any(str(tmp_path) in value for value in catalog.table[column].to_pylist())
