"""Layout of Quick Draw, with Meta-Dataset's split.

python -m shotproof.catalog.layouts.quickdraw FOLDER COUNT    # converts the published arrays to images, once
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from shotproof.catalog.layouts.published import SPLIT_CITATION, Columns, SplitFileLayout, class_folders
from shotproof.core.errors import InputError
from shotproof.core.storage.numpy_files import read_npy


class QuickdrawLayout(SplitFileLayout):
    """One folder of drawings per class, and Meta-Dataset's `quickdraw_splits.json`.

    It is published as one array of bitmaps per class, CLASS.npy; `python -m shotproof.catalog.layouts.quickdraw
    FOLDER COUNT` writes the first COUNT drawings of each as images.
    """

    dataset = "Quick Draw"
    about = "class folders of drawings made from the publisher's arrays, and Meta-Dataset's quickdraw_splits.json"
    license = "CC BY 4.0"
    citation = f"Jongejan et al., The Quick, Draw! A.I. Experiment, 2016; {SPLIT_CITATION}"
    items = class_folders()
    split_name = "quickdraw_splits.json"
    test_size = (52, None)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the drawings of all classes."""
        if root.is_dir() and next(root.glob("*.npy"), None) and not any(path.is_dir() for path in root.iterdir()):
            raise InputError(
                f"{root} holds arrays, expected images: python -m shotproof.catalog.layouts.quickdraw {root} "
                "1000 converts the first 1,000 of each class"
            )
        return super().columns(root)


def write_drawings(root: Path, count: int) -> int:
    """Write the first drawings of each CLASS.npy, [n, 784] from 0 to 255, as images into CLASS/, and count them."""
    from PIL import Image

    written = 0
    for array in sorted(root.glob("*.npy")):
        drawings = read_npy(array, str(array))
        if drawings.ndim != 2 or drawings.shape[1] != 784:
            raise InputError(f"{array}: expected bitmaps of 28 x 28 pixels, [n, 784], found {list(drawings.shape)}")
        (root / array.stem).mkdir(exist_ok=True)
        for number, drawing in enumerate(drawings[:count]):
            Image.fromarray(np.asarray(drawing, np.uint8).reshape(28, 28)).save(root / array.stem / f"{number:06}.png")
            written += 1
    return written


if __name__ == "__main__":
    write_drawings(Path(sys.argv[1]), int(sys.argv[2]))
