from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.core.errors import InputError
from shotproof.evaluation.batches import TaskArrays
from shotproof.features.features import Features
from tests.drawn_tasks import draw_task_set


@pytest.mark.parametrize("size", [1, 4, 100])
def test_every_task_is_in_one_batch_of_its_shape_with_its_own_items(size: int) -> None:
    tasks, features = draw_task_set(tasks=50)
    arrays = TaskArrays.of(tasks, features)
    vector = dict(zip(features.table.column("item").to_pylist(), features.array, strict=True))
    seen = []
    for shape, members in arrays.by_shape():
        for batch in arrays.batches(members, size):
            assert len(batch.tasks) <= size
            for position, task in enumerate(batch.tasks):
                rows = tasks.table.slice(tasks.starts[task], tasks.starts[task + 1] - tasks.starts[task]).to_pylist()
                assert [batch.way, batch.support.shape[1], batch.query.shape[1]] == shape.tolist()
                for part, entries, name in (
                    (arrays.support, batch.support, "support"),
                    (arrays.query, batch.query, "query"),
                ):
                    expected = np.stack([vector[item] for row in rows for item in row[name]])
                    np.testing.assert_array_equal(arrays.values[part.items[entries[position]]], expected)
                    slots = [row["slot"] for row in rows for _ in row[name]]
                    assert part.slot[entries[position]].tolist() == slots
            seen += batch.tasks.tolist()
    assert sorted(seen) == list(range(50))


def test_only_the_items_that_occur_are_kept() -> None:
    tasks, features = draw_task_set(tasks=1)
    used = {item for name in ("support", "query") for row in tasks.table.column(name).to_pylist() for item in row}
    assert len(TaskArrays.of(tasks, features).values) == len(used) < len(features)


@pytest.mark.parametrize(
    ("value", "dtype", "what"),
    [
        (np.nan, np.float32, "that is not finite"),
        (np.inf, np.float32, "that is not finite"),
        (-np.inf, np.float16, "that is not finite"),
        (-1e30, np.float32, r"above 1e\+15"),
    ],
)
def test_a_value_of_a_file_that_nobody_can_compute_with_is_told_with_its_item(
    value: float, dtype: type[np.floating[Any]], what: str
) -> None:
    tasks, features = draw_task_set(tasks=1)
    item = tasks.table.column("query")[0].as_py()[0]
    values = features.array.astype(dtype)
    values[features.table.column("item").to_pylist().index(item), 1] = value
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    broken = Features(pa.table({"item": features.table.column("item"), "feature": lists}))
    with pytest.raises(InputError, match=f"item '{item}' has a value {what}"):
        TaskArrays.of(tasks, broken)
