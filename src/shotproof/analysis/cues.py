"""What tasks were drawn by: the context of each item, or its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Set

from shotproof.analysis.inputs import Inputs, with_digest
from shotproof.catalog.contexts import contexts_of
from shotproof.tasks.taskset import TaskSet


def cues_of(tasks: TaskSet, inputs: Inputs) -> Mapping[str, Set[str]]:
    """Map items to their context, or to their attributes; an item may have neither.

    Args:
        tasks: drawn by contexts or attributes
        inputs: with the catalog or the attributes that they were drawn by

    Raises:
        Mismatch: these are not there.
    """
    column = tasks.record.context_column
    if column is None:
        words = with_digest(inputs.attributes, tasks.record.source("attributes"), "the tasks were drawn by attributes")
        return {item: set(held or ()) for item, held in words.to_words().items()}
    catalog = inputs.catalog(tasks.record.source("catalog"))
    contexts = contexts_of(catalog, column)
    return {item: {context} for item, context in zip(catalog.items, contexts, strict=True) if context is not None}
