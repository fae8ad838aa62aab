from __future__ import annotations

import numpy as np
import pytest

from shotproof.evaluation.batches import TaskArrays
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
