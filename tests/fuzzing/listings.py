"""The listing files of published data sets: small folders in the form that each layout reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LAYOUTS = "layouts"
_SPLIT = json.dumps({"train": ["a"], "valid": [], "test": ["b"]})
_FUNGI = {
    "images": [{"id": 1, "file_name": "images/1.jpg"}, {"id": 2, "file_name": "images/2.jpg"}],
    "annotations": [{"image_id": 1, "category_id": 0}, {"image_id": 2, "category_id": 1}],
    "categories": [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}],
}
_LEAVES = [{"wn_id": name, "words": name, "children_ids": []} for name in ("n01440764", "n01443537")]
_GRAPHS = {"TRAIN": _LEAVES[:1], "VALID": [], "TEST": _LEAVES[1:]}
_OBJECTS = {
    "annotations": [{"id": k, "image_id": 7, "category_id": k, "bbox": [1.0, 2.0, 3.0, 4.0]} for k in (1, 2)],
    "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
}
_FRAMES = {"v-1.jpg": {"blur_issue": True, "object_bounding_box": {"x": 1, "y": 2, "w": 3, "h": 4}}}


@dataclass(frozen=True)
class Listed:
    """A data set: empty files of items, and the files that list them."""

    items: tuple[str, ...]
    listings: Mapping[str, str]


LISTED = {
    "mini-imagenet": Listed(
        ("images/1.jpg", "images/2.jpg", "images/3.jpg"),
        {f"{split}.csv": f"filename,label\n{k}.jpg,n{k}\n" for k, split in enumerate(("train", "val", "test"), 1)},
    ),
    "cub": Listed(
        ("images/a/1.jpg", "images/b/2.jpg"),
        {
            "images.txt": "1 a/1.jpg\n2 b/2.jpg\n",
            "classes.txt": "1 a\n2 b\n",
            "image_class_labels.txt": "1 1\n2 2\n",
            "train_test_split.txt": "1 1\n2 0\n",
            "bounding_boxes.txt": "1 1.0 2.5 30.0 40.0\n2 1.0 2.5 30.0 40.0\n",
            "parts/parts.txt": "1 left wing\n",
            "parts/part_locs.txt": "1 1 1.0 2.0 1\n2 1 1.0 2.0 0\n",
        },
    ),
    "aircraft": Listed(
        ("data/images/0000001.jpg", "data/images/0000002.jpg"),
        {
            "data/images_variant_trainval.txt": "0000001 a\n",
            "data/images_variant_test.txt": "0000002 b\n",
            "data/images_box.txt": "0000001 5 9 14 28\n0000002 1 1 2 3\n",
            "aircraft_splits.json": _SPLIT,
        },
    ),
    "fungi": Listed(
        ("images/1.jpg", "images/2.jpg"),
        {
            "train.json": json.dumps(_FUNGI),
            "val.json": json.dumps({**_FUNGI, "images": [], "annotations": []}),
            "fungi_splits.json": json.dumps({"train": ["0000.a"], "valid": [], "test": ["0001.b"]}),
        },
    ),
    "ilsvrc-2012": Listed(
        ("n01440764/1.JPEG", "n01443537/2.JPEG"),
        {"ilsvrc_2012_dataset_spec.json": json.dumps({"name": "ilsvrc_2012", "split_subgraphs": _GRAPHS})},
    ),
    "mscoco": Listed(
        ("crops/1.jpg", "crops/2.jpg"),
        {"annotations/instances_train2017.json": json.dumps(_OBJECTS), "mscoco_splits.json": _SPLIT},
    ),
    "vgg-flower": Listed(
        ("jpg/image_00001.jpg", "jpg/image_00002.jpg"), {"vgg_flower_splits.json": '{"train": [1, 2]}'}
    ),
    "orbit": Listed(("test/P1/bag/clean/v/v-1.jpg",), {"annotations/test/v.json": json.dumps(_FRAMES)}),
    "objectnet": Listed(
        ("images/a/1.png", "images/b/2.png"),
        {"mappings/folder_to_objectnet_label.json": json.dumps({"a": "A", "b": "B"})},
    ),
    "fsd50k": Listed(
        ("FSD50K.dev_audio/1.wav", "FSD50K.eval_audio/2.wav"),
        {
            "FSD50K.ground_truth/dev.csv": "fname,labels,mids,split\n1,Guitar,b,train\n",
            "FSD50K.ground_truth/eval.csv": "fname,labels,mids\n2,Dog,e\n",
        },
    ),
    "cifar-fs": Listed(
        ("data/a/1.png", "data/b/2.png", "data/c/3.png"),
        {f"splits/bertinetto/{split}.txt": f"{one}\n" for split, one in (("train", "a"), ("val", "b"), ("test", "c"))},
    ),
    "esc50": Listed(
        ("audio/1-7-A-0.wav", "audio/2-8-B-1.wav"),
        {
            "meta/esc50.csv": "filename,fold,target,category,esc10,src_file,take\n"
            "2-8-B-1.wav,2,1,rooster,False,0008,B\n1-7-A-0.wav,1,0,dog,True,7,A\n"
        },
    ),
    "urbansound8k": Listed(
        ("audio/fold5/100032-3-0-0.wav",),
        {
            "metadata/UrbanSound8K.csv": "slice_file_name,fsID,start,end,salience,fold,classID,class\n"
            "100032-3-0-0.wav,100032,0.0,0.317551,1,5,3,dog_bark\n"
        },
    ),
}


def write_listed(folder: Path) -> None:
    """Write all of them, each into a folder of its name."""
    from scipy.io import savemat

    for name, listed in LISTED.items():
        contents = {**dict.fromkeys(listed.items, ""), **listed.listings}
        for file, content in contents.items():
            path = folder / LAYOUTS / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    labels = folder / LAYOUTS / "vgg-flower" / "imagelabels.mat"  # stays as it is: SciPy does not survive every damage
    savemat(labels, {"labels": np.array([[1, 2]], np.uint8)})
