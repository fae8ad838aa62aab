"""ORBIT: videos of things that people who are blind have taken, with what is wrong with each frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import item_paths
from shotproof.catalog.layouts.published_splits import NAMES
from shotproof.core.errors import InputError
from shotproof.core.files import read_json

ANNOTATIONS = "annotations"
ISSUES = (
    "object_not_present_issue",
    "framing_issue",
    "viewpoint_issue",
    "blur_issue",
    "occlusion_issue",
    "overexposed_issue",
    "underexposed_issue",
)


@dataclass(frozen=True)
class OrbitLayout(Layout):
    """SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME.jpg of the benchmark, and `annotations/SPLIT/VIDEO.json` where it is there.

    The label is USER/OBJECT, `user` the collector, `context` the type (`clean` or `clutter`), `source` the video. Seven
    true/false columns say what is wrong with a frame (`blur_issue` and so on), empty where nothing is known: clutter
    videos only have `object_not_present_issue`. The split is by users, as published.
    """

    dataset = "ORBIT"
    about = "the ORBIT benchmark's folders: user, clean or clutter, video, and seven quality issues of frames"
    license = "CC BY 4.0"
    citation = "Massiceti et al., ORBIT: A Real-World Few-Shot Dataset for Teachable Object Recognition, ICCV 2021"

    def read(self, root: Path) -> Catalog:
        """The frames of all videos."""
        found, ignored = item_paths(root)
        paths = [path for path in found if not path.startswith(f"{ANNOTATIONS}/")]
        folders = [path.split("/")[:-1] for path in paths]
        for path, names in zip(paths, folders, strict=True):
            if len(names) != 5 or names[0] not in NAMES:
                raise InputError(
                    f"{root}: '{path}': expected SPLIT/USER/OBJECT/TYPE/VIDEO/FRAME, SPLIT train, validation or test"
                )
        issues = _issues(root, {(names[0], names[4]) for names in folders})
        stems = [Path(path).stem for path in paths]
        columns: dict[str, Any] = {
            "item": paths,
            "label": [f"{names[1]}/{names[2]}" for names in folders],
            "split": [NAMES[names[0]] for names in folders],
            "user": [names[1] for names in folders],
            "context": [names[3] for names in folders],
            "source": [names[4] for names in folders],
        }
        for issue in ISSUES:
            columns[issue] = pa.array([issues.get(stem, {}).get(issue) for stem in stems], pa.bool_())
        return sorted_catalog(columns, root, ignored_files=ignored)


def _issues(root: Path, videos: set[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """{frame: issues} of the videos that have annotations; frames without the ending of their files."""
    found: dict[str, dict[str, Any]] = {}
    for split, video in sorted(videos):
        path = root / ANNOTATIONS / split / f"{video}.json"
        if not path.is_file():
            continue
        content = read_json(path, str(path))
        if not isinstance(content, dict) or not all(isinstance(frame, dict) for frame in content.values()):
            raise InputError(f"{path}: expected what is wrong with each frame, by the frame's name")
        for frame, told in content.items():
            for issue in ISSUES:
                if not isinstance(told.get(issue), bool | None):
                    raise InputError(
                        f"{path}, {frame}: expected {issue} to be true, false or null, found {told[issue]!r}"
                    )
            found[Path(frame).stem] = told
    return found
