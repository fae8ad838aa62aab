"""The constraints of context tasks, written from their definition with plain sets and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from shotproof.tasks.taskset import TaskSet

Row = dict[str, Any]
Contexts = Mapping[str, str | None]
SETS = ("iid", "ood", "hard-ood", "clean")


def check_context(
    task: Sequence[Row],
    context: Contexts,
    items_of: Mapping[str, Sequence[str]],
    source: Contexts,
    sampler: str,
    clean_value: str | None,
) -> Iterator[tuple[str | None, str]]:
    """What a task breaks, as a class (None: the whole task) and a sentence.

    `context` and `source` are of all items, `items_of` the items of a class, `sampler` which of the
    sets it is of, `clean_value` the context that means none.
    """
    own = [row["attribute"] for row in task]
    if len(set(own)) < len(own):
        yield None, f"the support contexts {own} are not all different"
    supported = {source.get(item) or item for row in task for item in row["support"]}
    for row in task:
        for item in row["support"]:
            if context.get(item) != row["attribute"]:
                yield row["label"], f"support item '{item}' has context '{context.get(item)}', not '{row['attribute']}'"
        for item in row["query"]:
            if source.get(item) in supported:
                yield row["label"], f"query item '{item}' shares its source with a support item of the task"
        if row["attribute"] == clean_value:
            yield row["label"], f"the support has the context '{row['attribute']}', which means none"
        others = set(own) - {row["attribute"]}
        free = Counter(context[i] for i in items_of.get(row["label"], ()) if (source.get(i) or i) not in supported)
        asked = Counter(context.get(item) for item in row["query"])
        broken = _check_query(asked, free, row["attribute"], others, sampler, clean_value)
        yield from ((row["label"], message) for message in broken)


def check_matched(sets: Mapping[str, TaskSet]) -> Iterator[str]:
    """How the supports of task sets, by name, differ from those of the first, task by task; one sentence per set."""
    columns = ["task", "slot", "label", "support"]
    first, *rest = sets
    rows = sets[first].table.select(columns).to_pylist()
    for name in rest:
        for ours, theirs in zip_longest(sets[name].table.select(columns).to_pylist(), rows):
            if ours != theirs:
                at = (ours or theirs)["task"]
                yield f"{name} and {first} are not matched: task {at} differs in its classes or support items"
                break


def _check_query(
    asked: Counter[str | None],
    free: Counter[str | None],
    own: str,
    others: set[str],
    sampler: str,
    clean_value: str | None,
) -> Iterator[str]:
    """The contexts of a class's query items, by the definition of the set."""
    every: dict[str, set[str | None]] = {
        "iid": {own},
        "ood": {*free} - {own, clean_value, None},
        "hard-ood": {*others},
        "clean": {clean_value},
    }
    allowed = every[sampler]
    for context in sorted(set(asked) - allowed, key=str):
        yield f"{asked[context]} query items have the context '{context}', which {sampler} does not allow"
    for context in sorted(allowed, key=str):
        if sampler != "hard-ood" and asked[context] >= free[context]:
            continue  # it has no more; hard-ood makes no such allowance
        for rival in sorted(allowed, key=str):
            # The last round may give one more, but not to a stranger before another class's context.
            ahead = not (context in others and rival not in others)
            if asked[rival] > asked[context] + ahead:
                yield f"{asked[context]} query items have the context '{context}' and {asked[rival]} '{rival}': uneven"
