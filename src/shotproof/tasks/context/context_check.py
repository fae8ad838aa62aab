"""Check of the constraints of context tasks, written from their definition with plain sets and counts."""

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
    """Yield each broken constraint of a task, as a class (None: the whole task) and a sentence.

    Args:
        task: rows of the task; if supports have several contexts, these are in the column `support_contexts`
        context: context of every item
        items_of: items of each class
        source: source of every item
        sampler: name of the matched set
        clean_value: value that marks items without a context
    """
    has_several = "support_contexts" in task[0]
    allowed: list[set[str | None]] = [
        set(row["support_contexts"] or ()) if has_several else {row["attribute"]} for row in task
    ]
    if not has_several and len(set().union(*allowed)) < len(allowed):
        yield None, f"the support contexts {[row['attribute'] for row in task]} are not all different"
    support_sources = {source.get(item) or item for row in task for item in row["support"]}
    for row, class_contexts in zip(task, allowed, strict=True):
        for item in row["support"]:
            if context.get(item) not in class_contexts:
                yield row["label"], f"support item '{item}' has context '{context.get(item)}', not '{row['attribute']}'"
        for item in row["query"]:
            if source.get(item) in support_sources:
                yield row["label"], f"query item '{item}' shares its source with a support item of the task"
        if clean_value in class_contexts:
            yield row["label"], f"the support has no context ('{clean_value}')"
        items = items_of.get(row["label"], ())
        if has_several:
            available = Counter(context[item] for item in items)
            support_counts = Counter(context.get(item) for item in row["support"])
            messages = _check_even("support", support_counts, available, class_contexts, set())
            yield from ((row["label"], message) for message in messages)
        others = set().union(*allowed) - class_contexts
        unblocked = Counter(context[i] for i in items if (source.get(i) or i) not in support_sources)
        query_counts = Counter(context.get(item) for item in row["query"])
        messages = _check_query(query_counts, unblocked, class_contexts, others, sampler, clean_value, has_several)
        yield from ((row["label"], message) for message in messages)


def check_matched(sets: Mapping[str, TaskSet]) -> Iterator[str]:
    """Yield one sentence for each task set, by name, whose classes or supports differ from those of the first set."""
    columns = ["task", "slot", "label", "support"]
    first, *rest = sets
    first_rows = sets[first].table.select(columns).to_pylist()
    for name in rest:
        for row, first_row in zip_longest(sets[name].table.select(columns).to_pylist(), first_rows):
            if row != first_row:
                task = (row or first_row)["task"]
                yield f"{name} and {first} are not matched: task {task} differs in its classes or support items"
                break


def _check_query(
    query_counts: Counter[str | None],
    unblocked: Counter[str | None],
    class_contexts: set[str | None],
    others: set[str | None],
    sampler: str,
    clean_value: str | None,
    has_several: bool,
) -> Iterator[str]:
    """Check the contexts of a class's query items against the definition of the set."""
    contexts_of_set: dict[str, set[str | None]] = {
        "iid": class_contexts,
        "ood": {*unblocked} - class_contexts - {clean_value, None},
        "hard-ood": others,
        "clean": {clean_value},
    }
    allowed = contexts_of_set[sampler]
    for context in sorted(set(query_counts) - allowed, key=str):
        yield f"{query_counts[context]} query items have the context '{context}', which {sampler} does not allow"
    # If each class has one context, hard-ood requires enough items in each of the other classes' contexts.
    available = query_counts + Counter(allowed) if sampler == "hard-ood" and not has_several else unblocked
    yield from _check_even("query", query_counts, available, allowed, others)


def _check_even(
    side: str,
    counts: Counter[str | None],
    available: Counter[str | None],
    allowed: set[str | None],
    first: set[str | None],
) -> Iterator[str]:
    """Check that items are divided evenly between contexts, as far as these have them; `first` come first."""
    for context in sorted(allowed, key=str):
        if counts[context] >= available[context]:
            continue
        for other in sorted(allowed, key=str):
            # The last round may give one more, but other classes' contexts come before the rest.
            tolerance = not (context in first and other not in first)
            if counts[other] > counts[context] + tolerance:
                pair = f"{counts[context]} {side} items have the context '{context}' and {counts[other]} '{other}'"
                yield f"{pair}: uneven"
