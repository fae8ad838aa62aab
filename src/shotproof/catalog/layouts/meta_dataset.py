"""Layouts of Meta-Dataset's data sets, with its splits, except `mscoco` and `quickdraw`, which need a conversion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shotproof.catalog.class_files import look_up_splits
from shotproof.catalog.layout import require_files
from shotproof.catalog.layouts.cub import BOX, ID, TEXT, CubLayout, Records, cub_columns
from shotproof.catalog.layouts.image_sets import IMAGENET_LICENSE
from shotproof.catalog.layouts.published import (
    SPLIT_CITATION,
    SPLIT_NAMES,
    Columns,
    Paths,
    PublishedLayout,
    SplitFileLayout,
    class_folders,
    read_class_lists,
)
from shotproof.core.errors import InputError, first_line
from shotproof.core.storage.files import field, read_json, require_file


class AircraftLayout(SplitFileLayout):
    """`data/` of FGVC-Aircraft: images, `images_variant_trainval.txt`, `images_variant_test.txt`, `images_box.txt`.

    Labels are the variants; boxes become columns as in `cub`. Meta-Dataset crops images to their boxes, which removes a
    strip of 20 pixels with the photographer's name; here, images are not cropped.
    """

    dataset = "Aircraft"
    about = "the data folder of FGVC-Aircraft, with boxes, and Meta-Dataset's aircraft_splits.json"
    license = "non-commercial research"
    citation = f"Maji et al., Fine-Grained Visual Classification of Aircraft, arXiv 1306.5151, 2013; {SPLIT_CITATION}"
    split_name = "aircraft_splits.json"
    test_size = (15, 1_500)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the images that the two listings name."""
        read = partial(Records, "the data folder of FGVC-Aircraft")
        columns: Columns = {name: [] for name in ("item", "label", *BOX)}
        images: list[str] = []
        for name in ("images_variant_trainval.txt", "images_variant_test.txt"):
            listing = read(root / "data" / name, {"image": TEXT, "variant": TEXT})
            items = [f"data/images/{image}.jpg" for image in listing.columns["image"]]
            require_files(root, items, listing.path, first_line=1)
            columns["item"] += items
            columns["label"] += listing.columns["variant"]
            images += listing.columns["image"]
        edges = ("left", "top", "right", "bottom")  # counted from 1; the last two are inside
        boxes = read(root / "data" / "images_box.txt", {"image": TEXT, **dict.fromkeys(edges, ID)})
        for image in images:
            left, top, right, bottom = (boxes.of(edge, image) for edge in edges)
            for side, value in zip(BOX, (left - 1, top - 1, right - left + 1, bottom - top + 1), strict=True):
                columns[side].append(value)
        return columns, {}


class CuBirdsLayout(SplitFileLayout):
    """The official CUB_200_2011 folder with Meta-Dataset's split, `cu_birds_splits.json`; columns as in `cub`."""

    dataset = "CU Birds"
    about = "the official CUB_200_2011 folder with Meta-Dataset's cu_birds_splits.json"
    license = CubLayout.license
    citation = f"{CubLayout.citation}; {SPLIT_CITATION}"
    split_name = "cu_birds_splits.json"
    test_size = (30, 1_770)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the items that `images.txt` lists."""
        return cub_columns(root), {}


class DtdLayout(SplitFileLayout):
    """`images/TEXTURE/` and Meta-Dataset's `dtd_splits.json`."""

    dataset = "DTD"
    about = "images/TEXTURE/ of the Describable Textures, and Meta-Dataset's dtd_splits.json"
    license = "for research"
    citation = f"Cimpoi et al., Describing Textures in the Wild, CVPR 2014; {SPLIT_CITATION}"
    items = class_folders("images")
    split_name = "dtd_splits.json"
    test_size = (7, 840)


