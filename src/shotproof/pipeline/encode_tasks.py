"""Features of a catalog's items and of the changed items of task sets, which no file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import CHANGE, Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.catalog.usable_masks import require_usable_changes
from shotproof.comparison.numbers import listed
from shotproof.core.nouns import counted
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoder import Encoder
from shotproof.features.encoder import encode as encode_items
from shotproof.features.features import Features
from shotproof.tasks.changed import Variants
from shotproof.tasks.taskset import TaskSet


def encode(
    catalog: Catalog,
    encoder: str | Mapping[str, Any] | Encoder,
    *,
    tasks: TaskSet | Sequence[TaskSet] = (),
    on_error: OnError = "raise",
    runtime: Runtime | None = None,
) -> Features:
    """Compute the features of all items of a catalog, and of the changed items of task sets.

    Args:
        catalog: items to encode
        encoder: a spelling such as `hf:NAME(pooling='cls')`, a table such as {"name": "lite0", "maps": True}, or an
            encoder
        tasks: task sets drawn from the catalog whose changed items are encoded too, and all others that they may have
            if they are drawn again
        on_error: what to do with an item whose file cannot be read: `raise`, or `skip`, which leaves it out with a
            warning, and lists it in the record
        runtime: runtime settings: workers, device, batch size, and the cache, which stores features by content

    Returns:
        The features, in the order of the catalog, then of the changed items. Their `tally` has the number that were
        computed rather than cached.

    Raises:
        UnknownName: no encoder has this name.
        UnreadableItem: the file of an item cannot be read.
        Mismatch: the catalog lacks items of the task sets.
        InputError: an option is invalid, or the encoder does not support such items.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=2, items=3).write(tempfile.mkdtemp())
        >>> encode(catalog, "pixels(size=4)", runtime=sp.runtime(cache=None)).array.shape
        (6, 48)
        >>> random = sp.sample(catalog, "random", way=2, shot=1, query=1, tasks=1)
        >>> blurred = sp.sample(catalog, "changed(change='blur')", like=random)
        >>> features = encode(catalog, "pixels(size=4)", tasks=blurred, runtime=sp.runtime(cache=None))
        >>> features.array.shape
        (12, 48)
        >>> sp.evaluate(blurred, features, "ncc").methods
        ['ncc']
    """
    sets = [tasks] if isinstance(tasks, TaskSet) else list(tasks)
    items = with_changed_items(catalog, sets)
    if on_error == "raise" and items is not catalog:
        require_usable_changes(items, runtime=runtime)
    return encode_items(items, encoder, on_error=on_error, runtime=runtime)


def with_changed_items(catalog: Catalog, sets: Sequence[TaskSet]) -> Catalog:
    """Add the changed items of task sets to the catalog that they were drawn from.

    Args:
        catalog: items as they are
        sets: task sets; those without changed items add nothing
    """
    variants = [Variants.of(tasks, catalog) for tasks in sets if tasks.is_changed]
    if not variants:
        return catalog
    return with_changes(catalog, [(wanted.items, wanted.changes) for wanted in variants]).with_stamp_of(catalog)


def describe_changed_items(catalog: Catalog, note: str = "") -> str:
    """Count the changed items of a catalog in words, by change: `24 changed items: 12 each of blur and noise`.

    Args:
        catalog: items and changed items, from `with_changed_items`
        note: text after the number of all
    """
    spellings = catalog.table.column(CHANGE).drop_null()
    names = pc.if_else(
        pc.match_substring(spellings, "plate="), pc.replace_substring_regex(spellings, r"(?s)\(.*", ""), spellings
    )
    table = pa.table({"name": names}).group_by("name", use_threads=False).aggregate([("name", "count")])
    by_count: dict[int, list[str]] = {}
    for row in table.to_pylist():
        by_count.setdefault(row["name_count"], []).append(row["name"])
    parts = [
        f"{count:,}{' each' if len(same) > 1 else ''} of {listed(sorted(same))}"
        for count, same in sorted(by_count.items(), reverse=True)
    ]
    return f"{counted(len(spellings), 'changed item')}{note}: {'; '.join(parts)}"
