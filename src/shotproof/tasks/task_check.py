"""Check of task sets against the constraints that they claim to meet, written from the definitions with plain sets.

Nothing here is shared with the samplers, so that a bug in a sampler cannot hide itself.
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
from shotproof.tasks.changed_check import COPIES, SAMPLER, ItemColumns, check_changes, check_copies
from shotproof.tasks.context.context_check import SETS, check_context
from shotproof.tasks.plates import background_names
from shotproof.tasks.taskset import TaskSet

Row = dict[str, Any]
# Columns in which samplers record how a row was drawn.
_RECORDED = pa.schema(
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
    """Constraint that a task set breaks: the task (None: the whole file), the class, and how."""

    task: int | None
    label: str | None
    message: str

    def __str__(self) -> str:
        location = "the file" if self.task is None else f"task {self.task}"
        return f"{location}{'' if self.label is None else f', class {self.label!r}'}: {self.message}"


@dataclass(frozen=True)
class _Lookup:
    """Facts about every item, as plain dictionaries."""

    label: dict[str, str]
    split: dict[str, str]
    source: dict[str, str | None]
    words: dict[str, set[str]]
    of_class: dict[str, list[str]]


def check_tasks(tasks: TaskSet, catalog: Catalog, attributes: Attributes | None = None) -> list[Violation]:
    """List every constraint that a task set breaks.

    All task sets: items exist, have the label of their class, are in the split and occur once, and no source is on both
    sides.
    Tasks that plant an attribute (`fewstab`): all constraints of the paper's sections 4.1 and 4.3, or those of the
    published code, unless the file records that they were relaxed. This needs `attributes`.
    Tasks with contexts (`iid`, `ood`, `hard-ood`, `clean`): the contexts of both sides are those that define the set,
    and no source is on both sides of a task.
    Tasks with changed items (`changed`): the items of the recorded side have the recorded change, and backgrounds are
    those of the items that it allows.
    Tasks with changed copies (`copied`): each support item has the recorded copies, all different; the copies count
    neither as shots nor as repeated items.
    Tasks without replacement (`depletion`): no item occurs twice in the whole set, which uses up the data.

    Args:
        tasks: the task set
        catalog: the catalog that the tasks were drawn from
        attributes: the attributes that the tasks were drawn with

    Returns:
        One violation per broken constraint; an empty list if there are none.

    Raises:
        InputError: the tasks plant attributes, but `attributes` is missing.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=30).catalog()
        >>> sp.analysis.check_tasks(sp.sample(catalog, "random", tasks=20), catalog)
        []
    """
    record = tasks.record
    rows: list[Row] = cast_columns(tasks.table, _RECORDED, "tasks").to_pylist()
    has_contexts = record.sampler_name in SETS
    is_changed = record.sampler_name in (SAMPLER, COPIES)
    planted = not (has_contexts or is_changed) and any(row["attribute"] is not None for row in rows)
    if planted and attributes is None:
        raise InputError("these tasks plant attributes: checking them needs the attributes that they were drawn with")
    lookup = _build_lookup(catalog, None if has_contexts else attributes, record.split)
    context_column = record.context_column or "context"
    reads_contexts = has_contexts or (is_changed and context_column in catalog.table.column_names)
    contexts = dict(zip(lookup.label, contexts_of(catalog, context_column), strict=True)) if reads_contexts else {}
    backgrounds = dict(zip(lookup.label, background_names(catalog).to_pylist(), strict=True)) if is_changed else {}
    item_columns = ItemColumns(lookup.label, backgrounds, contexts)
    clean_value = record.options.get("clean_value")
    clean_value = clean_value if isinstance(clean_value, str) else None
    published = planted and record.options.get("variant") == "published"
    vocabulary = _vocabulary(lookup, record.shot or 0, record.query or 0) if published else set()
    violations = list(_check_origin(tasks, catalog, attributes))
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        task = rows[start:stop]
        violations.extend(_check_shape(task, lookup, record))
        if planted and all(item in lookup.words for row in task for item in row["support"] + row["query"]):
            violations.extend(_check_fewstab(task, lookup, record.options, vocabulary))
        if has_contexts:
            messages = check_context(task, contexts, lookup.of_class, lookup.source, record.sampler_name, clean_value)
            violations.extend(Violation(task[0]["task"], label, message) for label, message in messages)
        if is_changed:
            check = check_copies if record.sampler_name == COPIES else check_changes
            messages = check(task, record.options, item_columns)
            violations.extend(Violation(task[0]["task"], label, message) for label, message in messages)
    if record.sampler_name == "depletion":
        violations.extend(_check_depletion(rows, lookup, record, len(tasks)))
    return violations


def _build_lookup(catalog: Catalog, attributes: Attributes | None, split: str | None) -> _Lookup:
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
    """Check the digests in the record, if it has any."""
    stated = tasks.record.stated_digest
    if stated is not None and stated != tasks.digest:
        message = f"the content has digest {tasks.digest}, but the metadata says {stated}: the file was changed"
        yield Violation(None, None, message)
    for role, value in (("catalog", catalog), ("attributes", attributes)):
        recorded = tasks.record.source(role)
        if value is not None and recorded not in (None, value.digest):
            message = f"the tasks were drawn from {role} with digest {recorded}, but this one has digest {value.digest}"
            yield Violation(None, None, message)


def _check_shape(task: list[Row], lookup: _Lookup, record: TasksRecord) -> Iterator[Violation]:
    """Check what holds for tasks of every sampler."""
    number = task[0]["task"]
    labels = [row["label"] for row in task]
    for label, count in Counter(labels).items():
        if count > 1:
            yield Violation(number, label, f"the class occurs {count} times")
    if record.way not in (None, len(task)):
        yield Violation(number, None, f"{len(task)} classes, but the design has {record.way}")
    is_unequal = record.options.get("query_dirichlet") is not None
    queries = sum(len(row["query"]) for row in task)
    if is_unequal and queries != (record.way or 0) * (record.query or 0):
        yield Violation(number, None, f"{queries} query items, but the design has {record.way} times {record.query}")
    for row in task:
        support = _without_copies(row) if record.sampler_name == COPIES else row["support"]
        sizes = (("support", support, record.shot), ("query", row["query"], None if is_unequal else record.query))
        for side, items, size in sizes:
            if size not in (None, len(items)):
                yield Violation(number, row["label"], f"{len(items)} {side} items, but the design has {size}")
        for item, count in Counter(support + row["query"]).items():
            if count > 1:
                yield Violation(number, row["label"], f"item '{item}' occurs {count} times")
            if item not in lookup.label:
                yield Violation(number, row["label"], f"item '{item}' is not in the catalog")
            elif lookup.label[item] != row["label"]:
                yield Violation(number, row["label"], f"item '{item}' has the label '{lookup.label[item]}'")
            elif record.split not in (None, lookup.split[item]):
                yield Violation(number, row["label"], f"item '{item}' is in split '{lookup.split[item]}'")
        support_sources = {lookup.source.get(item) for item in row["support"]} - {None}
        for item in row["query"]:
            if lookup.source.get(item) in support_sources:
                yield Violation(number, row["label"], f"query item '{item}' shares its source with a support item")


def _without_copies(row: Row) -> list[str]:
    """Return the support items that are as they are; all, if changes are not recorded."""
    spellings = row.get("support_change") or [None] * len(row["support"])
    return [item for item, spelling in zip(row["support"], spellings, strict=True) if not spelling]


def _check_depletion(rows: list[Row], lookup: _Lookup, record: TasksRecord, tasks: int) -> Iterator[Violation]:
    """Check that no item is in two tasks, and that no further task could be drawn, unless later tasks were cut off."""
    first_task: dict[str, int] = {}
    for row in rows:
        for item in {*row["support"], *row["query"]}:
            earlier = first_task.setdefault(item, row["task"])
            if earlier != row["task"]:
                yield Violation(row["task"], row["label"], f"item '{item}' is already in task {earlier}")
    if record.summary.get("tasks_in_all") not in (None, tasks):
        return
    unused: dict[str, Counter[str]] = {}
    for item, label in lookup.label.items():
        if item not in first_task and record.split in (None, lookup.split[item]):
            source = lookup.source.get(item)
            unused.setdefault(label, Counter())[f"item {item}" if source is None else f"source {source}"] += 1
    shot, query = len(rows[0]["support"]), len(rows[0]["query"])
    way = sum(row["task"] == rows[0]["task"] for row in rows)
    usable = [label for label, sources in sorted(unused.items()) if _can_split(sources, shot, query)]
    if len(usable) >= way:
        message = f"the tasks end although {len(usable)} classes have enough items left for another: {usable[:way]}"
        yield Violation(None, None, message)


def _can_split(sources: Counter[str], shot: int, query: int) -> bool:
    """Return whether items of these sources can be split into support and query without a source on both sides."""
    support_sizes = {0}  # number of support items, for every choice of sources
    for size in sources.values():
        support_sizes |= {support + size for support in support_sizes}
    return any(support >= shot and sources.total() - support >= query for support in support_sizes)


def _check_fewstab(
    task: list[Row], lookup: _Lookup, options: Mapping[str, Any], vocabulary: set[str]
) -> Iterator[Violation]:
    """Check FewSTAB's constraints on a task whose items are all in the lookup."""
    number = task[0]["task"]
    planted = [row["attribute"] for row in task]
    if len(set(planted)) < len(planted):
        yield Violation(number, None, f"the planted attributes {planted} are not all different")
    for row in task:
        word, other_words = row["attribute"], set(planted) - {row["attribute"]}
        messages = [
            *_check_eligible(row, word, lookup),
            *_check_support(row, word, other_words, lookup, options.get("support", "exclusive")),
            *_check_query(row, word, other_words, lookup, options, vocabulary),
            *_check_relaxed(row),
        ]
        yield from (Violation(number, row["label"], message) for message in messages)


