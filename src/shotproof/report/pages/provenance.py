"""Provenance of the numbers: the records of all files, and notes on them."""

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
    """List each file's heading with its record as (dotted key, value), the digest of the content first."""
    files: list[tuple[str, Any]] = []
    origins = [Origin.of(result) for result in inputs.results]
    for origin, label, results in zip(origins, labels_of(origins), inputs.results, strict=True):
        data_set = [origin.design.data_set] if origin.design.data_set else []
        files.append((f"Results: {', '.join([*data_set, origin.encoder, label, origin.design.shape])}", results))
    for tasks in inputs.tasks:
        files.append((f"Tasks: {tasks.record.sampler or UNKNOWN}, {counted(len(tasks), 'task')}", tasks))
    for catalog in inputs.catalogs:
        files.append((f"Catalog: {_with_comma(catalog.record.name)}{counted(len(catalog), 'item')}", catalog))
    for features in inputs.features:
        files.append((f"Features: {features.record.classifier}", features))
    for attributes in inputs.attributes:
        files.append((f"Attributes: {_with_comma(attributes.record.name)}{attributes.record.detector}", attributes))
    return [(heading, [("digest", file.digest), *_flatten(file.record.to_meta())]) for heading, file in files]


def encoder_notes(comparison: Comparison) -> list[str]:
    """Write the spelling of each encoder that has a short name."""
    return [f"Encoder {name}: {spelling}." for spelling, name in comparison.encoder_names.items() if name != spelling]


def notes_of(inputs: Inputs) -> list[str]:
    """Write notes on the inputs: retries and fallbacks of samplers, warnings of methods, records that do not match."""
    notes = []
    origins = [Origin.of(result) for result in inputs.results]
    for origin, label, results in zip(origins, labels_of(origins), inputs.results, strict=True):
        name = f"{label} tasks {(origin.tasks_digest or UNKNOWN)[:8]}"
        if origin.tasks_digest is None:
            notes.append("Some results do not name their task set, so it is unknown whether they can be compared.")
        summary = _flatten(results.record.tasks.summary)
        if summary:
            notes.append(f"{name}: {', '.join(f'{_words(key)} {value}' for key, value in summary)}.")
        for method in results.record.methods:
            if method.warnings:
                notes.append(f"{method.spelling} on {origin.encoder}, {name}: {counted(method.warnings, 'warning')}.")
            if method.collapsed >= max(REPORTED_SHARE * (results.record.tasks.tasks or 0), 1):
                notes.append(
                    f"{method.spelling} on {origin.encoder}, {name}: in {counted(method.collapsed, 'task')} it "
                    "answered with at most half of the classes."
                )
    digests = [catalog.digest for catalog in inputs.catalogs]
    for tasks in inputs.tasks:
        source = tasks.record.source("catalog")
        if digests and source is not None and source not in digests:
            consequence = (
                "the thumbnails show the files of the given catalog" if len(digests) == 1 else "they are not shown"
            )
            notes.append(
                f"The tasks {tasks.digest[:8]} were drawn from the catalog {source}, not from the given "
                f"{'one' if len(digests) == 1 else 'ones'}, {', '.join(digests)}: {consequence}."
            )
    return list(dict.fromkeys(notes))


def _with_comma(name: str) -> str:
    return f"{name}, " if name else ""


def _words(key: str) -> str:
    return key.replace("_", " ")


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Flatten a nested record to (dotted key, value), sorted; empty lists are left out."""
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
