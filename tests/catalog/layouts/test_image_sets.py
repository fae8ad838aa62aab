"""Published sets of images, on folders in their published form."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.attributes.detector import detect
from shotproof.catalog.layout import layouts, read_layout
from shotproof.catalog.layouts.image_sets import ORBIT_ISSUES, published_split
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from tests.catalog.layouts.test_meta_dataset import touch, write_json


def test_orbit(tmp_path: Path) -> None:
    clean, clutter = "P1--bag--clean--x", "P1--bag--clutter--y"
    touch(tmp_path, f"test/P1/bag/clean/{clean}/{clean}-00001.jpg", f"test/P1/bag/clean/{clean}/{clean}-00002.jpg")
    touch(tmp_path, f"test/P1/bag/clutter/{clutter}/{clutter}-00001.jpg", "validation/P2/cup/clean/z/z-00001.jpg")
    fine = dict.fromkeys(ORBIT_ISSUES, False)
    absent = {**dict.fromkeys(ORBIT_ISSUES, None), "object_not_present_issue": True}
    frames = {f"{clean}-00001.jpg": {**fine, "blur_issue": True}, f"{clean}-00002.jpg": absent}
    write_json(tmp_path / "annotations" / "test" / f"{clean}.json", frames)
    box = {"object_bounding_box": {"x": 1, "y": 2, "w": 3, "h": 4}, "object_not_present_issue": False}
    write_json(tmp_path / "annotations" / "test" / f"{clutter}.json", {f"{clutter}-00001.jpg": box})
    table = read_layout(tmp_path, "orbit").table
    assert table["label"].to_pylist() == ["P1/bag", "P1/bag", "P1/bag", "P2/cup"]
    assert table["user"].to_pylist() == ["P1", "P1", "P1", "P2"]
    assert table["context"].to_pylist() == ["clean", "clean", "clutter", "clean"]
    assert table["source"].to_pylist() == [clean, clean, clutter, "z"]
    assert table["split"].to_pylist() == ["test", "test", "test", "val"]
    assert table["blur_issue"].to_pylist() == [True, None, None, None]
    assert table["object_not_present_issue"].to_pylist() == [False, True, False, None]
    assert set(ORBIT_ISSUES) <= set(table.column_names)
    write_json(tmp_path / "annotations" / "test" / f"{clean}.json", {"a.jpg": {"blur_issue": "yes"}})
    with pytest.raises(InputError, match=r"a\.jpg: expected blur_issue .*true, false or null, found 'yes'"):
        read_layout(tmp_path, "orbit")
    touch(tmp_path, "test/P1/bag/loose.jpg")
    with pytest.raises(InputError, match=r"'test/P1/bag/loose\.jpg': expected SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME"):
        read_layout(tmp_path, "orbit")


def test_the_issues_of_orbit_are_attributes(tmp_path: Path) -> None:
    touch(tmp_path, "test/P1/bag/clean/v/v-1.jpg", "test/P1/bag/clean/v/v-2.jpg")
    frames = {f"v-{k}.jpg": {**dict.fromkeys(ORBIT_ISSUES, False), "blur_issue": k == 1} for k in (1, 2)}
    write_json(tmp_path / "annotations" / "test" / "v.json", frames)
    attributes = detect(read_layout(tmp_path, "orbit"), "table", runtime=Runtime(cache=None, workers=1))
    words = dict(zip(*(attributes.table[name].to_pylist() for name in ("item", "attributes")), strict=True))
    assert words == {"test/P1/bag/clean/v/v-1.jpg": ["blur_issue"], "test/P1/bag/clean/v/v-2.jpg": []}


def test_cure_or(tmp_path: Path) -> None:
    touch(tmp_path, "01_no_challenge/white/iPhone/1_1_1_001_01_0.jpg", "15/3d2/5_4_5_100_15_3.jpg")
    rows = read_layout(tmp_path, "cure-or").table.drop_columns(["path", "item", "split"]).to_pylist()
    first = {"label": "001", "context": "white", "orientation": "front", "device": "iPhone 6s"}
    second = {"label": "100", "context": "3d office", "orientation": "top", "device": "Logitech C920"}
    assert rows == [
        {**first, "challenge": "none", "level": 0},
        {**second, "challenge": "grayscale contrast", "level": 3},
    ]
    touch(tmp_path, "6_1_1_001_01_0.jpg")
    with pytest.raises(InputError, match=r"'6_1_1_001_01_0\.jpg': expected a name such as 1_3_2_017_05_4\.jpg"):
        read_layout(tmp_path, "cure-or")


def test_objectnet(tmp_path: Path) -> None:
    touch(tmp_path, "images/air_freshener/a.png", "images/briefcase/b.png")
    assert read_layout(tmp_path, "objectnet").splits == ["test"]
    mapping = tmp_path / "mappings" / "folder_to_objectnet_label.json"
    write_json(mapping, {"air_freshener": "Air freshener", "briefcase": "Briefcase"})
    assert read_layout(tmp_path, "objectnet").class_names["air_freshener"] == "Air freshener"
    write_json(mapping, {"briefcase": "Briefcase"})
    with pytest.raises(InputError, match=r"no name for .*'air_freshener'"):
        read_layout(tmp_path, "objectnet")


def test_cifar_fs_by_the_published_lists(tmp_path: Path) -> None:
    touch(tmp_path, "data/apple/1.png", "data/baby/2.png", "data/bear/3.png")
    folder = tmp_path / "splits" / "bertinetto"
    folder.mkdir(parents=True)
    for split, label in (("train", "apple"), ("val", "baby"), ("test", "bear")):
        (folder / f"{split}.txt").write_text(f"{label}\n")
    table = read_layout(tmp_path, "cifar-fs").table
    assert table.select(["label", "split"]).to_pylist() == [
        {"label": "apple", "split": "train"},
        {"label": "baby", "split": "val"},
        {"label": "bear", "split": "test"},
    ]
    (folder / "val.txt").write_text("baby\napple\n")
    with pytest.raises(InputError, match=r"val\.txt: class 'apple' is also in train\.txt"):
        read_layout(tmp_path, "cifar-fs")
    (folder / "val.txt").unlink()
    with pytest.raises(InputError, match=r"val\.txt does not exist"):
        read_layout(tmp_path, "cifar-fs")


def test_fc100_by_its_folders(tmp_path: Path) -> None:
    touch(tmp_path, "train/apple/1.png", "val/baby/2.png", "test/bear/3.png")
    assert read_layout(tmp_path, "fc100").splits == ["test", "train", "val"]
    touch(tmp_path, "valid/cup/1.png")
    with pytest.raises(InputError, match=r"expected the folders train, val, test, .*'val"):
        read_layout(tmp_path, "fc100")


@pytest.mark.parametrize("name", ["orbit", "cure-or", "objectnet", "cifar-fs", "fc100"])
def test_each_is_declared(name: str) -> None:
    layout = layouts.make(name)
    assert layout.dataset
    assert layout.license
    assert layout.citation


# Number of samples of the concepts next to the borders of the published split (MetaCoCo, Table 4).
AT_BORDERS = {"bag": 993, "toilet": 864, "rat": 857, "curtain": 482, "carpet": 437, "bridge": 249}


def test_concepts_and_contexts_are_read_from_folders(tmp_path: Path) -> None:
    touch(tmp_path, "dog/on grass/1.jpg", "dog/snow/more/2.png", "cat/snow/1.jpg", "dog/snow/notes.txt")
    catalog = read_layout(tmp_path, "metacoco")
    rows = catalog.table.select(["item", "label", "context"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("cat/snow/1.jpg", "cat", "snow"),
        ("dog/on grass/1.jpg", "dog", "on grass"),
        ("dog/snow/more/2.png", "dog", "snow"),
    ]
    assert catalog.record.notes == {"ignored_files": 1}
    assert "MetaCoCo" in (catalog.record.citation or "")


def test_the_published_split_is_reproduced() -> None:
    sizes = dict(AT_BORDERS)
    sizes |= {f"large{i:02d}": 1000 + i for i in range(62)} | {f"middle{i:02d}": 500 + i for i in range(18)}
    sizes |= {f"small{i:02d}": 300 + i for i in range(14)}
    split_of = published_split([concept for concept, size in sizes.items() for _ in range(size)])
    assert [list(split_of.values()).count(split) for split in ("train", "test", "val")] == [64, 20, 16]
    assert [split_of[name] for name in AT_BORDERS] == ["train", "train", "test", "test", "val", "val"]


@pytest.mark.parametrize(("concepts", "sizes"), [(1, (1, 0, 0)), (5, (3, 1, 1)), (10, (6, 2, 2)), (50, (32, 10, 8))])
def test_other_numbers_of_concepts_are_split_in_proportion(concepts: int, sizes: tuple[int, int, int]) -> None:
    splits = list(published_split([f"c{i}" for i in range(concepts)]).values())
    assert tuple(splits.count(split) for split in ("train", "test", "val")) == sizes


def test_split_folders_are_kept(tmp_path: Path) -> None:
    touch(tmp_path, "train/dog/grass/1.jpg", "val/cat/grass/1.jpg", "test/cow/snow/1.jpg")
    table = read_layout(tmp_path, "metacoco").table
    assert table.column("split").to_pylist() == ["test", "train", "val"]
    assert table.column("label").to_pylist() == ["cow", "dog", "cat"]


def test_an_image_without_a_context_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "dog/grass/1.jpg", "cat/1.jpg")
    with pytest.raises(InputError, match=r"'cat/1\.jpg': expected concept/context/image"):
        read_layout(tmp_path, "metacoco")


@pytest.fixture
def mini_imagenet(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for split, name, label in [("train", "n01_1", "n01"), ("val", "n02_1", "0123"), ("test", "n03_1", "n03")]:
        (tmp_path / f"{split}.csv").write_text(f"filename,label\n{name}.jpg,{label}\n")
        (tmp_path / "images" / f"{name}.jpg").touch()
    return tmp_path


def test_the_three_files_give_label_and_split(mini_imagenet: Path) -> None:
    catalog = read_layout(mini_imagenet, "mini-imagenet")
    assert catalog.table.to_pylist() == [
        {"item": "images/n01_1.jpg", "path": "images/n01_1.jpg", "label": "n01", "split": "train"},
        {"item": "images/n02_1.jpg", "path": "images/n02_1.jpg", "label": "0123", "split": "val"},
        {"item": "images/n03_1.jpg", "path": "images/n03_1.jpg", "label": "n03", "split": "test"},
    ]
    assert all(path.is_file() for path in catalog.paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("filename,label\nn01_1.jpg,n01\nn01_2.jpg,n01\n", r"train\.csv, line 3: .*n01_2\.jpg does not exist \(1 of 2"),
        ("filename,label\nn01_1.jpg,\n", r"train\.csv, line 2: empty label"),
        ("filename,label\nn02_1.jpg,n01\n", r"must be unique: 'images/n02_1\.jpg' occurs 2 times"),
        ("file,label\nn01_1.jpg,n01\n", "no column 'filename': did you mean 'file'"),
    ],
)
def test_a_list_that_does_not_fit_is_named_with_its_line(mini_imagenet: Path, text: str, message: str) -> None:
    (mini_imagenet / "train.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_layout(mini_imagenet, "mini-imagenet")


def test_a_missing_list_is_named(mini_imagenet: Path) -> None:
    (mini_imagenet / "val.csv").unlink()
    with pytest.raises(InputError, match=r"val\.csv does not exist"):
        read_layout(mini_imagenet, "mini-imagenet")


WHOLE = ("train/n01/a.jpg", "val/n02/b.JPEG", "test/n03/c.jpg")


def test_three_splits_with_class_folders(tmp_path: Path) -> None:
    touch(tmp_path, *WHOLE)
    catalog = read_layout(tmp_path, "tiered-imagenet")
    assert catalog.table.select(["item", "label", "split"]).to_pylist() == [
        {"item": "test/n03/c.jpg", "label": "n03", "split": "test"},
        {"item": "train/n01/a.jpg", "label": "n01", "split": "train"},
        {"item": "val/n02/b.JPEG", "label": "n02", "split": "val"},
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (WHOLE[:2], "expected the folders train, val, test, .*'test'"),
        ((*WHOLE, "trian/n04/d.jpg"), "'trian': did you mean 'train'"),
        ((*WHOLE, "train/d.jpg"), r"'train/d\.jpg': expected SPLIT/CLASS/IMAGE"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    touch(tmp_path, *files)
    with pytest.raises(InputError, match=message):
        read_layout(tmp_path, "tiered-imagenet")
