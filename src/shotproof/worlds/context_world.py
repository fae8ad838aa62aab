"""World of concepts in contexts: the concept is a dark shape, the context the plane behind it.

Each figure (a shape in a pose) is shown in every context and in none, just as a recording is mixed with every
background: such pictures differ only in their context, and the figure is their `source`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord
from shotproof.worlds import painter
from shotproof.worlds.glyphs import class_shape

CLEAN = "none"
# Neighbors differ in color and texture; the first six have different colors.
CONTEXTS = tuple(
    (list(painter.BACKGROUNDS)[n % 6], list(painter.TEXTURES)[(n + n // 6) % 6])
    for n in range(len(painter.BACKGROUNDS) * len(painter.TEXTURES))
)

_POSE = 0  # purpose of a random draw


@dataclass(frozen=True)
class ContextWorld(Checked):
    """World of `concepts` shapes with `figures` each, in `contexts` contexts and in none, as `size` x `size` pixels.

    Example:
        >>> ContextWorld(concepts=1, contexts=2, figures=1).catalog().items
        ['polygon-3/blue plain/0000', 'polygon-3/green striped/0000', 'polygon-3/none/0000']
    """

    concepts: int = option(12, least=1)
    contexts: int = option(6, least=1, most=len(CONTEXTS))
    figures: int = option(30, least=1)
    size: int = option(64, least=16)
    seed: int = 0

    def catalog(self, root: Path | None = None) -> Catalog:
        """Build the table of items, with `context` and `source`, without drawing pictures."""
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
        record = CatalogRecord("world of contexts", notes={"world": "contexts", **asdict(self)})
        return Catalog(table, root or Path(), record)

    def write(self, folder: str | Path) -> Catalog:
        """Draw all pictures to context folders within concept folders, and return the catalog."""
        catalog = self.catalog(Path(folder))
        outlines = [class_shape(concept)[1] for concept in range(self.concepts)]
        planes = [*CONTEXTS[: self.contexts], ("#ffffff", "plain")]
        poses = painter.draw_poses(self.seed, _POSE, self.concepts * self.figures)
        painter.save_pictures(
            catalog.paths,
            (
                painter.paint_plain(outlines[figure // self.figures], *plane, "black", pose, self.size)
                for figure, pose in enumerate(poses)
                for plane in planes
            ),
        )
        return catalog
