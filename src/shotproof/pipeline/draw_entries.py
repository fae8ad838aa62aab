"""Entries of an experiment's samplers: which tasks to draw, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import ClassVar

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import QUERY, SEED, SHOT, TASKS, WAY
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.sections import Entry, Section
from shotproof.core.spelling import parse_spelling
from shotproof.features.encoder import Encoder
from shotproof.pipeline.method_uses import encoder_named
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
        None, "earlier sampler whose classes and queries are reused, so that both are compared task by task"
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


def _check_data(draw: Draw, sets: Sequence[str]) -> None:
    """Reject a sampler that needs attributes if there are none, or that is given an input it does not take."""
    sampler = draw.sampler
    if "attributes" in sampler.needs and not sets:
        raise InputError(
            f", [tasks], samplers: '{sampler}' needs attributes: add a section [attributes] with detectors, sets or a "
            "file"
        )
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
