"""A made-up run's folder for tests of the explorer: its task sets, results, catalog and attributes as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from tests.report_files import ATTRIBUTES, LABELS, make_experiment


def write_run(
    folder: Path, labels: Sequence[str] = LABELS, attributes: Sequence[str] = ATTRIBUTES, encoder: str = "pixels"
) -> Path:
    """Random and FewSTAB tasks of 1 and 2 shots with two methods on two encoders; contexts are by item."""
    results, tasks, catalog = make_experiment(folder, labels, attributes, encoder)
    contexts = pa.array([("rain", "sun", None)[row % 3] for row in range(len(catalog))], pa.string())
    Catalog(catalog.table.append_column("context", contexts), folder).write(folder / "catalog.parquet")
    random = np.random.default_rng(0)
    words = {item: [word for word in attributes if random.random() < 0.5] for item in catalog.items}
    Attributes.from_words(words).write(folder / "attributes.parquet")
    for number, task_set in enumerate(tasks):
        task_set.write(folder / f"tasks-{number}.parquet")
    for number, result in enumerate(results):
        result.write(folder / f"results-{number}.parquet")
    return folder
