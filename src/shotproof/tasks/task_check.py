"""Does a task set keep the constraints that it claims? Written from the definitions, with plain sets.

Nothing here is shared with the samplers: a fault of theirs must not hide itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.errors import InputError
from shotproof.core.records import TasksRecord
from shotproof.core.tables import cast_columns
from shotproof.tasks.context.context_check import SETS, check_context
from shotproof.tasks.taskset import TaskSet

Row = dict[str, Any]
# Columns in which samplers tell how a row came about.
_TOLD = pa.schema(
    [
        ("fallback", pa.bool_()),
        ("support_loosened", pa.int64()),
        ("support_failures", pa.int64()),
        ("query_failures", pa.int64()),
        ("support_contexts", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Violation:
    """A constraint that does not hold: of which task (None: of the whole file) and class, and how."""

    task: int | None
    label: str | None
    message: str

    def __str__(self) -> str:
        where = "the file" if self.task is None else f"task {self.task}"
        return f"{where}{'' if self.label is None else f', class {self.label!r}'}: {self.message}"


@dataclass(frozen=True)
class _Lookup:
    """What is known of every item, as plain dictionaries."""

    label: dict[str, str]
    split: dict[str, str]
    source: dict[str, str | None]
    words: dict[str, set[str]]
    of_class: dict[str, list[str]]


def check_tasks(tasks: TaskSet, catalog: Catalog, attributes: Attributes | None = None) -> list[Violation]:
    """Every constraint that a task set breaks.

    All task sets: items exist, have the class's label and the split, occur once, and no source is on both sides.
    Tasks that plant an attribute (`fewstab`) need `attributes`: all constraints of the paper's sections 4.1 and 4.3, or
    those of the published code, as far as the file does not say that they were loosened.
    Tasks with contexts (`iid`, `ood`, `hard-ood`, `clean`): the contexts of both sides as the set's definition has it,
    and no source on both sides of a task.
    Tasks without replacement (`depletion`): no item twice in the whole set, which ends where the data does.

    Args:
        tasks: what to check
        catalog: what it was drawn from
        attributes: which words hold of which item

    Returns:
        One violation per constraint that is broken; an empty list means that it keeps them all.

    Raises:
        InputError: the tasks plant attributes, and none were given.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=30).catalog()
        >>> sp.analysis.check_tasks(sp.sample(catalog, "random", tasks=20), catalog)
        []
    """
    record = tasks.record
    rows: list[Row] = cast_columns(tasks.table, _TOLD, "tasks").to_pylist()
    in_context = record.sampler_name in SETS
    planted = not in_context and any(row["attribute"] is not None for row in rows)
    if planted and attributes is None:
        raise InputError("these tasks plant attributes: checking them needs the attributes")
    lookup = _lookup(catalog, None if in_context else attributes, record.split)
    column = record.context_column or "context"
    contexts = dict(zip(lookup.label, contexts_of(catalog, column), strict=True)) if in_context else {}
    clean_value = record.options.get("clean_value")
    clean_value = clean_value if isinstance(clean_value, str) else None
    published = planted and record.options.get("variant") == "published"
    vocabulary = _vocabulary(lookup, record.shot or 0, record.query or 0) if published else set()
    found = list(_check_origin(tasks, catalog, attributes))
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        task = rows[start:stop]
        found.extend(_check_shape(task, lookup, record))
        if planted and all(item in lookup.words for row in task for item in row["support"] + row["query"]):
            found.extend(_check_planted(task, lookup, record.options, vocabulary))
        if in_context:
            broken = check_context(task, contexts, lookup.of_class, lookup.source, record.sampler_name, clean_value)
            found.extend(Violation(task[0]["task"], label, message) for label, message in broken)
    if record.sampler_name == "depletion":
        found.extend(_check_depletion(rows, lookup, record, len(tasks)))
    return found


def _lookup(catalog: Catalog, attributes: Attributes | None, split: str | None) -> _Lookup:
    columns = catalog.table.to_pydict()
    items: list[str] = columns["item"]
    words = {} if attributes is None else {i: set(w) for i, w in attributes.to_words().items() if w is not None}
    label_of, split_of = (dict(zip(items, columns[name], strict=True)) for name in ("label", "split"))
    of_class: dict[str, list[str]] = {}
    for item, label in label_of.items():
        if (split is None or split_of[item] == split) and (attributes is None or item in words):
            of_class.setdefault(label, []).append(item)
    sources = columns.get("source", [None] * len(items))
    return _Lookup(label_of, split_of, dict(zip(items, sources, strict=True)), words, of_class)


def _check_origin(tasks: TaskSet, catalog: Catalog, attributes: Attributes | None) -> Iterator[Violation]:
    """The digests in the record, where there are any."""
    stated = tasks.record.stated_digest
    if stated is not None and stated != tasks.digest:
        yield Violation(None, None, f"its content has digest {tasks.digest}, its metadata say {stated}: it was changed")
    for role, given in (("catalog", catalog), ("attributes", attributes)):
        made_from = tasks.record.source(role)
        if given is not None and made_from not in (None, given.digest):
            message = f"it was made from {role} with digest {made_from}, not from the given one, {given.digest}"
            yield Violation(None, None, message)


def _check_shape(task: list[Row], lookup: _Lookup, record: TasksRecord) -> Iterator[Violation]:
    """What holds of tasks of every sampler."""
    number = task[0]["task"]
    labels = [row["label"] for row in task]
    for label, times in Counter(labels).items():
        if times > 1:
            yield Violation(number, label, f"the class occurs {times} times")
    if record.way not in (None, len(task)):
        yield Violation(number, None, f"{len(task)} classes, the design says {record.way}")
    unequal = record.options.get("query_dirichlet") is not None
    queries = sum(len(row["query"]) for row in task)
    if unequal and queries != (record.way or 0) * (record.query or 0):
        yield Violation(number, None, f"{queries} query items, the design says {record.way} times {record.query}")
    for row in task:
        for side, size in (("support", record.shot), ("query", None if unequal else record.query)):
            if size not in (None, len(row[side])):
                yield Violation(number, row["label"], f"{len(row[side])} {side} items, the design says {size}")
        for item, times in Counter(row["support"] + row["query"]).items():
            if times > 1:
                yield Violation(number, row["label"], f"item '{item}' occurs {times} times")
            if item not in lookup.label:
                yield Violation(number, row["label"], f"item '{item}' is not in the catalog")
            elif lookup.label[item] != row["label"]:
                yield Violation(number, row["label"], f"item '{item}' has the label '{lookup.label[item]}'")
            elif record.split not in (None, lookup.split[item]):
                yield Violation(number, row["label"], f"item '{item}' is of split '{lookup.split[item]}'")
        supported = {lookup.source.get(item) for item in row["support"]} - {None}
        for item in row["query"]:
            if lookup.source.get(item) in supported:
                yield Violation(number, row["label"], f"query item '{item}' shares its source with a support item")


def _check_depletion(rows: list[Row], lookup: _Lookup, record: TasksRecord, tasks: int) -> Iterator[Violation]:
    """No item in two tasks; and unless the file holds only the first tasks, too little is left for another one."""
    first: dict[str, int] = {}
    for row in rows:
        for item in {*row["support"], *row["query"]}:
            before = first.setdefault(item, row["task"])
            if before != row["task"]:
                yield Violation(row["task"], row["label"], f"item '{item}' is used in task {before} already")
    if record.summary.get("tasks_in_all") not in (None, tasks):
        return
    left: dict[str, Counter[str]] = {}
    for item, label in lookup.label.items():
        if item not in first and record.split in (None, lookup.split[item]):
            source = lookup.source.get(item)
            left.setdefault(label, Counter())[f"item {item}" if source is None else f"source {source}"] += 1
    shot, query = len(rows[0]["support"]), len(rows[0]["query"])
    way = sum(row["task"] == rows[0]["task"] for row in rows)
    enough = [label for label, sources in sorted(left.items()) if _can_part(sources, shot, query)]
    if len(enough) >= way:
        yield Violation(None, None, f"the tasks end while {len(enough)} classes have items for another: {enough[:way]}")


def _can_part(sources: Counter[str], shot: int, query: int) -> bool:
    """Whether these items give support and query without a source on both sides."""
    sides = {0}  # items on the support's side, for every choice of sources
    for size in sources.values():
        sides |= {side + size for side in sides}
    return any(side >= shot and sources.total() - side >= query for side in sides)


def _check_planted(
    task: list[Row], lookup: _Lookup, options: Mapping[str, Any], vocabulary: set[str]
) -> Iterator[Violation]:
    """FewSTAB's constraints on a task whose items are all known."""
    number = task[0]["task"]
    planted = [row["attribute"] for row in task]
    if len(set(planted)) < len(planted):
        yield Violation(number, None, f"the planted attributes {planted} are not all different")
    for row in task:
        own, others = row["attribute"], set(planted) - {row["attribute"]}
        messages = [
            *_check_eligible(row, own, lookup),
            *_check_support(row, own, others, lookup, options.get("support", "exclusive")),
            *_check_query(row, own, others, lookup, options, vocabulary),
            *_check_loosened(row),
        ]
        yield from (Violation(number, row["label"], message) for message in messages)


