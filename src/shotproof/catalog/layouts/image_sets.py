"""Layouts of published image data sets, except those of Meta-Dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from shotproof.catalog.class_files import look_up_splits
from shotproof.catalog.layouts.published import (
    SPLIT_NAMES,
    SPLITS,
    Columns,
    Listing,
    Paths,
    PublishedLayout,
    class_folders,
)
from shotproof.core.errors import InputError
from shotproof.core.plain_values import typed
from shotproof.core.storage.files import is_regular, read_json, read_text

IMAGENET_LICENSE = "ImageNet terms of access: non-commercial research and education"
CIFAR_LICENSE = "not stated; published for research"
CIFAR_CITATION = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009 (images)"
SPLIT_FOLDERS = Paths(r"(?P<split>[^/]+)/(?P<label>[^/]+)/.+", "SPLIT/CLASS/IMAGE")


class CifarFsLayout(PublishedLayout):
    """`data/CLASS/` and `splits/bertinetto/train.txt`, `val.txt` and `test.txt`, one class per line, as published."""

    dataset = "CIFAR-FS"
    about = "data/CLASS/ beside splits/bertinetto/train.txt, val.txt and test.txt"
    license = CIFAR_LICENSE
    citation = (
        f"Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, ICLR 2019 (split); {CIFAR_CITATION}"
    )
    items = class_folders("data")

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the images of the classes that the three files list."""
        folder = root / "splits" / "bertinetto"
        split_by_label: dict[str, str] = {}
        for split in SPLITS:
            path = folder / f"{split}.txt"
            for label in read_text(path, str(path)).split():
                if label in split_by_label:
                    raise InputError(f"{path}: class '{label}' is also in {split_by_label[label]}.txt")
                split_by_label[label] = split
        columns, notes = super().columns(root)
        return columns | {"split": look_up_splits(columns["label"], split_by_label, folder)}, notes


def _numbered(names: Sequence[str], digits: int = 1) -> dict[str, str]:
    """Map the numbers in file names, from 1, to what they stand for."""
    return {f"{number:0{digits}}": name for number, name in enumerate(names, 1)}


_CHALLENGES = (
    *("resize", "underexposure", "overexposure", "gaussian blur", "contrast", "dirty lens 1", "dirty lens 2"),
    "salt and pepper",
)


class CureOrLayout(PublishedLayout):
    """Files named BACKGROUND_DEVICE_ORIENTATION_OBJECT_CHALLENGE_LEVEL.jpg, in any folders.

    The label is the object (`001` to `100`), the context the background; `orientation`, `device`, `challenge` and
    `level` are columns. There is no published split of the objects: the split is `all`.
    """

    dataset = "CURE-OR"
    about = "files named BACKGROUND_DEVICE_ORIENTATION_OBJECT_CHALLENGE_LEVEL.jpg, in any folders"
    license = "for research, by request to the publisher (OLIVES, Georgia Institute of Technology)"
    citation = (
        "Temel, Lee and AlRegib, CURE-OR: Challenging Unreal and Real Environments for Object Recognition, ICMLA 2018"
    )
    items = Paths(
        r"(?:.*/)?(?P<context>[1-5])_(?P<device>[1-5])_(?P<orientation>[1-5])_(?P<label>\d{3})"
        r"_(?P<challenge>0[1-9]|1[0-8])_(?P<level>[0-5])\.\w+",
        "a name such as 1_3_2_017_05_4.jpg (background, device, orientation, object, challenge, level)",
        values={
            "context": _numbered(("white", "texture living room", "texture kitchen", "3d living room", "3d office")),
            "device": _numbered(("iPhone 6s", "HTC One X", "LG Leon", "Logitech C920", "Nikon D80")),
            "orientation": _numbered(("front", "left", "back", "right", "top")),
            "challenge": _numbered(
                ("none", *_CHALLENGES, "grayscale", *(f"grayscale {name}" for name in _CHALLENGES)), digits=2
            ),
            "level": {str(level): level for level in range(6)},
        },
    )


class Fc100Layout(PublishedLayout):
    """Folders `train`, `val` and `test` with class folders in them: the published split by superclasses."""

    dataset = "FC100"
    about = "train, val and test folders with class folders in them"
    license = CIFAR_LICENSE
    citation = (
        "Oreshkin et al., TADAM: Task Dependent Adaptive Metric for Improved Few-Shot Learning, NeurIPS 2018 (split); "
        f"{CIFAR_CITATION}"
    )
    items, splits = SPLIT_FOLDERS, SPLITS


