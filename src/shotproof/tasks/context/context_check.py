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

    Tasks with supports in several contexts have these in the column `support_contexts`.
    `context` and `source` are of all items, `items_of` the items of a class, `sampler` which of the
    sets it is of, `clean_value` the context that means none.
    """
    several = "support_contexts" in task[0]
    own: list[set[str | None]] = [set(row["support_contexts"] or ()) if several else {row["attribute"]} for row in task]
    if not several and len(set().union(*own)) < len(own):
        yield None, f"the support contexts {[row['attribute'] for row in task]} are not all different"
    supported = {source.get(item) or item for row in task for item in row["support"]}
    for row, mine in zip(task, own, strict=True):
        for item in row["support"]:
            if context.get(item) not in mine:
                yield row["label"], f"support item '{item}' has context '{context.get(item)}', not '{row['attribute']}'"
        for item in row["query"]:
            if source.get(item) in supported:
                yield row["label"], f"query item '{item}' shares its source with a support item of the task"
        if clean_value in mine:
            yield row["label"], f"the support has the context '{clean_value}', which means none"
        items = items_of.get(row["label"], ())
        if several:
            there = Counter(context[item] for item in items)
            shown = Counter(context.get(item) for item in row["support"])
            yield from ((row["label"], message) for message in _uneven("support", shown, there, mine, set()))
        others = set().union(*own) - mine
        free = Counter(context[i] for i in items if (source.get(i) or i) not in supported)
        asked = Counter(context.get(item) for item in row["query"])
        broken = _check_query(asked, free, mine, others, sampler, clean_value, several)
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
    own: set[str | None],
    others: set[str | None],
    sampler: str,
    clean_value: str | None,
    several: bool,
) -> Iterator[str]:
    """The contexts of a class's query items, by the definition of the set."""
    every: dict[str, set[str | None]] = {
        "iid": own,
        "ood": {*free} - own - {clean_value, None},
        "hard-ood": others,
        "clean": {clean_value},
    }
    allowed = every[sampler]
    for context in sorted(set(asked) - allowed, key=str):
        yield f"{asked[context]} query items have the context '{context}', which {sampler} does not allow"
    # Where each class has one context, hard-ood is drawn only where every other class's has enough items.
    limits = asked + Counter(allowed) if sampler == "hard-ood" and not several else free
    yield from _uneven("query", asked, limits, allowed, others)


def _uneven(
    side: str,
    found: Counter[str | None],
    available: Counter[str | None],
    allowed: set[str | None],
    first: set[str | None],
) -> Iterator[str]:
    """Whether a context has fewer items than another by more than one, although it has more; `first` come first."""
    for context in sorted(allowed, key=str):
        if found[context] >= available[context]:
            continue
        for rival in sorted(allowed, key=str):
            # The last round may give one more, but not to a stranger before another class's context.
            ahead = not (context in first and rival not in first)
            if found[rival] > found[context] + ahead:
                yield f"{found[context]} {side} items have the context '{context}' and {found[rival]} '{rival}': uneven"
