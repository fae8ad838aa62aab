"""Meta-Dataset's ten data sets, on folders in their published form, with splits in the form of its repository."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from shotproof.catalog.layout import layouts, read_layout
from shotproof.catalog.layouts.mscoco import write_crops
from shotproof.core.errors import InputError
from tests.catalog.layouts.test_cub import CLASSES
from tests.catalog.layouts.test_cub import root as cub_root

TEN = [
    *("ilsvrc-2012", "omniglot", "aircraft", "cu-birds", "dtd", "quickdraw", "fungi", "vgg-flower", "traffic-sign"),
    "mscoco",
]
birds = cub_root  # the fixture: the official folder, six images of two classes


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_split(path: Path, **classes: Sequence[Any]) -> None:
    write_json(path, {"train": [], "valid": [], "test": [], **classes})


def splits(root: Path, name: str, **options: Any) -> dict[str, str]:
    """{label: split}."""
    table = read_layout(root, {"name": name, **options}).table
    return dict(zip(table["label"].to_pylist(), table["split"].to_pylist(), strict=True))


def test_dtd_and_the_form_of_a_split_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch(
        tmp_path,
        *(f"images/{name}/{name}_1.jpg" for name in ("banded", "waffled", "woven")),
        "images/waffled/.directory",
    )
    with pytest.raises(InputError, match=r"dtd_splits\.json does not exist: .*Meta-Dataset"):
        read_layout(tmp_path, "dtd")
    write_split(tmp_path / "dtd_splits.json", train=["banded"], valid=["waffled"], test=["woven"])
    with caplog.at_level(logging.WARNING, "shotproof"):
        catalog = read_layout(tmp_path, "dtd")
    assert splits(tmp_path, "dtd") == {"banded": "train", "waffled": "val", "woven": "test"}
    assert catalog.record.splits is not None
    assert catalog.record.splits["file"] == "dtd_splits.json"
    assert "the test split has 1 classes; as published, it has 7" in caplog.text
    assert "the test split has 1 images; as published, it has 840" in caplog.text
    write_split(tmp_path / "other.json", train=["banded", "waffled", "woven"])
    assert set(splits(tmp_path, "dtd", split_file=tmp_path / "other.json").values()) == {"train"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "expected lists .*train, valid and test"),
        ({"tran": []}, "unknown split 'tran': did you mean 'train'"),
        ({"train": ["banded"], "test": ["banded"]}, "class 'banded' occurs twice"),
        ({"train": ["banded", "woven"]}, "lists the class 'woven', which has no items"),
        ({"train": ["band"]}, "does not list the class 'banded': did you mean 'band'"),
    ],
)
def test_a_split_that_does_not_fit_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    touch(tmp_path, "images/banded/1.jpg")
    write_json(tmp_path / "dtd_splits.json", content)
    with pytest.raises(InputError, match=f"dtd_splits.json:? {message}"):
        read_layout(tmp_path, "dtd")


def test_aircraft(tmp_path: Path) -> None:
    touch(tmp_path, *(f"data/images/000000{number}.jpg" for number in (1, 2, 3)))
    (tmp_path / "data/images_variant_trainval.txt").write_text("0000001 Falcon 2000\n0000003 A318\n")
    (tmp_path / "data/images_variant_test.txt").write_text("0000002 Falcon 2000\n")
    (tmp_path / "data/images_box.txt").write_text("0000001 5 9 14 28\n0000002 1 1 2 3\n0000003 1 1 2 2\n")
    write_split(tmp_path / "aircraft_splits.json", train=["A318"], test=["Falcon 2000"])
    table = read_layout(tmp_path, "aircraft").table
    assert table["label"].to_pylist() == ["Falcon 2000", "Falcon 2000", "A318"]
    assert table["split"].to_pylist() == ["test", "test", "train"]
    assert [table[name][0].as_py() for name in ("box_x", "box_y", "box_width", "box_height")] == [4, 8, 10, 20]
    (tmp_path / "data/images_box.txt").write_text("0000001 5 9 14 28\n")
    with pytest.raises(InputError, match=r"images_box\.txt lacks records of image 0000003"):
        read_layout(tmp_path, "aircraft")
    (tmp_path / "data/images_variant_test.txt").write_text("0000004 A318\n")
    with pytest.raises(InputError, match=r"images_variant_test\.txt, line 1: .*0000004\.jpg does not exist"):
        read_layout(tmp_path, "aircraft")


def test_birds(birds: Path) -> None:
    write_split(birds / "cu_birds_splits.json", train=[CLASSES[0]], test=[CLASSES[1]])
    assert splits(birds, "cu-birds") == {CLASSES[0]: "train", CLASSES[1]: "test"}
    assert "left wing visible" in read_layout(birds, "cu-birds").table.column_names


@pytest.mark.parametrize(
    ("listed", "labels"),
    [((1, 2), ["001", "002", "001"]), (("001.rose", "002.lily"), ["001.rose", "002.lily", "001.rose"])],
    ids=["numbers", "names"],
)
def test_flowers(tmp_path: Path, listed: tuple[Any, Any], labels: list[str]) -> None:
    touch(tmp_path, *(f"jpg/image_0000{number}.jpg" for number in (1, 2, 3)))
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([[1, 2, 1]], np.uint8)})
    write_split(tmp_path / "vgg_flower_splits.json", train=[listed[0]], test=[listed[1]])
    table = read_layout(tmp_path, "vgg-flower").table
    assert table["label"].to_pylist() == labels
    assert table["split"].to_pylist() == ["train", "test", "train"]
    savemat(tmp_path / "imagelabels.mat", {"other": [1]})
    with pytest.raises(InputError, match=r"imagelabels\.mat cannot be read .*MATLAB"):
        read_layout(tmp_path, "vgg-flower")


def fungi(folder: Path, name: str, images: Mapping[int, int]) -> None:
    categories = [{"id": 0, "name": "Abortiporus biennis"}, {"id": 15, "name": "Pluteus umbrosus "}]
    content = {
        "images": [{"id": image, "file_name": f"images/{image}.jpg"} for image in images],
        "annotations": [{"image_id": image, "category_id": category} for image, category in images.items()],
        "categories": categories,
    }
    write_json(folder / name, content)
    touch(folder, *(f"images/{image}.jpg" for image in images))


def test_fungi(tmp_path: Path) -> None:
    fungi(tmp_path, "train.json", {1: 0, 2: 15})
    fungi(tmp_path, "val.json", {3: 15})
    classes = {"train": ["0000.Abortiporus biennis"], "test": ["0015.Pluteus umbrosus "]}
    write_split(tmp_path / "fungi_splits.json", **classes)
    table = read_layout(tmp_path, "fungi").table
    assert table["item"].to_pylist() == ["images/1.jpg", "images/2.jpg", "images/3.jpg"]
    assert table["split"].to_pylist() == ["train", "test", "test"]
    write_json(tmp_path / "val.json", {"images": [{"id": 9, "file_name": "x"}], "annotations": [], "categories": []})
    with pytest.raises(InputError, match=r"val\.json: expected images, annotations and categories .* none for 9"):
        read_layout(tmp_path, "fungi")


def test_imagenet_by_the_leaves_of_the_published_graphs(tmp_path: Path) -> None:
    touch(tmp_path, "n01440764/a.JPEG", "n01443537/b.JPEG", "n02000000/c.JPEG")
    above = {"wn_id": "n01439121", "words": "cyprinid", "children_ids": ["n01440764", "n01443537"]}

    def leaf(synset: str, words: str) -> dict[str, Any]:
        return {"wn_id": synset, "words": words, "children_ids": []}

    graphs = {
        "TRAIN": [above, leaf("n01440764", "tench"), leaf("n01443537", "goldfish")],
        "VALID": [],
        "TEST": [leaf("n02000000", "thing")],
    }
    write_json(tmp_path / "ilsvrc_2012_dataset_spec.json", {"name": "ilsvrc_2012", "split_subgraphs": graphs})
    assert splits(tmp_path, "ilsvrc-2012") == {"n01440764": "train", "n01443537": "train", "n02000000": "test"}
    assert read_layout(tmp_path, "ilsvrc-2012").class_names["n01440764"] == "tench"


def test_omniglot_by_the_published_rule(tmp_path: Path) -> None:
    """Seven alphabets with 1 to 7 characters: the five smallest are for validation."""
    for characters in range(1, 8):
        names = [f"images_background/A{characters}/character{k:02}/1.png" for k in range(characters)]
        touch(tmp_path, *names)
    touch(tmp_path, "images_evaluation/Z/character01/2.png")
    table = read_layout(tmp_path, "omniglot").table
    of_alphabet = dict(zip(table["alphabet"].to_pylist(), table["split"].to_pylist(), strict=True))
    assert of_alphabet == {**{f"A{n}": "val" for n in range(1, 6)}, "A6": "train", "A7": "train", "Z": "test"}
    assert table["label"][0].as_py() == "A1/character00"
    touch(tmp_path, "images_background/A1/loose.png")
    with pytest.raises(InputError, match=r"'images_background/A1/loose\.png': expected images_background/ALPHABET"):
        read_layout(tmp_path, "omniglot")


def test_traffic_signs_are_all_for_testing(tmp_path: Path) -> None:
    folder = "Final_Training/Images"
    touch(
        tmp_path, f"{folder}/00000/00001_00007.ppm", f"{folder}/00042/00001_00000.ppm", f"{folder}/00000/GT-00000.csv"
    )
    table = read_layout(tmp_path, "traffic-sign").table
    assert table["split"].to_pylist() == ["test", "test"]
    assert table["source"].to_pylist() == ["00000/00001", "00042/00001"]


def test_drawings_are_made_of_the_publishers_arrays(tmp_path: Path) -> None:
    drawings = np.arange(3 * 784).reshape(3, 784).astype(np.uint8)
    for name in ("cat", "hot dog"):
        np.save(tmp_path / f"{name}.npy", drawings)
    write_split(tmp_path / "quickdraw_splits.json", train=["cat"], test=["hot dog"])
    with pytest.raises(InputError, match=r"holds arrays, expected images: python -m .*quickdraw"):
        read_layout(tmp_path, "quickdraw")
    command = [sys.executable, "-m", "shotproof.catalog.layouts.quickdraw", str(tmp_path), "2"]
    subprocess.run(command, check=True)
    catalog = read_layout(tmp_path, "quickdraw")
    assert catalog.items == ["cat/000000.png", "cat/000001.png", "hot dog/000000.png", "hot dog/000001.png"]
    with Image.open(catalog.paths[3]) as drawing:
        np.testing.assert_array_equal(np.asarray(drawing).ravel(), drawings[1])


def test_coco_cuts_the_objects_out(tmp_path: Path) -> None:
    (tmp_path / "train2017").mkdir()
    Image.new("RGB", (100, 60), (0, 0, 255)).save(tmp_path / "train2017" / "000000000007.jpg")
    annotations = [
        {"id": 1, "image_id": 7, "category_id": 2, "bbox": [10.0, 20.0, 31.0, 41.0]},
        {"id": 5, "image_id": 7, "category_id": 3, "bbox": [0.0, 0.0, 10.0, 10.0]},
        {"id": 6, "image_id": 7, "category_id": 3, "bbox": [200.0, 0.0, 1.0, 1.0]},  # outside of the picture
    ]
    categories = [{"id": 2, "name": "bicycle"}, {"id": 3, "name": "cat"}]
    listing = tmp_path / "annotations" / "instances_train2017.json"
    write_json(listing, {"annotations": annotations, "categories": categories})
    write_split(tmp_path / "mscoco_splits.json", valid=["cat"], test=["bicycle"])
    with pytest.raises(InputError, match=r"crops does not exist: python -m shotproof\.catalog\.layouts\.mscoco"):
        read_layout(tmp_path, "mscoco")
    assert write_crops(tmp_path) == 2
    assert write_crops(tmp_path) == 0
    catalog = read_layout(tmp_path, "mscoco")
    assert catalog.table.select(["item", "label", "split", "source", "objects"]).to_pylist() == [
        {"item": "crops/1.jpg", "label": "bicycle", "split": "test", "source": "000000000007", "objects": 3},
        {"item": "crops/5.jpg", "label": "cat", "split": "val", "source": "000000000007", "objects": 3},
    ]
    assert catalog.record.notes["without_crop"] == 1
    # A box of 31 x 41 at (10, 20), enlarged by 1.2: from 6.4 and 15.4 to 43.6 and, cut off, 60.
    with Image.open(catalog.paths[0]) as crop:
        assert crop.size == (45 - 6, 60 - 15)


@pytest.mark.parametrize("name", TEN)
def test_each_is_declared(name: str) -> None:
    layout = layouts.make(name)
    assert layout.dataset
    assert layout.license
    assert "Meta-Dataset" in (layout.citation or "")