class MetaCoCoLayout(PublishedLayout):
    """`concept/context/image`, optionally below split folders `train`, `val` and `test`.

    Without these, the concepts are split by the published rule: of the 100 concepts, sorted by number of samples, the
    first 64 are for training, the next 20 for testing, and the last 16 for validation.
    """

    dataset = "MetaCoCo"
    about = "concept folders with context folders in them (MetaCoCo), split 64/20/16 by size"
    citation = "Zhang et al., MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation, ICLR 2024"
    items = Paths(r"(?P<label>[^/]+)/(?P<context>[^/]+)/.+", "concept/context/image")

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the items, each with its concept as label and its context."""
        columns, notes = super().columns(root)
        if set(columns["label"]) <= set(SPLITS):
            with_splits = Paths(rf"(?P<split>[^/]+)/{self.items.pattern}", "split/concept/context/image")
            return with_splits.read(root)
        split_by_label = published_split(columns["label"])
        return columns | {"split": [split_by_label[label] for label in columns["label"]]}, notes


def published_split(concepts: Sequence[str]) -> dict[str, str]:
    """Split concepts by number of samples, then by name, given the concept of each sample; return {concept: split}.

    If there are not 100 concepts, 64% are for training and 20% for testing, rounded, and the rest for validation.
    """
    sizes = Counter(concepts)
    ranked = sorted(sizes, key=lambda concept: (-sizes[concept], concept))
    train, test = ((share * len(ranked) + 50) // 100 for share in (64, 84))
    return {
        concept: "train" if rank < train else "test" if rank < test else "val" for rank, concept in enumerate(ranked)
    }


class MiniImageNetLayout(PublishedLayout):
    """`train.csv`, `val.csv` and `test.csv` (columns filename, label) and the folder `images`."""

    dataset = "miniImageNet"
    about = "train.csv, val.csv and test.csv (filename, label) beside an images folder"
    license = IMAGENET_LICENSE
    citation = (
        "Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016 (data set); "
        "Ravi and Larochelle, Optimization as a Model for Few-Shot Learning, ICLR 2017 (split)"
    )
    items = Listing("{split}.csv", "images/{filename}", {"label": "label"}, each=("split", SPLITS))


class ObjectNetLayout(PublishedLayout):
    """`images/CLASS/` and, for the classes' names, optionally `mappings/folder_to_objectnet_label.json`.

    All classes are for testing. Rotations, backgrounds and viewpoints of individual images are not published. Images
    keep their red border of one pixel.
    """

    dataset = "ObjectNet"
    about = "images/CLASS/ and mappings/folder_to_objectnet_label.json; for testing alone"
    license = "CC BY 4.0, with the conditions that nothing is trained on it and that copies keep their red border"
    citation = (
        "Barbu et al., ObjectNet: A Large-Scale Bias-Controlled Dataset for Pushing the Limits of Object Recognition "
        "Models, NeurIPS 2019"
    )
    items, splits = class_folders("images"), ("test",)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the images of all classes, with the classes' names."""
        columns, notes = super().columns(root)
        mapping = root / "mappings" / "folder_to_objectnet_label.json"
        if is_regular(mapping):
            names = typed(read_json(mapping, str(mapping)), Mapping[str, str], str(mapping)) or {}
            unnamed = next((label for label in columns["label"] if label not in names), None)
            if unnamed is not None:
                raise InputError(f"{mapping} has no name for the folder '{unnamed}'")
            columns["name"] = [names[label] for label in columns["label"]]
        return columns, notes


ORBIT_ISSUES = (
    *("object_not_present_issue", "framing_issue", "viewpoint_issue", "blur_issue", "occlusion_issue"),
    *("overexposed_issue", "underexposed_issue"),
)


class OrbitLayout(PublishedLayout):
    """SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME.jpg of the benchmark, and optionally `annotations/SPLIT/VIDEO.json`.

    The label is USER/OBJECT, `user` the collector, `context` the type (`clean` or `clutter`), `source` the video. Seven
    true/false columns hold the quality issues of a frame (`blur_issue` and so on), empty if nothing is known: clutter
    videos only have `object_not_present_issue`. The split is by users, as published.
    """

    dataset = "ORBIT"
    about = "the ORBIT benchmark's folders: user, clean or clutter, video, and seven quality issues of frames"
    license = "CC BY 4.0"
    citation = "Massiceti et al., ORBIT: A Real-World Few-Shot Dataset for Teachable Object Recognition, ICCV 2021"
    items = Paths(
        r"(?P<split>train|val|valid|validation|test)/(?P<label>(?P<user>[^/]+)/[^/]+)/(?P<context>[^/]+)"
        r"/(?P<source>[^/]+)/[^/]+",
        "SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME, SPLIT train, validation or test",
        values={"split": SPLIT_NAMES},
    )

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the frames of all videos, with the quality issues of each."""
        columns, notes = super().columns(root)
        videos = {(item.partition("/")[0], item.split("/")[4]) for item in columns["item"]}
        issues = _read_issues(root, sorted(videos))
        frames = [Path(item).stem for item in columns["item"]]
        for issue in ORBIT_ISSUES:
            columns[issue] = pa.array([issues.get(frame, {}).get(issue) for frame in frames], pa.bool_())
        return columns, notes


def _read_issues(root: Path, videos: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Read {frame: issues} of the videos that have annotations; frames are named without their extension."""
    issues: dict[str, dict[str, Any]] = {}
    for split, video in videos:
        path = root / "annotations" / split / f"{video}.json"
        if not is_regular(path):
            continue
        content = read_json(path, str(path))
        if not isinstance(content, dict) or not all(isinstance(frame, dict) for frame in content.values()):
            raise InputError(f"{path}: expected the issues of each frame in a table under the frame's name")
        for frame, frame_issues in content.items():
            for issue in ORBIT_ISSUES:
                if not isinstance(frame_issues.get(issue), bool | None):
                    raise InputError(
                        f"{path}, {frame}: expected {issue} to be true, false or null, found {frame_issues[issue]!r}"
                    )
            issues[Path(frame).stem] = frame_issues
    return issues


class TieredImageNetLayout(PublishedLayout):
    """`train`, `val` and `test`, each with one folder per class (ImageNet's synset names)."""

    dataset = "tieredImageNet"
    about = "train, val and test folders with class folders in them"
    license = IMAGENET_LICENSE
    citation = (
        "Ren et al., Meta-Learning for Semi-Supervised Few-Shot Classification, ICLR 2018 (split); "
        "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015 (images)"
    )
    items, splits = SPLIT_FOLDERS, SPLITS
