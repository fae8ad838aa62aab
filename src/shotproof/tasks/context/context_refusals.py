"""Errors for data that cannot give context tasks: which classes lack contexts, with their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InsufficientData, UnknownName

if TYPE_CHECKING:
    from shotproof.tasks.context.context_sampler import BoundContext

_MOST_NAMED = 5  # classes in an error message


def require_usable_classes(bound: BoundContext) -> None:
    """Raise InsufficientData if too few classes have a context for a support, or there are too few such contexts."""
    way, cells = bound.shape.way, bound.cells
    _, contexts, advice = _wording(bound)
    if bound.sampler.clean_value is not None and bound.sampler.clean_value not in cells.contexts:
        raise UnknownName("clean value", bound.sampler.clean_value, cells.contexts)
    unusable = np.flatnonzero(bound.eligible.sum(axis=1) == 0)
    usable = len(bound.eligible) - len(unusable)
    if usable < way:
        raise InsufficientData(
            f"{way} ways need {way} classes with {_describe_needs(bound)}; the data has {usable} of "
            f"{len(bound.eligible)}; the others, with their {contexts}, are {_describe_classes(bound, unusable)}: "
            f"{advice}"
        )
    distinct_contexts = int(bound.eligible.any(axis=0).sum())
    if distinct_contexts < way and bound.sampler.support_contexts == 1:
        fewest = np.argsort(bound.eligible.sum(axis=1), kind="stable")
        raise InsufficientData(
            f"{way} ways need {way} different {contexts} with {_describe_support(bound)} of some class; the data has "
            f"{distinct_contexts}; the classes with the fewest {contexts} are {_describe_classes(bound, fewest)}: "
            f"{advice}"
        )


def tries_used_up(bound: BoundContext, task: int, lacked_partners: bool) -> InsufficientData:
    """Return the error for a task that has used up its tries."""
    way = bound.shape.way
    context, contexts, advice = _wording(bound)
    prefix = f"task {task} failed {bound.sampler.max_tries} tries: "
    if not lacked_partners and bound.sampler.support_contexts == 1:
        return InsufficientData(
            f"{prefix}the drawn supports left too few query items of other sources (column 'source'): {advice}"
        )
    if bound.sampler.support_contexts != 1:
        needs = _describe_needs(bound)
        return InsufficientData(f"{prefix}found no {way} classes with {needs}: {advice}, or change support_contexts")
    has_context = bound.enough_for_hard if bound.sampler.hard_ood else bound.eligible
    usable = np.flatnonzero(bound.eligible.sum(axis=1))
    fewest = usable[np.argsort(has_context.sum(axis=1)[usable], kind="stable")]
    if not bound.sampler.hard_ood:
        return InsufficientData(
            f"{prefix}found no {way} classes with a different {context} each; the classes with the fewest {contexts} "
            f"of {_describe_support(bound)} are {_describe_classes(bound, fewest)}: {advice}"
        )
    return InsufficientData(
        f"{prefix}found no {way} classes that each have {bound.items_per_context} items or more in the support "
        f"{contexts} of all others, as hard-ood needs; the classes with the fewest such {contexts} are "
        f"{_describe_classes(bound, fewest)}: {advice}, or leave hard-ood out (hard_ood=False)"
    )


def _wording(bound: BoundContext) -> tuple[str, str, str]:
    """Return the words for one context and for several, after the column, and advice for errors."""
    context = bound.sampler.context_column.replace("_", " ")
    return context, f"{context}s", f"lower the ways, the shots or the queries, or merge {context}s"


def _describe_needs(bound: BoundContext) -> str:
    several = bound.sampler.support_contexts
    if several != 1:
        many = "several" if several == "all" else several
        return f"{many} {_wording(bound)[1]} with {_describe_support(bound)} together, and more for ood"
    needs = [f"a {_wording(bound)[0]} with {_describe_support(bound)}"]
    if bound.sampler.hard_ood:
        needs.append(f"{bound.shape.way - 1} more with {bound.items_per_context} items or more")
    else:
        needs.append(f"{bound.shape.query} items in others")
    if bound.sampler.clean_value is not None:
        needs.append(f"{bound.shape.query} items in '{bound.sampler.clean_value}'")
    return ", ".join(needs)


def _describe_support(bound: BoundContext) -> str:
    shot, query = bound.shape.shot, bound.shape.query
    return f"{shot + query} items or more ({shot} support + {query} query)"


def _describe_classes(bound: BoundContext, classes: IntArray) -> str:
    text = "; ".join(bound.cells.describe(int(number)) for number in classes[:_MOST_NAMED])
    return text + (f"; ... ({len(classes)} classes)" if len(classes) > _MOST_NAMED else "")
