"""Which tasks an experiment draws: the entries of its samplers, checked."""

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
    """The tasks that are drawn, whoever draws them."""

    split: str | None = option(None, "the split to draw from; needed if there are several")
    way: int = option(5, "classes per task", within=WAY, also=("ways",))
    shots: tuple[int, ...] = option(
        (1, 5), "support items per class, one by one", within=SHOT, distinct=True, also=("shot",)
    )
    query: int = option(15, "query items per class", within=QUERY, also=("queries",))
    tasks: int | None = option(
        None, "number of tasks; unless given 600, or as many as a sampler such as depletion can draw", within=TASKS
    )
    seeds: tuple[int, ...] = option((0,), "one task set per seed", within=SEED, distinct=True, also=("seed",))


@dataclass(frozen=True, kw_only=True)
class Draw(Design, Entry):
    """One entry of the samplers: which tasks to draw, by what."""

    kind: ClassVar[str] = "sampler"

    sampler: Sampler = option(help="what draws them")
    encoder: str | None = option(
        None, "whose features it searches: one of [features], by its spelling or its name; the first unless given"
    )
    like: str | None = option(
        None, "an earlier sampler whose classes and queries it reuses, so that both are compared task by task"
    )
    attributes: str | None = option(None, "one set of attributes, by name; all of them, one by one, unless given")


def resolve_draws(
    draws: Sequence[Draw], encoders: Sequence[Encoder], sets: Sequence[str], folder: Path
) -> tuple[Draw, ...]:
    """Look up what the samplers' entries name.

    Args:
        draws: the entries, as a file has them
        encoders: those of the experiment
        sets: the names of its sets of attributes
        folder: of its file

    Returns:
        The draws, in the order given, with whole spellings.

    Raises:
        InputError: an entry cannot be; the message says where.
    """
    resolved: list[Draw] = []
    for draw in draws:
        encoder = None if draw.encoder is None else encoder_named(draw.encoder, encoders, folder)
        draw = replace(
            draw,
            encoder=str(encoder) if encoder else _known("encoder", draw, [str(one) for one in encoders]),
            like=_known("like", draw, [str(before) for before in resolved]),
            attributes=_known("attributes", draw, sets),
        )
        _check_data(draw, sets)
        _check_like(draw, resolved)
        resolved.append(draw)
    return tuple(resolved)


def _check_data(draw: Draw, sets: Sequence[str]) -> None:
    """Refuse a sampler that needs attributes if there are none, or that is given what it has no use for."""
    sampler = draw.sampler
    if "attributes" in sampler.needs and not sets:
        raise InputError(
            f", [tasks], samplers: '{sampler}' needs attributes: add a section [attributes] with detectors, sets or a "
            "file"
        )
    for role, key in (("attributes", "attributes"), ("features", "encoder"), ("like", "like")):
        if getattr(draw, key) is not None and role not in sampler.takes:
            raise InputError(f", [tasks], sampler '{sampler}', {key}: this sampler takes no {role}: leave it out")


def _check_like(draw: Draw, before: Sequence[Draw]) -> None:
    """Refuse a set that is to be like another one which has no tasks of its shots and seeds."""
    if draw.like is None:
        return
    liked = [other for other in before if str(other) == draw.like]
    there = {place for other in liked for place in product(other.shots, other.seeds)}
    for shot, seed in product(draw.shots, draw.seeds):
        if (shot, seed) not in there:
            raise InputError(
                f", [tasks], sampler '{draw}', like: '{draw.like}' has no tasks of {counted(shot, 'shot')} "
                f"and seed {seed}: give both the same shots and seeds"
            )


def _known(key: str, draw: Draw, known: Sequence[str]) -> str | None:
    """Return the known spelling that an entry names by it, or by its bare name; None if it names none."""
    name = getattr(draw, key)
    if name is None:
        return None
    for spelling in known:
        if name == spelling or (spelling and name == parse_spelling(spelling)[0]):
            return spelling
    before = " before it" if key == "like" else ""
    raise InputError(f", [tasks], sampler '{draw}': there is no {key} '{name}'{before}{did_you_mean(name, known)}")
