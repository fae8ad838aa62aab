"""ORBIT, CURE-OR, ObjectNet, FSD50K, CIFAR-FS and FC100, on folders in their published form."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.attributes.detector import detect
from shotproof.catalog.layout import layouts, read_layout
from shotproof.catalog.layouts.orbit import ISSUES
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from tests.catalog.layouts.test_meta_dataset import touch, write_json


def test_orbit(tmp_path: Path) -> None:
    clean, clutter = "P1--bag--clean--x", "P1--bag--clutter--y"
    touch(tmp_path, f"test/P1/bag/clean/{clean}/{clean}-00001.jpg", f"test/P1/bag/clean/{clean}/{clean}-00002.jpg")
    touch(tmp_path, f"test/P1/bag/clutter/{clutter}/{clutter}-00001.jpg", "validation/P2/cup/clean/z/z-00001.jpg")
    fine = dict.fromkeys(ISSUES, False)
    absent = {**dict.fromkeys(ISSUES, None), "object_not_present_issue": True}
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
    assert set(ISSUES) <= set(table.column_names)
    write_json(tmp_path / "annotations" / "test" / f"{clean}.json", {"a.jpg": {"blur_issue": "yes"}})
    with pytest.raises(InputError, match=r"a\.jpg: expected blur_issue to be true, false or null, found 'yes'"):
        read_layout(tmp_path, "orbit")
    touch(tmp_path, "test/P1/bag/loose.jpg")
    with pytest.raises(InputError, match=r"'test/P1/bag/loose\.jpg': expected SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME"):
        read_layout(tmp_path, "orbit")


def test_the_issues_of_orbit_are_attributes(tmp_path: Path) -> None:
    touch(tmp_path, "test/P1/bag/clean/v/v-1.jpg", "test/P1/bag/clean/v/v-2.jpg")
    frames = {f"v-{k}.jpg": {**dict.fromkeys(ISSUES, False), "blur_issue": k == 1} for k in (1, 2)}
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
    with pytest.raises(InputError, match="has no name for the folder 'air_freshener'"):
        read_layout(tmp_path, "objectnet")


def test_fsd50k_takes_clips_of_one_most_specific_label(tmp_path: Path) -> None:
    truth = tmp_path / "FSD50K.ground_truth"
    truth.mkdir()
    (truth / "dev.csv").write_text(
        "fname,labels,mids,split\n"
        '1,"Electric_guitar,Guitar,Music","a,b,c",train\n'
        '2,"Guitar,Music","b,c",val\n'
        '3,"Electric_guitar,Guitar,Bark,Dog,Music","a,b,d,e,c",train\n'
        "4,Music,c,train\n"
    )
    (truth / "eval.csv").write_text('fname,labels,mids\n5,"Bark,Dog","d,e"\n6,Dog,e\n')
    touch(
        tmp_path, *(f"FSD50K.dev_audio/{k}.wav" for k in range(1, 5)), *(f"FSD50K.eval_audio/{k}.wav" for k in (5, 6))
    )
    catalog = read_layout(tmp_path, "fsd50k")
    found = dict(zip(catalog.items, catalog.table["label"].to_pylist(), strict=True))
    assert {Path(item).stem: label for item, label in found.items()} == {
        **{"1": "Electric_guitar", "2": "Guitar", "4": "Music"},  # 3 has two: Electric_guitar and Bark
        **{"5": "Bark", "6": "Dog"},
    }
    assert catalog.record.notes["clips_of_several_labels"] == 1
    assert catalog.table["subset"].to_pylist() == ["dev", "dev", "dev", "eval", "eval"]


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
    with pytest.raises(InputError, match="expected the folders train, val and test, see 'valid': did you mean 'val'"):
        read_layout(tmp_path, "fc100")


@pytest.mark.parametrize("name", ["orbit", "cure-or", "objectnet", "fsd50k", "cifar-fs", "fc100"])
def test_each_is_declared(name: str) -> None:
    layout = layouts.make(name)
    assert layout.dataset
    assert layout.license
    assert layout.citation
