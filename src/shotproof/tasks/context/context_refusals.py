"""Why context tasks fail on some data: which classes lack contexts, with their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InsufficientData, UnknownName

if TYPE_CHECKING:
    from shotproof.tasks.context.context_sampler import BoundContext

_NAMED = 5  # classes that an error names


def refuse_unusable(bound: BoundContext) -> None:
    """Refuse data in which too few classes have a context for a support, or too few such contexts differ."""
    way, cells = bound.shape.way, bound.cells
    _, contexts, help_ = _words(bound)
    if bound.sampler.clean_value is not None and bound.sampler.clean_value not in cells.contexts:
        raise UnknownName("clean value", bound.sampler.clean_value, cells.contexts)
    barren = np.flatnonzero(bound.eligible.sum(axis=1) == 0)
    able = len(bound.eligible) - len(barren)
    if able < way:
        raise InsufficientData(
            f"{way} ways need {way} classes with {_needs(bound)}; the data has {able} of {len(bound.eligible)}; "
            f"lacking, with their {contexts}: {_named(bound, barren)}: {help_}"
        )
    different = int(bound.eligible.any(axis=0).sum())
    if different < way and bound.sampler.support_contexts == 1:
        fewest = np.argsort(bound.eligible.sum(axis=1), kind="stable")
        raise InsufficientData(
            f"{way} ways need {way} different {contexts} with {_support(bound)} of some class, the data has "
            f"{different}; the classes with the fewest, with their {contexts}: {_named(bound, fewest)}: {help_}"
        )


def hopeless_task(bound: BoundContext, task: int, lacked_partners: bool) -> InsufficientData:
    """The error for a task that found no classes and contexts in all its tries."""
    way = bound.shape.way
    context, contexts, help_ = _words(bound)
    tried = f"task {task} failed {bound.sampler.max_tries} tries: "
    if not lacked_partners and bound.sampler.support_contexts == 1:
        return InsufficientData(
            f"{tried}the supports drawn left too few query items of other sources (column 'source'): {help_}"
        )
    if bound.sampler.support_contexts != 1:
        return InsufficientData(f"{tried}no {way} classes with {_needs(bound)}: {help_}, or change support_contexts")
    held = bound.held if bound.sampler.hard_ood else bound.eligible
    usable = np.flatnonzero(bound.eligible.sum(axis=1))
    fewest = usable[np.argsort(held.sum(axis=1)[usable], kind="stable")]
    if not bound.sampler.hard_ood:
        return InsufficientData(
            f"{tried}no {way} classes with a different {context} each; the classes with the fewest {contexts} of "
            f"{_support(bound)}: {_named(bound, fewest)}: {help_}"
        )
    return InsufficientData(
        f"{tried}no {way} classes that each have {bound.items_per_context} items or more in the support {contexts} of "
        f"all others, as hard-ood needs; the classes with the fewest such {contexts}: {_named(bound, fewest)}: {help_}"
        ", or do without it (hard_ood=False)"
    )


def _words(bound: BoundContext) -> tuple[str, str, str]:
    """What a context is called, by its column; what several are; and what would help."""
    context = bound.sampler.context_column.replace("_", " ")
    return context, f"{context}s", f"lower the ways, the shots or the queries, or merge {context}s"


def _needs(bound: BoundContext) -> str:
    several = bound.sampler.support_contexts
    if several != 1:
        many = "several" if several == "all" else several
        return f"{many} {_words(bound)[1]} with {_support(bound)} together, and more for ood"
    needs = [f"a {_words(bound)[0]} with {_support(bound)}"]
    if bound.sampler.hard_ood:
        needs.append(f"{bound.shape.way - 1} more with {bound.items_per_context} items or more")
    else:
        needs.append(f"{bound.shape.query} items in others")
    if bound.sampler.clean_value is not None:
        needs.append(f"{bound.shape.query} items in '{bound.sampler.clean_value}'")
    return ", ".join(needs)


def _support(bound: BoundContext) -> str:
    shot, query = bound.shape.shot, bound.shape.query
    return f"{shot + query} items or more ({shot} support + {query} query)"


def _named(bound: BoundContext, classes: IntArray) -> str:
    named = "; ".join(bound.cells.describe(int(number)) for number in classes[:_NAMED])
    return named + (f"; ... ({len(classes)} classes)" if len(classes) > _NAMED else "")
