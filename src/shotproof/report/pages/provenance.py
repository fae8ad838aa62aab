"""Where the numbers come from: the records of all files, and what the reader must know about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shotproof.analysis.inputs import Inputs
from shotproof.comparison.comparison import Comparison
from shotproof.core.nouns import counted
from shotproof.core.records import UNKNOWN
from shotproof.evaluation.remarks import REPORTED_SHARE
from shotproof.results.origin import Origin, labels_of


def provenance(inputs: Inputs) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each file a heading, and its record as (dotted key, value), the content's digest first."""
    files: list[tuple[str, Any]] = []
    origins = [Origin.of(result) for result in inputs.results]
    for origin, label, given in zip(origins, labels_of(origins), inputs.results, strict=True):
        named = [origin.design.data_set] if origin.design.data_set else []
        files.append((f"Results: {', '.join([*named, origin.encoder, label, origin.design.shape])}", given))
    for tasks in inputs.tasks:
        files.append((f"Tasks: {tasks.record.sampler or UNKNOWN}, {counted(len(tasks), 'task')}", tasks))
    for catalog in inputs.catalogs:
        files.append((f"Catalog: {_named(catalog.record.name)}{counted(len(catalog), 'item')}", catalog))
    for features in inputs.features:
        files.append((f"Features: {features.record.classifier}", features))
    for attributes in inputs.attributes:
        files.append((f"Attributes: {_named(attributes.record.name)}{attributes.record.detector}", attributes))
    return [(heading, [("digest", made.digest), *_flatten(made.record.to_meta())]) for heading, made in files]


def encoder_notes(comparison: Comparison) -> list[str]:
    """What short names of encoders stand for."""
    return [f"Encoder {name}: {spelling}." for spelling, name in comparison.encoder_names.items() if name != spelling]


def notes_of(inputs: Inputs) -> list[str]:
    """What happened on the way: a sampler's retries and fallbacks, methods' warnings, records that do not fit."""
    notes = []
    origins = [Origin.of(result) for result in inputs.results]
    for origin, label, given in zip(origins, labels_of(origins), inputs.results, strict=True):
        name = f"{label} tasks {(origin.tasks_digest or UNKNOWN)[:8]}"
        if origin.tasks_digest is None:
            notes.append("Some results do not name their task set: nothing tells whether they can be compared.")
        summary = _flatten(given.record.tasks.summary)
        if summary:
            notes.append(f"{name}: {', '.join(f'{_words(key)} {value}' for key, value in summary)}.")
        for method in given.record.methods:
            if method.warnings:
                notes.append(f"{method.spelling} on {origin.encoder}, {name}: {method.warnings} warnings.")
            if method.collapsed >= max(REPORTED_SHARE * (given.record.tasks.tasks or 0), 1):
                what = f"in {counted(method.collapsed, 'task')} it answered with at most half of the classes"
                notes.append(f"{method.spelling} on {origin.encoder}, {name}: {what}.")
    digests = [catalog.digest for catalog in inputs.catalogs]
    for tasks in inputs.tasks:
        made_from = tasks.record.source("catalog")
        if digests and made_from is not None and made_from not in digests:
            shown = "the thumbnails show the files that this one names" if len(digests) == 1 else "they are not shown"
            notes.append(
                f"The tasks {tasks.digest[:8]} were made from the catalog {made_from}, not from the one given, "
                f"{', '.join(digests)}: {shown}."
            )
    return list(dict.fromkeys(notes))


def _named(name: str) -> str:
    return f"{name}, " if name else ""


def _words(key: str) -> str:
    return key.replace("_", " ")


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested record as (dotted key, value), sorted; empty lists are left out."""
    if isinstance(value, Mapping):
        pairs = sorted((str(key), inner) for key, inner in value.items())
        return [pair for key, inner in pairs for pair in _flatten(inner, f"{prefix}.{key}" if prefix else key)]
    if isinstance(value, list):
        if any(isinstance(inner, Mapping) for inner in value):
            return [pair for index, inner in enumerate(value, 1) for pair in _flatten(inner, f"{prefix}.{index}")]
        value = ", ".join(map(str, value))
    if isinstance(value, float):
        value = f"{value:.4g}"
    return [(prefix, str(value))] if prefix and value not in ("", None) else []
