"""The experiment that anybody would begin with on a folder of images or of sounds."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.core.whole_files import write_text
from shotproof.media.clip import SOUND_EXTENSIONS

_START = """\
# Made for {root}. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew. shotproof list and shotproof show tell what there is.

[catalog]
root = {root}
layout = "folder"

{attributes}[features]
encoders = ["{encoder}"]

[tasks]
{split}way = 5
shots = [1, 5]
query = 15
tasks = 600
seeds = [0]
samplers = {samplers}

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]

[output]
folder = "."
"""


def experiment_of_folder(root: Path, path: Path) -> None:
    """Write an experiment on a folder of class folders; one that is there already stays.

    Images get photometric attributes and FewSTAB's tasks. Sounds have no attributes yet, so their random tasks stand
    beside the hardest supports for the same queries.

    Args:
        root: the data's folder
        path: the experiment's file

    Raises:
        InputError: the folder has splits, and none is called test.
    """
    if path.exists():
        return
    catalog = read_layout(root, "folder")
    splits = catalog.splits
    if len(splits) > 1 and "test" not in splits:
        raise InputError(f"{root} has the splits {', '.join(splits)} and none called test: write an experiment file")
    kinds = Counter(file.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS for file in catalog.paths)
    sounds = kinds[True] > kinds[False]
    relative = os.path.relpath(root.resolve(), path.parent.resolve())
    text = _START.format(
        root=json.dumps(relative),
        split='split = "test"\n' if len(splits) > 1 else "",
        encoder="logmel" if sounds else "lite0",
        attributes="" if sounds else '[attributes]\ndetectors = ["photometric"]\n\n',
        samplers='["random", { name = "hardest", like = "random" }]' if sounds else '["random", "fewstab"]',
    )
    write_text(path, text)
