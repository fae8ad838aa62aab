"""The data that pinned calls are given."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa

import shotproof as sp
from tests.conftest import draw_data
from tests.context_data import mixtures

World = Literal["plain", "sources", "small class", "mixtures", "shapes", "masked"]


@cache
def world_of(world: World) -> tuple[sp.Catalog, sp.Attributes]:
    """A catalog and its attributes."""
    if world == "shapes":
        return shapes().catalog(), shapes().attributes()
    if world == "mixtures":
        return mixtures(), draw_data()[1]
    catalog, attributes = draw_data(items=60, source_of=2 if world in ("sources", "masked") else None)
    if world == "masked":
        catalog = sp.Catalog(catalog.table.append_column("mask", catalog.table.column("path")))
    if world == "small class":
        small = [item.startswith("class03/") and not item.endswith("0") for item in catalog.items]
        catalog = sp.Catalog(catalog.table.filter(pa.array(~np.array(small))))
    return catalog, attributes


@cache
def features_of(world: World, shape: tuple[int, ...] = (8,)) -> sp.Features:
    """Features by chance, in which classes stand a little apart."""
    table = world_of(world)[0].table
    labels = np.unique(table.column("label").to_pylist(), return_inverse=True)[1]
    random = np.random.default_rng(3)
    means = 0.6 * random.normal(size=(labels.max() + 1, *shape))
    values = means[labels] + random.normal(size=(len(labels), *shape))
    return sp.Features.from_array(table.column("item").to_pylist(), values)


@cache
def shapes() -> sp.worlds.ShapesWorld:
    """The world of shapes, of which there are pictures."""
    return sp.worlds.ShapesWorld(classes=8, items=40, size=32)