def _vocabulary(lookup: _Lookup, shot: int, query: int) -> set[str]:
    """Return the words that are eligible for at least one class."""
    words: set[str] = set()
    for items in lookup.of_class.values():
        holders = Counter(word for item in items for word in lookup.words[item])
        words |= {word for word, count in holders.items() if count >= shot and len(items) - count >= query}
    return words


def _check_relaxed(row: Row) -> Iterator[str]:
    """Check that constraints were relaxed as in the published code: one step per five failures, undone by a success."""
    relaxed, failures = row.get("support_loosened") or 0, row.get("support_failures") or 0
    if relaxed and row["slot"]:
        yield f"the support is relaxed for class {row['slot'] + 1}, but only a task's first class allows it"
    if relaxed > failures // 5:
        yield f"the support is relaxed to {relaxed} words after {failures} failures"
    if row.get("fallback") and row.get("query_failures") is not None and row["query_failures"] < 5:
        yield f"the query fell back after {row['query_failures']} failures"


def _check_eligible(row: Row, word: str, lookup: _Lookup) -> Iterator[str]:
    items = lookup.of_class.get(row["label"], [])
    holders = sum(word in lookup.words[item] for item in items)
    if holders < len(row["support"]) or len(items) - holders < len(row["query"]):
        yield f"attribute '{word}' is not eligible: held by {holders} of {len(items)} items"


