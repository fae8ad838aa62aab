"""Where the numbers come from: all metadata of the files, and what the reader must know about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, lookup, sources_of
from shotproof.tasks.taskset import TaskSet


def provenance(
    results: Sequence[Results], tasks: Sequence[TaskSet], catalog: Catalog | None
) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each file a heading, and all its metadata as (dotted key, value), the content's digest first."""
    files: list[tuple[str, Results | TaskSet | Catalog]] = []
    for source, given in zip(sources_of(results), results, strict=True):
        files.append((f"Results: {source.encoder}, {source.sampler}, {source.design.shape}", given))
    for task_set in tasks:
        sampler = lookup(task_set.meta, "made_by", "sampler") or UNKNOWN
        files.append((f"Tasks: {sampler}, {len(task_set)} tasks", task_set))
    if catalog is not None:
        files.append((f"Catalog: {len(catalog)} items", catalog))
    return [(heading, [("digest", made.digest), *_flatten(made.meta)]) for heading, made in files]


def notes_of(results: Sequence[Results], tasks: Sequence[TaskSet], catalog: Catalog | None) -> list[str]:
    """What happened on the way: a sampler's retries and fallbacks, methods' warnings, metadata that does not fit."""
    notes = []
    for source, given in zip(sources_of(results), results, strict=True):
        name = f"{source.sampler} tasks {(source.tasks_digest or UNKNOWN)[:8]}"
        if source.tasks_digest is None:
            notes.append("Some results do not name their task set: nothing tells whether they can be compared.")
        summary = _flatten(lookup(given.meta, "tasks", "summary"))
        if summary:
            notes.append(f"{name}: {', '.join(f'{_words(key)} {value}' for key, value in summary)}.")
        methods = lookup(given.meta, "made_by", "methods")
        for method in methods if isinstance(methods, list) else []:
            if isinstance(method, dict) and method.get("warnings"):
                notes.append(f"{method.get('name')} on {source.encoder}, {name}: {method['warnings']} warnings.")
    for task_set in tasks:
        made_from = lookup(task_set.meta, "from", "catalog")
        if catalog is not None and made_from not in (None, catalog.digest):
            notes.append(
                f"The tasks {task_set.digest[:8]} were made from the catalog {made_from}, not from the one given, "
                f"{catalog.digest}: the thumbnails show the files that this one names."
            )
    return list(dict.fromkeys(notes))


def _words(key: str) -> str:
    return key.replace("_", " ")


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested metadata as (dotted key, value), sorted; empty lists are left out."""
    if isinstance(value, dict):
        pairs = sorted((str(key), inner) for key, inner in value.items() if prefix or key not in ("digest", "kind"))
        return [pair for key, inner in pairs for pair in _flatten(inner, f"{prefix}.{key}" if prefix else key)]
    if isinstance(value, list):
        if any(isinstance(inner, dict) for inner in value):
            return [pair for index, inner in enumerate(value, 1) for pair in _flatten(inner, f"{prefix}.{index}")]
        value = ", ".join(map(str, value))
    if isinstance(value, float):
        value = f"{value:.4g}"
    return [(prefix, str(value))] if prefix and value not in ("", None) else []
