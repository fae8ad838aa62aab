"""Why context tasks fail on some data: which classes lack contexts, with their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shotproof.draws import IntArray
from shotproof.errors import Starved, UnknownName

if TYPE_CHECKING:
    from shotproof.tasks.context import ContextSampler

_NAMED = 5  # classes that an error names
_HELP = "lower --way, --shot or --query, or merge contexts"


def refuse_unusable(sampler: ContextSampler) -> None:
    """Refuse data in which too few classes have a context for a support, or too few such contexts differ."""
    way, cells = sampler.design.way, sampler.cells
    if sampler.clean_value is not None and sampler.clean_value not in cells.contexts:
        raise UnknownName("clean value", sampler.clean_value, cells.contexts)
    barren = np.flatnonzero(sampler.eligible.sum(axis=1) == 0)
    able = len(sampler.eligible) - len(barren)
    if able < way:
        raise Starved(
            f"{way} ways need {way} classes with {_needs(sampler)}; the data has {able} of {len(sampler.eligible)}; "
            f"lacking, with their contexts: {_named(sampler, barren)}: {_HELP}"
        )
    different = int(sampler.eligible.any(axis=0).sum())
    if different < way:
        fewest = np.argsort(sampler.eligible.sum(axis=1), kind="stable")
        raise Starved(
            f"{way} ways need {way} different contexts with {_support(sampler)} of some class, the data has "
            f"{different}; the classes with the fewest, with their contexts: {_named(sampler, fewest)}: {_HELP}"
        )


def starved(sampler: ContextSampler, task: int, lacked_partners: bool) -> Starved:
    """The error for a task that found no classes and contexts in all its tries."""
    way = sampler.design.way
    tried = f"task {task} failed {sampler.max_tries} tries: "
    if not lacked_partners:
        return Starved(
            f"{tried}the supports drawn left too few query items of other sources (column 'source'): {_HELP}"
        )
    held = sampler.held if sampler.hard_ood else sampler.eligible
    usable = np.flatnonzero(sampler.eligible.sum(axis=1))
    fewest = usable[np.argsort(held.sum(axis=1)[usable], kind="stable")]
    if not sampler.hard_ood:
        return Starved(
            f"{tried}no {way} classes with a different context each; the classes with the fewest contexts of "
            f"{_support(sampler)}: {_named(sampler, fewest)}: {_HELP}"
        )
    return Starved(
        f"{tried}no {way} classes that each have {sampler.a_context} items or more in the support contexts of all "
        f"others, as hard_ood needs; the classes with the fewest such contexts: {_named(sampler, fewest)}: {_HELP}, or "
        "give up hard_ood (--no-hard-ood)"
    )


def _needs(sampler: ContextSampler) -> str:
    needs = [f"a context with {_support(sampler)}"]
    if sampler.hard_ood:
        needs.append(f"{sampler.design.way - 1} more with {sampler.a_context} items or more")
    else:
        needs.append(f"{sampler.design.query} items in others")
    if sampler.clean_value is not None:
        needs.append(f"{sampler.design.query} items in '{sampler.clean_value}'")
    return ", ".join(needs)


def _support(sampler: ContextSampler) -> str:
    shot, query = sampler.design.shot, sampler.design.query
    return f"{shot + query} items or more ({shot} support + {query} query)"


def _named(sampler: ContextSampler, classes: IntArray) -> str:
    named = "; ".join(sampler.cells.describe(int(number)) for number in classes[:_NAMED])
    return named + (f"; ... ({len(classes)} classes)" if len(classes) > _NAMED else "")
