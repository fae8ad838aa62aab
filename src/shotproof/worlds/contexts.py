"""A world of concepts in contexts: the concept is a dark shape, the context the plane behind it.

Every figure (a shape in a pose) is shown in every context and in none, as a recording is mixed with every background:
nothing but the context differs between such pictures, and the figure is their `source`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.draws import bits
from shotproof.errors import InputError
from shotproof.progress import progress
from shotproof.tables import whole_file
from shotproof.worlds import painter
from shotproof.worlds.glyphs import class_shape

CLEAN = "none"
# Neighbours differ in colour and in texture; the first six colours are all different.
CONTEXTS = tuple(
    (list(painter.BACKGROUNDS)[n % 6], list(painter.TEXTURES)[(n + n // 6) % 6])
    for n in range(len(painter.BACKGROUNDS) * len(painter.TEXTURES))
)

_POSE = 0  # what a random number is drawn for


@dataclass(frozen=True)
class ContextWorld:
    """`concepts` shapes with `figures` each, every one in `contexts` contexts and in none; `size` x `size` pixels."""

    concepts: int = 12
    contexts: int = 6
    figures: int = 30
    size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("concepts", 1), ("contexts", 1), ("figures", 1), ("size", 16)):
            if getattr(self, name) < least:
                raise InputError(f"world of contexts: {name} is {getattr(self, name)}, expected {least} or more")
        if self.contexts > len(CONTEXTS):
            raise InputError(f"world of contexts: {self.contexts} contexts, there are {len(CONTEXTS)}")

    def catalog(self, root: Path | None = None) -> Catalog:
        """The table of items, with `context` and `source`; draws no picture."""
        names = [" ".join(context) for context in CONTEXTS[: self.contexts]] + [CLEAN]
        labels = [class_shape(concept)[0] for concept in range(self.concepts)]
        rows = [
            (label, context, f"{label}/{figure:04d}")
            for label in labels
            for figure in range(self.figures)
            for context in names
        ]
        items = [f"{label}/{context}/{source.rpartition('/')[2]}" for label, context, source in rows]
        columns = {
            "item": items,
            "path": [f"{item}.png" for item in items],
            "label": [label for label, _, _ in rows],
            "split": ["all"] * len(rows),
            "context": [context for _, context, _ in rows],
            "source": [source for _, _, source in rows],
        }
        table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        return Catalog(table, root or Path(), {"made_by": {"world": "contexts", **asdict(self)}})

    def write(self, folder: str | Path) -> Catalog:
        """Draw every picture into concept folders with context folders in them, and return the catalog."""
        catalog = self.catalog(Path(folder))
        outlines = [class_shape(concept)[1] for concept in range(self.concepts)]
        planes = [*CONTEXTS[: self.contexts], ("#ffffff", "plain")]
        # One draw a part of the pose, as a share of its range: [concepts * figures, parts].
        figure, parts = np.arange(self.concepts * self.figures), np.arange(len(fields(painter.Pose)))
        random = bits(self.seed, _POSE, figure[:, None], parts)
        poses = ((random >> np.uint64(40)).astype(np.float64) / 2**24).tolist()
        with progress("drawing", len(catalog)) as advance:
            for number, path in enumerate(catalog.paths):
                figure_number, plane = divmod(number, len(planes))
                outline, pose = outlines[figure_number // self.figures], painter.Pose(*poses[figure_number])
                image = painter.paint_plain(outline, *planes[plane], "black", pose, self.size)
                with whole_file(path) as temporary:
                    image.save(temporary, format="png", compress_level=1)
                advance(1)
        return catalog