class FungiLayout(SplitFileLayout):
    """`train.json` and `val.json` of the FGVCx challenge, the images that they list, and `fungi_splits.json`.

    Labels are spelled as in Meta-Dataset, `0015.Agaricus moelleri`: some species have two numbers.
    """

    dataset = "Fungi"
    about = "train.json and val.json of FGVCx Fungi with their images, and Meta-Dataset's fungi_splits.json"
    license = "terms of the FGVCx Fungi challenge, for research"
    citation = f"Schroeder and Cui, FGVCx Fungi Classification Challenge, 2018; {SPLIT_CITATION}"
    split_name = "fungi_splits.json"
    test_size = (200, 13_463)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the images of both listings."""
        columns: Columns = {"item": [], "label": []}
        for name in ("train.json", "val.json"):
            listing = root / name
            content = read_json(listing, f"the listing of the images {listing}")
            try:
                categories, annotations, images = (
                    field(content, part, list) for part in ("categories", "annotations", "images")
                )
                names = {
                    category["id"]: f"{field(category, 'id', int):04}.{field(category, 'name', str)}"
                    for category in categories
                }
                category = {
                    field(annotation, "image_id", int): field(annotation, "category_id", int)
                    for annotation in annotations
                }
                files = {field(image, "id", int): field(image, "file_name", str) for image in images}
                columns["label"] += [names[category[image]] for image in files]
            except (KeyError, TypeError) as error:
                raise InputError(
                    f"{listing}: expected images, annotations and categories in COCO's format, one annotation per "
                    f"image; found none for {error}"
                ) from error
            require_files(root, list(files.values()), listing, first_line=1)
            columns["item"] += files.values()
        return columns, {}


class IlsvrcLayout(SplitFileLayout):
    """One folder per synset (`n01440764/`) of ImageNet's training images, and Meta-Dataset's specification.

    The split is in `ilsvrc_2012_dataset_spec.json`: the leaves of the graphs of its three splits. `name` is the words
    of a synset in the specification. Images that are also in other data sets, which Meta-Dataset leaves out, are kept.
    """

    dataset = "ILSVRC-2012"
    about = "synset folders of ImageNet's training images, and Meta-Dataset's ilsvrc_2012_dataset_spec.json"
    license = IMAGENET_LICENSE
    citation = f"Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; {SPLIT_CITATION}"
    items = class_folders()
    split_name = "ilsvrc_2012_dataset_spec.json"

    def split_columns(self, path: Path, labels: Sequence[str]) -> Columns:
        """Read the split and the words of each synset from the leaves of the specification's graphs."""
        content = read_json(path, str(path))
        split_by_label: dict[str, str] = {}
        words: dict[str, str] = {}
        try:
            for split, nodes in field(content, "split_subgraphs", dict).items():
                for node in nodes:
                    if not field(node, "children_ids", list):
                        synset = field(node, "wn_id", str)
                        split_by_label[synset] = SPLIT_NAMES.get(split.lower(), split.lower())
                        words[synset] = field(node, "words", str) if "words" in node else synset
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: expected a specification with split_subgraphs") from error
        return {"split": look_up_splits(labels, split_by_label, path), "name": [words[label] for label in labels]}