def _check_support(row: Row, word: str, other_words: set[str], lookup: _Lookup, variant: str) -> Iterator[str]:
    for item in row["support"]:
        if variant != "random" and word not in lookup.words[item]:
            yield f"support item '{item}' lacks the class's attribute '{word}'"
        if variant == "exclusive" and len(lookup.words[item] & other_words) > (row.get("support_loosened") or 0):
            shared = ", ".join(sorted(lookup.words[item] & other_words))
            yield f"support item '{item}' holds another class's attribute ({shared})"


def _check_query(
    row: Row, word: str, other_words: set[str], lookup: _Lookup, options: Mapping[str, Any], vocabulary: set[str]
) -> Iterator[str]:
    selection = options.get("query_selection", "lowest")
    published = options.get("variant") == "published"
    support = set(row["support"])
    support_sources = {lookup.source.get(item) for item in row["support"]} - {None}
    intra = [
        item
        for item in lookup.of_class.get(row["label"], [])
        if word not in lookup.words[item] and item not in support and lookup.source.get(item) not in support_sources
    ]
    inter = [item for item in intra if lookup.words[item] & other_words]
    fell_back = bool(row.get("fallback")) if published else selection != "intra" and len(inter) < len(row["query"])
    if row.get("fallback") not in (None, fell_back):
        yield f"fallback is recorded as {row['fallback']}, but there are {len(inter)} inter-class candidates"
    candidates = intra if selection == "intra" or fell_back else inter
    unexpected = sorted(set(row["query"]) - set(candidates))
    for item in unexpected:
        reason = f"holds the class's attribute '{word}'" if word in lookup.words[item] else "is not a candidate"
        yield f"query item '{item}' {reason}"
    if selection == "lowest" and row["query"] and not unexpected:
        scored_words = {item: lookup.words[item] - {word, *other_words} for item in candidates}
        if published:
            scored_words = {item: words & vocabulary for item, words in scored_words.items()}
        yield from _check_lowest(row, scored_words, published)


def _check_lowest(row: Row, scored_words: dict[str, set[str]], logarithms: bool) -> Iterator[str]:
    """Check that no other candidate scores lower than a query item, by Eq. 6 or by the published sum of logarithms.

    Args:
        row: the class of a task
        scored_words: the candidates, each with the words that enter its score
        logarithms: whether to sum log((p_a + 1e-10) / 1e-10), which ranks like the published sum, instead of p_a
    """
    holders = Counter(word for words in scored_words.values() for word in words)
    share = {word: count / len(scored_words) for word, count in holders.items()}
    weight = {word: log((p + 1e-10) / 1e-10) if logarithms else p for word, p in share.items()}
    score = {item: sum(weight[word] for word in words) for item, words in scored_words.items()}
    queries = set(row["query"])
    worst = max(queries, key=lambda item: (score[item], item))
    for item in scored_words:
        if item not in queries and score[item] < score[worst] - 1e-7:
            yield f"candidate '{item}' scores {score[item]:.4f}, less than query item '{worst}' with {score[worst]:.4f}"
            return
