"""Entries of an experiment's samplers: which tasks to draw, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import ClassVar

from shotproof.changes.change import Change, changes
from shotproof.core.errors import InputError, did_you_mean, error_prefix
from shotproof.core.limits import QUERY, SEED, SHOT, TASKS, WAY
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.sections import Entry, Section
from shotproof.core.spelling import parse_spelling
from shotproof.features.encoder import Encoder
from shotproof.pipeline.method_uses import encoder_named
from shotproof.results.applied_change import SWAPS, AppliedChange, pasted_reference
from shotproof.tasks.changed import Changed, Side
from shotproof.tasks.sampler import Sampler


@dataclass(frozen=True)
class Design(Section):
    """Design of task sets: split, task shape, number of tasks and seeds, for any sampler."""

    split: str | None = option(None, "split to draw from; required if there are several")
    way: int = option(5, "classes per task", within=WAY, also=("ways",))
    shots: tuple[int, ...] = option(
        (1, 5), "numbers of support items per class; a task set for each", within=SHOT, distinct=True, also=("shot",)
    )
    query: int = option(15, "query items per class", within=QUERY, also=("queries",))
    tasks: int | None = option(
        None, "number of tasks; by default 600, or as many as a sampler such as depletion can draw", within=TASKS
    )
    seeds: tuple[int, ...] = option((0,), "one task set per seed", within=SEED, distinct=True, also=("seed",))


@dataclass(frozen=True, kw_only=True)
class Draw(Design, Entry):
    """Entry of the samplers: the sampler, and the tasks to draw with it."""

    kind: ClassVar[str] = "sampler"

    sampler: Sampler = option(help="sampler that draws the tasks")
    encoder: str | None = option(
        None, "encoder of [features] whose features are searched, by spelling or name; by default the first"
    )
    like: str | None = option(
        None,
        "earlier sampler whose classes and queries are reused, so that both are compared task by task; for changed, by "
        "default the first that is not changed, and for mixed-random and mixed-rival an earlier mixed-same",
    )
    attributes: str | None = option(None, "name of a set of attributes; by default, a task set for each of them")


def resolve_draws(
    draws: Sequence[Draw], encoders: Sequence[Encoder], sets: Sequence[str], folder: Path
) -> tuple[Draw, ...]:
    """Resolve the encoders, samplers and sets of attributes that the samplers' entries refer to.

    Args:
        draws: entries, as in the file
        encoders: encoders of the experiment
        sets: names of its sets of attributes
        folder: folder of its file

    Returns:
        The draws, in the same order, with full spellings.

    Raises:
        InputError: an entry is invalid; the message names the location.
    """
    resolved: list[Draw] = []
    for draw in draws:
        encoder = None if draw.encoder is None else encoder_named(draw.encoder, encoders, folder)
        with error_prefix(", [tasks], samplers: "):
            draw = with_reference(draw, resolved)
        draw = replace(
            draw,
            encoder=str(encoder)
            if encoder
            else _resolve_spelling("encoder", draw, [str(candidate) for candidate in encoders]),
            like=_resolve_spelling("like", draw, [str(earlier) for earlier in resolved]),
            attributes=_resolve_spelling("attributes", draw, sets),
        )
        _check_data(draw, sets)
        _check_like(draw, resolved)
        resolved.append(draw)
    return tuple(resolved)


def with_reference(draw: Draw, earlier: Sequence[Draw]) -> Draw:
    """Return an entry whose items are changed with the sampler that it is compared with, if it names none.

    This is the first sampler that changes nothing. A swap of backgrounds is compared with an earlier `mixed-same` with
    the same options, which is cut and pasted alike.

    Args:
        draw: entry
        earlier: entries before it

    Raises:
        InputError: there is no such sampler.
    """
    if draw.like is not None or not isinstance(draw.sampler, Changed):
        return draw
    unchanged = next((str(other) for other in earlier if not isinstance(other.sampler, Changed)), None)
    pasted = next((str(other) for other in earlier if _is_swap(draw.sampler, other.sampler)), None)
    if unchanged is None and pasted is None:
        raise InputError(
            f"sampler '{draw}' changes the tasks of another sampler, and none is listed before it: add one, e.g. random"
        )
    return replace(draw, like=pasted or unchanged)


def _is_swap(sampler: Changed, reference: Sampler) -> bool:
    """Return whether a sampler differs from the reference only in whose backgrounds it shows."""
    if not isinstance(reference, Changed):
        return False
    applied, pasted = (AppliedChange(changed.change, changed.side) for changed in (sampler, reference))
    return applied.swaps_background(pasted)


def changed_draws(spellings: Sequence[str | Change], side: Side, of: str | None, earlier: Sequence[Draw]) -> list[Draw]:
    """Build the entries that change items of an earlier entry's tasks, one change each.

    A swap of backgrounds is compared with `mixed-same` with the same options, which comes first if there is no such set
    of the same tasks.

    Args:
        spellings: changes
        side: which items are changed
        of: sampler of the tasks; None means the first that changes nothing
        earlier: entries before these

    Raises:
        UnknownName: a change is unknown.
        InputError: there is no such earlier entry.
    """
    names = [str(draw) for draw in earlier if not isinstance(draw.sampler, Changed)]
    if not names:
        raise InputError(
            "nothing was evaluated yet that could be changed: call study.evaluate([...], on='random') first"
        )
    of = names[0] if of is None else next((name for name in names if of in (name, parse_spelling(name)[0])), None) or of
    if of not in names:
        raise InputError(f"of: no tasks of sampler '{of}' were evaluated{did_you_mean(of, names)}")
    references = [draw for draw in earlier if str(draw) == of]
    drawn = [draw.sampler for draw in earlier if draw.like == of]
    draws: list[Draw] = []
    for change in map(changes.make, spellings):
        sampler, like = Changed(change=change.spelling, side=side), of
        new_samplers = [(sampler, like)]
        if change.name in SWAPS:
            pasted = Changed(change=pasted_reference(change).spelling, side=side)
            new_samplers = [*([] if pasted in drawn else [(pasted, of)]), (sampler, str(pasted))]
        drawn += [sampler for sampler, like in new_samplers if like == of]
        draws += [
            replace(reference, sampler=sampler, like=like, encoder=None, attributes=None)
            for sampler, like in new_samplers
            for reference in references
        ]
    return list(dict.fromkeys(draws))


def _check_data(draw: Draw, sets: Sequence[str]) -> None:
    """Reject a sampler that lacks attributes or a set to be like, or that is given an input it does not take."""
    sampler = draw.sampler
    if "attributes" in sampler.needs and not sets:
        raise InputError(
            f", [tasks], samplers: '{sampler}' needs attributes: add a section [attributes] with detectors, sets or a "
            "file"
        )
    if "like" in sampler.needs and draw.like is None:
        raise InputError(f", [tasks], sampler '{sampler}', like: name the earlier sampler whose tasks it takes")
    for role, key in (("attributes", "attributes"), ("features", "encoder"), ("like", "like")):
        if getattr(draw, key) is not None and role not in sampler.takes:
            raise InputError(f", [tasks], sampler '{sampler}', {key}: this sampler takes no {role}: remove the key")


def _check_like(draw: Draw, earlier_draws: Sequence[Draw]) -> None:
    """Reject a reference sampler that has no tasks with the same shots and seeds."""
    if draw.like is None:
        return
    references = [earlier for earlier in earlier_draws if str(earlier) == draw.like]
    available = {shot_and_seed for earlier in references for shot_and_seed in product(earlier.shots, earlier.seeds)}
    for shot, seed in product(draw.shots, draw.seeds):
        if (shot, seed) not in available:
            raise InputError(
                f", [tasks], sampler '{draw}', like: '{draw.like}' has no tasks with {counted(shot, 'shot')} "
                f"and seed {seed}: give both samplers the same shots and seeds"
            )


def _resolve_spelling(key: str, draw: Draw, spellings: Sequence[str]) -> str | None:
    """Return the spelling that an entry refers to, by the spelling itself or its bare name; None if it names none."""
    name = getattr(draw, key)
    if name is None:
        return None
    for spelling in spellings:
        if name == spelling or (spelling and name == parse_spelling(spelling)[0]):
            return spelling
    kind = "earlier sampler" if key == "like" else key
    raise InputError(f", [tasks], sampler '{draw}', {key}: there is no {kind} '{name}'{did_you_mean(name, spellings)}")