class OmniglotLayout(PublishedLayout):
    """`images_background/` and `images_evaluation/`, each ALPHABET/CHARACTER/; labels are ALPHABET/CHARACTER.

    The split is Meta-Dataset's: the evaluation set is for testing, and the five alphabets of the background set with
    the fewest characters are for validation. Meta-Dataset inverts the drawings; here they are as published.
    """

    dataset = "Omniglot"
    about = "images_background and images_evaluation, split by alphabets as in Meta-Dataset"
    license = "MIT"
    citation = (
        "Lake, Salakhutdinov and Tenenbaum, Human-level Concept Learning through Probabilistic Program Induction, "
        f"Science 2015; {SPLIT_CITATION}"
    )
    items = Paths(
        r"images_(?P<split>background|evaluation)/(?P<label>(?P<alphabet>[^/]+)/[^/]+)/[^/]+",
        "images_background/ALPHABET/CHARACTER/ or images_evaluation/ALPHABET/CHARACTER/",
        values={"split": {"background": "train", "evaluation": "test"}},
    )
    test_size = (659, 13_180)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the drawings of all characters, and split the background set."""
        columns, notes = super().columns(root)
        characters: dict[str, set[str]] = defaultdict(set)
        rows = list(zip(columns["split"], columns["alphabet"], columns["label"], strict=True))
        for split, alphabet, label in rows:
            if split == "train":
                characters[alphabet].add(label)
        smallest = sorted(characters, key=lambda alphabet: (len(characters[alphabet]), alphabet))[:5]
        splits = ["val" if split == "train" and alphabet in smallest else split for split, alphabet, _ in rows]
        return columns | {"split": splits}, notes


class TrafficSignLayout(PublishedLayout):
    """`Final_Training/Images/00000/` to `00042/` of GTSRB; all classes are for testing, as in Meta-Dataset.

    `source` is the track: 30 frames of one sign.
    """

    dataset = "Traffic Signs"
    about = "Final_Training/Images/ of GTSRB, all 43 classes for testing as in Meta-Dataset"
    license = "not stated; published for research"
    citation = (
        "Stallkamp et al., The German Traffic Sign Recognition Benchmark, IJCNN 2011; "
        f"{SPLIT_CITATION.replace('(split)', '(all classes for testing)')}"
    )
    items = Paths(r"(?P<source>(?P<label>[^/]+)/[^/_]+)_[^/]+", "CLASS/TRACK_FRAME.ppm", ("Final_Training/Images",))
    splits = ("test",)
    test_size = (43, 39_209)


class VggFlowerLayout(SplitFileLayout):
    """`jpg/image_00001.jpg` and so on, `imagelabels.mat`, and Meta-Dataset's `vgg_flower_splits.json`.

    Labels are spelled as in the split: `090.canna lily`, or `090` if it has numbers only.
    """

    dataset = "VGG Flower"
    about = "jpg/ and imagelabels.mat of the 102 flowers, and Meta-Dataset's vgg_flower_splits.json"
    license = "not stated; published for research"
    citation = (
        "Nilsback and Zisserman, Automated Flower Classification over a Large Number of Classes, ICVGIP 2008; "
        f"{SPLIT_CITATION}"
    )
    split_name = "vgg_flower_splits.json"
    test_size = (16, 1_425)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the images that have a label, the number of their class."""
        from scipy.io import loadmat

        listing = root / "imagelabels.mat"
        require_file(listing, str(listing))
        try:
            numbers = np.asarray(loadmat(listing)["labels"]).ravel().astype(int)
        except Exception as error:  # SciPy raises errors of many kinds for a damaged file
            raise InputError(f"{listing} cannot be read as a MATLAB file with labels: {first_line(error)}") from error
        items = [f"jpg/image_{number:05}.jpg" for number in range(1, len(numbers) + 1)]
        require_files(root, items, listing, first_line=1)
        return {"item": items, "label": [f"{number:03}" for number in numbers]}, {}

    def split_columns(self, path: Path, labels: Sequence[str]) -> Columns:
        """Read the split of each class, and its label as spelled in the split."""
        split_by_label: dict[str, str] = {}
        label_by_number: dict[str, str] = {}
        for label, split in read_class_lists(path).items():
            number = label.partition(".")[0]
            if not number.isdecimal() or len(number) > 9:
                raise InputError(f"{path}: expected classes that begin with their number, found '{label}'")
            padded = f"{int(number):03}"
            label_by_number[padded] = label if "." in label else padded
            split_by_label[label_by_number[padded]] = split
        full_labels = [label_by_number.get(label, label) for label in labels]
        return {"label": full_labels, "split": look_up_splits(full_labels, split_by_label, path)}
