"""World of shapes with planted shortcuts: the class is the shape, everything else is context, all words are known.

Each picture shows a class shape and one value of each context factor. The values are drawn independently of the class,
so that a classifier that uses them learns nothing useful; `correlation` ties them to the class.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import below, bits
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Checked, option
from shotproof.core.records import AttributesRecord, CatalogRecord, Maker, Source
from shotproof.core.spelling import write_call
from shotproof.worlds import painter
from shotproof.worlds.glyphs import class_shape

FACTORS: dict[str, tuple[str, ...]] = {
    "background": tuple(painter.BACKGROUNDS),
    "texture": tuple(painter.TEXTURES),
    "fill": tuple(painter.FILLS),
    "sticker": tuple(painter.STICKERS),
    "frame": tuple(painter.FRAMES),
}

# Purpose of a random draw, its first counter.
_VALUE, _TIED, _CLASS_VALUE, _POSE, _TRAINING = range(5)


@dataclass(frozen=True)
class ShapesWorld(Checked):
    """World of `classes` shapes with `items` pictures each, of `size` x `size` pixels; all else is random.

    With probability `correlation`, a factor has the value that its class prefers instead of a random one. With
    `train_classes`, that number of random classes form the split `train` and the others `test`; with 0, the only split
    is `all`. In all pictures of `shortcut_classes` of the training classes, factors have the values that their class
    prefers: a shortcut that a network may learn, and that is useless for the other classes. `tied` lists the factors to
    which this and `correlation` apply.

    Example:
        >>> world = ShapesWorld(classes=2, items=3)
        >>> len(world.catalog()), world.attributes().to_words()["polygon-3/0000"][0]
        (6, 'checked texture')
    """

    classes: int = option(20, least=1)
    items: int = option(60, least=1)
    size: int = option(64, least=16)
    seed: int = 0
    correlation: float = option(0.0, least=0, most=1)
    train_classes: int = option(0, least=0)
    shortcut_classes: int = option(0, least=0)
    tied: tuple[str, ...] = tuple(FACTORS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train_classes > self.classes:
            raise InputError(
                f"ShapesWorld: expected at most {self.classes} train_classes (the number of classes), "
                f"found {self.train_classes}"
            )
        if self.shortcut_classes > self.train_classes:
            raise InputError(
                f"ShapesWorld: expected at most {self.train_classes} shortcut_classes (the number of train_classes), "
                f"found {self.shortcut_classes}"
            )
        for name in self.tied:
            if name not in FACTORS:
                raise UnknownName("factor", name, FACTORS)

    def catalog(self, root: Path | None = None) -> Catalog:
        """Build the table of items, with a column per factor and paths relative to `root`, without drawing pictures."""
        labels = [class_shape(index)[0] for index in range(self.classes)]
        items = [f"{label}/{number:04d}" for label in labels for number in range(self.items)]
        columns: dict[str, pa.Array] = {
            "item": pa.array(items, pa.string()),
            "path": pa.array([f"{item}.png" for item in items], pa.string()),
            "label": pa.array(np.repeat(labels, self.items).tolist(), pa.string()),
            "split": pa.array(np.repeat(self._splits(), self.items).tolist(), pa.string()),
        }
        values = self._values().reshape(len(items), len(FACTORS))
        for column, (name, names) in zip(values.T, FACTORS.items(), strict=True):
            columns[name] = pa.array(np.asarray(names)[column].tolist(), pa.string())
        record = CatalogRecord("world of shapes", notes={"world": "shapes", **asdict(self)})
        return Catalog(pa.table(columns), root or Path(), record)

    def attributes(self) -> Attributes:
        """Return the true words of each item: the value of each factor, e.g. `blue background`, `heart sticker`."""
        catalog = self.catalog()
        rows = catalog.table.select(["item", *FACTORS]).to_pylist()
        words = {row["item"]: [f"{row[factor]} {factor}" for factor in FACTORS] for row in rows}
        truth = Maker("world", write_call("world", asdict(self)), asdict(self))
        sources = {"catalog": Source(catalog.digest, catalog.record.name)}
        return Attributes.from_words(words, AttributesRecord(sources=sources, detectors=(truth,)))

    def write(self, folder: str | Path, split: str | None = None) -> Catalog:
        """Draw the pictures of one split, or all, to one folder per class, and return their catalog."""
        full_catalog = self.catalog(Path(folder))
        catalog = full_catalog if split is None else full_catalog.in_split(split)
        poses = dict(zip(full_catalog.items, painter.draw_poses(self.seed, _POSE, len(full_catalog)), strict=True))
        outlines = dict(class_shape(index) for index in range(self.classes))
        painter.save_pictures(
            catalog.paths,
            (
                painter.paint(
                    outlines[row["label"]],
                    painter.Look(**{factor: row[factor] for factor in FACTORS}),
                    poses[row["item"]],
                    self.size,
                )
                for row in catalog.table.select(["item", "label", *FACTORS]).to_pylist()
            ),
        )
        return catalog

    def _values(self) -> npt.NDArray[np.int64]:
        """Draw the index of each item's value of each factor, [classes, items, factors]."""
        label, item, factor = np.ogrid[: self.classes, : self.items, : len(FACTORS)]
        choices = np.array([len(names) for names in FACTORS.values()])
        random_values = below(bits(self.seed, _VALUE, label, item, factor), choices)
        class_values = below(bits(self.seed, _CLASS_VALUE, label, factor), choices)
        class_probability = np.where(self._rank() < self.shortcut_classes, 1.0, self.correlation)
        probability = class_probability[:, None] * np.array([name in self.tied for name in FACTORS])
        is_tied = below(bits(self.seed, _TIED, label, item, factor), 2**30) < probability[:, None, :] * 2**30
        return np.where(is_tied, class_values, random_values)

    def _splits(self) -> list[str]:
        """Return the split of each class."""
        if not self.train_classes:
            return ["all"] * self.classes
        return ["train" if rank < self.train_classes else "test" for rank in self._rank().tolist()]

    def _rank(self) -> npt.NDArray[np.int64]:
        """Return the rank of each class in a random order, which begins with the training classes."""
        return np.argsort(np.argsort(bits(self.seed, _TRAINING, np.arange(self.classes))))
