"""World of scenes: drawn animals in drawn places. The class is the animal, the background is context.

Twelve animals, two per place, are for training, in all places or only at home, where the background gives them away.
Eight others are for testing, in all places: recognizing a place does not help to recognize them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image, ImageDraw

from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import bits, uniform
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord
from shotproof.worlds.drawings import ANIMALS, PLACES, THINGS, Pen, Stance
from shotproof.worlds.painter import save_pictures

HOMES = {
    **{"sheep": "meadow", "goat": "meadow", "swan": "water", "crocodile": "water", "bear": "snow", "penguin": "snow"},
    **{"deer": "forest", "fox": "forest", "camel": "sand", "turtle": "sand", "mouse": "city", "pigeon": "city"},
}
BACKGROUND = "background"  # the column with the place

_OVERSIZE = 3  # pictures are drawn larger and then reduced, which smooths the edges
_ANIMAL, _PLACE = range(2)  # purpose of a random draw


@dataclass(frozen=True)
class ScenesWorld(Checked):
    """World with `items` pictures of each animal per place, of `size` x `size` pixels; all else is random.

    For training animals, the share `at_home` of the pictures in other places is moved to the animal's own place.

    Example:
        >>> catalog = ScenesWorld(items=1).catalog()
        >>> catalog.splits, catalog.in_split("test").items[0]
        (['test', 'train'], 'cow/meadow/0000')
    """

    items: int = option(18, least=1)
    size: int = option(96, least=16)
    at_home: float = option(0.0, least=0, most=1)
    seed: int = 0

    def catalog(self, root: Path | None = None) -> Catalog:
        """Build the table of items, with the column `background`, without drawing pictures."""
        rows = [
            (f"{animal}/{place}/{number:04d}", animal, place)
            for animal in ANIMALS
            for place, count in self._count_by_place(animal).items()
            for number in range(count)
        ]
        columns = {
            "item": [item for item, _, _ in rows],
            "path": [f"{item}.png" for item, _, _ in rows],
            "label": [animal for _, animal, _ in rows],
            "split": ["train" if animal in HOMES else "test" for _, animal, _ in rows],
            BACKGROUND: [place for _, _, place in rows],
        }
        table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        record = CatalogRecord("world of scenes", notes={"world": "scenes", **asdict(self)})
        return Catalog(table, root or Path(), record)

    def write(self, folder: str | Path, split: str | None = None) -> Catalog:
        """Draw the pictures of one split, or all, to place folders within animal folders; return their catalog."""
        catalog = self.catalog(Path(folder))
        catalog = catalog if split is None else catalog.in_split(split)
        save_pictures(catalog.paths, self.draw_pictures(catalog))
        return catalog

    def _count_by_place(self, animal: str) -> dict[str, int]:
        """Return the number of pictures of an animal in each place."""
        if animal not in HOMES:
            return dict.fromkeys(PLACES, self.items)
        elsewhere = round(self.items * (1 - self.at_home))
        home = self.items * len(PLACES) - elsewhere * (len(PLACES) - 1)
        return {place: home if place == HOMES[animal] else elsewhere for place in PLACES}

    def draw_pictures(self, catalog: Catalog) -> Iterator[Image.Image]:
        """Draw the pictures of a catalog's items, one after the other."""
        for row in catalog.table.select(["item", "label", BACKGROUND]).to_pylist():
            number = int(row["item"].rpartition("/")[2])
            animal, place = list(ANIMALS).index(row["label"]), list(PLACES).index(row[BACKGROUND])
            counters = (self.seed, animal, place, number)
            pose = uniform(bits(*counters, _ANIMAL, np.arange(7)), 24)
            thing_draws = uniform(bits(*counters, _PLACE, np.arange(THINGS)[:, None], np.arange(3)), 24)
            yield self._draw_picture(row["label"], row[BACKGROUND], pose.tolist(), thing_draws)

    def _draw_picture(self, animal: str, place: str, pose: list[float], thing_draws: np.ndarray) -> Image.Image:
        across, down, scale, side, *stance = pose
        canvas = self.size * _OVERSIZE
        image = Image.new("RGB", (canvas, canvas))
        draw = ImageDraw.Draw(image)
        PLACES[place](Pen(draw, (0, 0), canvas), thing_draws)
        feet = (canvas * (0.5 + 0.16 * (across - 0.5)), canvas * (0.86 + 0.1 * (down - 0.5)))
        size = canvas * (0.3 + 0.08 * (scale - 0.5))
        ANIMALS[animal](Pen(draw, feet, size, flip=1 if side < 0.5 else -1), Stance(*stance))
        return image.reduce(_OVERSIZE)
