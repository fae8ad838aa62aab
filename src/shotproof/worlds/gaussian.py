"""Gaussian worlds: classes with random means and items around them, so that the truth can be computed.

The distributions of the classes are known. The expected accuracy on new images of the same classes, and on new classes,
can therefore be simulated to any precision. Many worlds are drawn at once, as tensors with any leading dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.features.features import Features


@dataclass(frozen=True)
class Classes:
    """Distributions of classes: means [..., d], and the shares of items with each word [..., families, words]."""

    means: Tensor
    shares: Tensor

    def at(self, *index: Tensor) -> Classes:
        """Select classes by index into the leading dimensions."""
        return Classes(self.means[index], self.shares[index])


@dataclass(frozen=True)
class DrawnItems:
    """Items of classes: values [..., items, d], and whether they have each word [..., items, families * words]."""

    values: Tensor
    has_word: Tensor

    def at(self, *index: Tensor | slice) -> DrawnItems:
        """Select items by index into the leading dimensions."""
        return DrawnItems(self.values[index], self.has_word[index])


@dataclass(frozen=True)
class GaussianWorld:
    """World with normal class means of standard deviation `separation`, and items normal around them with 1.

    Each item has one word of every family, drawn with the shares of its class, and each word moves its items by `pull`
    along an axis of its own: words are shortcuts that a task can plant.
    """

    dimensions: int = 8
    separation: float = 1.0
    families: int = 0
    words: int = 4
    pull: float = 1.0

    def draw_classes(self, shape: tuple[int, ...], generator: torch.Generator) -> Classes:
        """Draw new classes, with the leading dimensions `shape`."""
        means = torch.randn(*shape, self.dimensions, generator=generator, device=generator.device)
        logits = torch.randn(*shape, self.families, self.words, generator=generator, device=generator.device)
        return Classes(self.separation * means, torch.softmax(logits / 2, dim=-1))

    def draw_items(self, classes: Classes, items: int, generator: torch.Generator) -> DrawnItems:
        """Draw new items of each class."""
        shape, device = (*classes.means.shape[:-1], items), classes.means.device
        values = torch.randn(*shape, self.dimensions, generator=generator, device=device)
        values += classes.means.unsqueeze(-2)
        has_word = torch.zeros(*shape, self.families * self.words, dtype=torch.bool, device=device)
        for family in range(self.families):
            ends = classes.shares[..., family, :].cumsum(-1).unsqueeze(-2)
            uniform = torch.rand(*shape, 1, generator=generator, device=device)
            word = (uniform >= ends[..., :-1]).sum(-1, keepdim=True) + family * self.words
            has_word.scatter_(-1, word, True)
            values.scatter_add_(-1, word % self.dimensions, torch.full_like(values[..., :1], self.pull))
        return DrawnItems(values, has_word)

    def draw(self, classes: int, items: int, seed: int = 0) -> tuple[Catalog, Features, Attributes]:
        """Draw a world as a catalog, features and attributes.

        Args:
            classes: number of classes
            items: number of items per class
            seed: random seed

        Example:
            >>> catalog, features, attributes = GaussianWorld(families=2).draw(classes=6, items=20)
            >>> len(catalog), features.array.shape
            (120, (120, 8))
        """
        generator = torch.Generator().manual_seed(seed)
        return as_files(self.draw_items(self.draw_classes((classes,), generator), items, generator))


def as_files(items: DrawnItems) -> tuple[Catalog, Features, Attributes]:
    """Convert the items of one world, [classes, items, ...], to a catalog, features and attributes."""
    import pyarrow as pa

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.features.features import Features

    classes, count, _ = items.values.shape
    names = [f"class{c:03d}/item{i:04d}" for c in range(classes) for i in range(count)]
    columns = {"item": names, "path": names, "label": [name.split("/")[0] for name in names]}
    catalog = Catalog(pa.table({**columns, "split": ["test"] * len(names)}))
    features = Features.from_array(names, items.values.flatten(0, 1).cpu().numpy())
    rows = items.has_word.flatten(0, 1).cpu()
    words = {
        name: [f"word{w:02d}" for w in row.nonzero().flatten().tolist()] for name, row in zip(names, rows, strict=True)
    }
    return catalog, features, Attributes.from_words(words)
