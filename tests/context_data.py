"""Catalogs with contexts that tests make up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.tasks.sampler import Sampler, sample, samplers
from shotproof.tasks.taskset import TaskSet


def mixtures(classes: int = 6, recordings: int = 20, contexts: int = 4) -> Catalog:
    """Recordings of each class, each mixed with every context and left alone (`none`): a source has many items."""
    names = [f"context{k}" for k in range(contexts)] + ["none"]
    items = [f"c{c}/r{r:02d}/{name}" for c in range(classes) for r in range(recordings) for name in names]
    parts = [item.split("/") for item in items]
    return _catalog(items, [p[2] for p in parts], ["/".join(p[:2]) for p in parts])


def catalog_of_counts(
    counts: npt.NDArray[np.int64], source_of: int | None = None, rng: np.random.Generator | None = None
) -> Catalog:
    """So many items of class c in context k; with `source_of`, about so many items at random share a source."""
    items = [f"c{c}/k{k}/{i:02d}" for (c, k), count in np.ndenumerate(counts) for i in range(count)]
    sources = None
    if source_of is not None and rng is not None:
        sources = [f"s{number}" for number in rng.integers(0, max(len(items) // source_of, 1), len(items))]
    return _catalog(items, [item.split("/")[1] for item in items], sources)


def sample_context(
    catalog: Catalog, sampler: str | Mapping[str, Any] | Sampler = "context", **design: Any
) -> dict[str, TaskSet]:
    """The matched sets of a context sampler, by name."""
    sets = samplers.make(sampler).sets(catalog)
    return {name: sample(catalog, each, **design) for name, each in sets.items()}


def _catalog(items: list[str], contexts: list[str], sources: list[str] | None) -> Catalog:
    columns = {
        "item": items,
        "path": items,
        "label": [item.split("/")[0] for item in items],
        "split": ["all"] * len(items),
        "context": contexts,
    }
    if sources is not None:
        columns["source"] = sources
    return Catalog(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