def _vocabulary(lookup: _Lookup, shot: int, query: int) -> set[str]:
    """The words that are eligible for some class."""
    words: set[str] = set()
    for items in lookup.of_class.values():
        holding = Counter(word for item in items for word in lookup.words[item])
        words |= {word for word, count in holding.items() if count >= shot and len(items) - count >= query}
    return words


def _check_loosened(row: Row) -> Iterator[str]:
    """The published code loosens after five failures, or five more, and every success of a class takes it back."""
    loosened, failures = row.get("support_loosened") or 0, row.get("support_failures") or 0
    if loosened and row["slot"]:
        yield f"the support is loosened, which can be of a task's first class alone, not of class {row['slot'] + 1}"
    if loosened > failures // 5:
        yield f"the support is loosened to {loosened} words after {failures} failures"
    if row.get("fallback") and row.get("query_failures") is not None and row["query_failures"] < 5:
        yield f"the query fell back after {row['query_failures']} failures"


def _check_eligible(row: Row, own: str, lookup: _Lookup) -> Iterator[str]:
    items = lookup.of_class.get(row["label"], [])
    holding = sum(own in lookup.words[item] for item in items)
    if holding < len(row["support"]) or len(items) - holding < len(row["query"]):
        yield f"attribute '{own}' is not eligible: held by {holding} of {len(items)} items"


