from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import context_statistics
from shotproof.core.errors import InputError


@pytest.fixture
def catalog() -> Catalog:
    rng = np.random.default_rng(0)
    labels = [f"c{n}" for n in rng.integers(0, 6, 300)]
    columns = {
        "item": [f"i{n:03d}" for n in range(300)],
        "path": [f"i{n:03d}.png" for n in range(300)],
        "label": labels,
        "split": ["train" if label < "c4" else "test" for label in labels],
        "context": [None if n == 9 else f"k{n}" for n in rng.integers(0, 10, 300)],
    }
    return Catalog(pa.table(columns))


def test_the_tables_are_what_plain_counting_gives(catalog: Catalog) -> None:
    found = context_statistics(catalog)
    rows = catalog.table.to_pylist()
    cells = Counter((row["label"], row["context"]) for row in rows if row["context"])
    assert {(c["concept"], c["context"]): c["items"] for c in found.cells.to_pylist()} == cells
    for size in found.sizes.to_pylist():
        part = [row for row in rows if size["split"] in ("all", row["split"])]
        assert size["items"] == len(part)
        assert size["concepts"] == len({row["label"] for row in part})
        assert size["contexts"] == len({row["context"] for row in part} - {None})
    assert [size["split"] for size in found.sizes.to_pylist()] == ["all", "test", "train"]
    items = Counter(row["label"] for row in rows)
    assert {c["concept"]: c["items"] for c in found.concepts.to_pylist()} == items
    for split in ("train", "test"):
        of_split = [c["items"] for c in found.concepts.to_pylist() if c["split"] == split]
        assert of_split == sorted(of_split, reverse=True)
    for context in found.contexts.to_pylist():
        counts = [count for (_, name), count in cells.items() if name == context["context"]]
        assert (context["concepts"], context["items"]) == (len(counts), sum(counts))
    assert found.without_context == sum(row["context"] is None for row in rows) > 0


def test_a_column_that_is_not_there_is_told_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="no column 'contexts' to take the contexts from: did you mean 'context'"):
        context_statistics(catalog, "contexts")
