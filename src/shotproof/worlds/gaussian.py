"""Gaussian worlds: classes with random means, items around them, and so a truth that can be computed.

The distributions of a class are known, so the expected accuracy on new images of the same classes, and on new classes,
can be simulated as closely as one likes. Worlds are drawn many at a time, as tensors whose leading dimensions are free.
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
    """What classes draw their items from: means [..., d], and how often they show each word [..., families, words]."""

    means: Tensor
    shares: Tensor

    def at(self, *index: Tensor) -> Classes:
        """Some of them, by index into the leading dimensions."""
        return Classes(self.means[index], self.shares[index])


@dataclass(frozen=True)
class DrawnItems:
    """Items of classes: values [..., items, d], and which words each holds [..., items, families * words]."""

    values: Tensor
    held: Tensor

    def at(self, *index: Tensor | slice) -> DrawnItems:
        """Some of them, by index into the leading dimensions."""
        return DrawnItems(self.values[index], self.held[index])


@dataclass(frozen=True)
class GaussianWorld:
    """Class means are normal with standard deviation `separation`, items normal around them with 1, in each dimension.

    Each item holds one word of every family, as often as its class shows it, and each word moves the items that hold
    it by `pull` along an axis of its own: words are shortcuts that a task can plant.
    """

    dimensions: int = 8
    separation: float = 1.0
    families: int = 0
    words: int = 4
    pull: float = 1.0

    def draw_classes(self, shape: tuple[int, ...], generator: torch.Generator) -> Classes:
        """New classes, with the leading dimensions `shape`."""
        means = torch.randn(*shape, self.dimensions, generator=generator, device=generator.device)
        leaning = torch.randn(*shape, self.families, self.words, generator=generator, device=generator.device)
        return Classes(self.separation * means, torch.softmax(leaning / 2, dim=-1))

    def draw_items(self, classes: Classes, items: int, generator: torch.Generator) -> DrawnItems:
        """New items of each class."""
        shape, device = (*classes.means.shape[:-1], items), classes.means.device
        values = torch.randn(*shape, self.dimensions, generator=generator, device=device)
        values += classes.means.unsqueeze(-2)
        held = torch.zeros(*shape, self.families * self.words, dtype=torch.bool, device=device)
        for family in range(self.families):
            ends = classes.shares[..., family, :].cumsum(-1).unsqueeze(-2)
            uniform = torch.rand(*shape, 1, generator=generator, device=device)
            word = (uniform >= ends[..., :-1]).sum(-1, keepdim=True) + family * self.words
            held.scatter_(-1, word, True)
            values.scatter_add_(-1, word % self.dimensions, torch.full_like(values[..., :1], self.pull))
        return DrawnItems(values, held)

    def draw(self, classes: int, items: int, seed: int = 0) -> tuple[Catalog, Features, Attributes]:
        """A whole world, as what a catalog, an encoder and a detector would give.

        Args:
            classes: how many
            items: per class
            seed: which world

        Example:
            >>> catalog, features, attributes = GaussianWorld(families=2).draw(classes=6, items=20)
            >>> len(catalog), features.array.shape
            (120, (120, 8))
        """
        generator = torch.Generator().manual_seed(seed)
        return as_files(self.draw_items(self.draw_classes((classes,), generator), items, generator))


def as_files(items: DrawnItems) -> tuple[Catalog, Features, Attributes]:
    """One world, [classes, items, ...], as what a catalog, an encoder and a detector would give."""
    import pyarrow as pa

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.features.features import Features

    classes, count, _ = items.values.shape
    names = [f"class{c:03d}/item{i:04d}" for c in range(classes) for i in range(count)]
    columns = {"item": names, "path": names, "label": [name.split("/")[0] for name in names]}
    catalog = Catalog(pa.table({**columns, "split": ["test"] * len(names)}))
    features = Features.from_array(names, items.values.flatten(0, 1).cpu().numpy())
    held = items.held.flatten(0, 1).cpu()
    words = {
        name: [f"word{w:02d}" for w in row.nonzero().flatten().tolist()] for name, row in zip(names, held, strict=True)
    }
    return catalog, features, Attributes.from_words(words)