def _check_support(row: Row, own: str, others: set[str], lookup: _Lookup, variant: str) -> Iterator[str]:
    for item in row["support"]:
        if variant != "random" and own not in lookup.words[item]:
            yield f"support item '{item}' lacks the class's attribute '{own}'"
        if variant == "exclusive" and len(lookup.words[item] & others) > (row.get("support_loosened") or 0):
            shared = ", ".join(sorted(lookup.words[item] & others))
            yield f"support item '{item}' holds another class's attribute ({shared})"


def _check_query(
    row: Row, own: str, others: set[str], lookup: _Lookup, options: Mapping[str, Any], vocabulary: set[str]
) -> Iterator[str]:
    selection = options.get("query_selection", "lowest")
    published = options.get("variant") == "published"
    taken = set(row["support"])
    supported = {lookup.source.get(item) for item in row["support"]} - {None}
    intra = [
        item
        for item in lookup.of_class.get(row["label"], [])
        if own not in lookup.words[item] and item not in taken and lookup.source.get(item) not in supported
    ]
    inter = [item for item in intra if lookup.words[item] & others]
    fell_back = bool(row.get("fallback")) if published else selection != "intra" and len(inter) < len(row["query"])
    if row.get("fallback") not in (None, fell_back):
        yield f"fallback is recorded as {row['fallback']}, there are {len(inter)} inter-class candidates"
    candidates = intra if selection == "intra" or fell_back else inter
    strangers = sorted(set(row["query"]) - set(candidates))
    for item in strangers:
        why = f"holds the class's attribute '{own}'" if own in lookup.words[item] else "is no candidate"
        yield f"query item '{item}' {why}"
    if selection == "lowest" and row["query"] and not strangers:
        counted = {item: lookup.words[item] - {own, *others} for item in candidates}
        if published:
            counted = {item: words & vocabulary for item, words in counted.items()}
        yield from _check_lowest(row, counted, published)


def _check_lowest(row: Row, counted: dict[str, set[str]], logarithms: bool) -> Iterator[str]:
    """Nothing left out scores lower than something taken: by Eq. 6, or by the published sum of logarithms.

    Args:
        row: the class of a task
        counted: the candidates, each with its words that count
        logarithms: whether log((p_a + 1e-10) / 1e-10) is summed, which ranks as the published sum does, or p_a
    """
    held = Counter(word for words in counted.values() for word in words)
    share = {word: count / len(counted) for word, count in held.items()}
    value = {word: log((p + 1e-10) / 1e-10) if logarithms else p for word, p in share.items()}
    score = {item: sum(value[word] for word in words) for item, words in counted.items()}
    taken = set(row["query"])
    worst = max(taken, key=lambda item: (score[item], item))
    for item in counted:
        if item not in taken and score[item] < score[worst] - 1e-7:
            yield f"candidate '{item}' scores {score[item]:.4f}, less than query item '{worst}' with {score[worst]:.4f}"
            return
