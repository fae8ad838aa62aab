"""Which tasks an experiment draws: the entries of its samplers, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import QUERY, SHOT, TASKS, WAY
from shotproof.core.nouns import counted
from shotproof.core.spelling import parse_spelling
from shotproof.features.encoder import Encoder
from shotproof.pipeline.table_reader import TableReader
from shotproof.tasks.sampler import Sampler, samplers

# What a sampler's table may say beside the sampler's own options.
SAMPLER_KEYS = ("name", "encoder", "like", "attributes", "split", "way", "shots", "query", "tasks", "seeds")


@dataclass(frozen=True)
class Draw:
    """One entry of the samplers: which tasks to draw, by what.

    encoder: whose features the sampler is given, by its spelling; None: of the first encoder
    like: the spelling of a sampler before it, whose queries are taken over
    attributes: the name of one set of attributes; None: all of them, one after the other
    """

    sampler: Sampler
    encoder: str | None
    like: str | None
    attributes: str | None
    split: str | None
    way: int
    shots: tuple[int, ...]
    query: int
    tasks: int | None
    seeds: tuple[int, ...]


def read_draws(read: TableReader, encoders: Sequence[Encoder], sets: Sequence[str]) -> tuple[Draw, ...]:
    """The samplers' entries.

    Args:
        read: the experiment's tables
        encoders: those that it has
        sets: the names of its sets of attributes

    Returns:
        The draws, in the order given.

    Raises:
        InputError: an entry cannot be; the message says where.
    """
    draws: list[Draw] = []
    usual = [] if "files" in read.content.get("tasks", {}) else ["random", "fewstab"]
    for entry in read.items("tasks", "samplers", (str, dict), usual):
        table = dict(entry) if isinstance(entry, dict) else {"name": entry}
        own = {key: value for key, value in table.items() if key not in SAMPLER_KEYS}
        hint = {"shot": "shots", "seed": "seeds", "queries": "query", "ways": "way"}
        for key in own:
            if key in hint:
                raise InputError(f", [tasks], samplers: did you mean '{hint[key]}' instead of '{key}'?")
        if not isinstance(table.get("name"), str):
            raise InputError(f', [tasks], samplers: {entry!r}, expected "NAME(option=value)" or {{ name = "NAME" }}')
        sampler = read.make("tasks", "samplers", table["name"], samplers, own)
        shared = dict(read.content.get("tasks", {}))
        if "seeds" in table:
            shared.pop("seed", None)
        own_shape = TableReader({"tasks": {**shared, **table}}, read.folder, (str(sampler), tuple(table)))
        draw = Draw(
            sampler=sampler,
            encoder=_encoder(read, table.get("encoder"), encoders, sampler),
            like=_known("like", table.get("like"), [str(one.sampler) for one in draws], sampler),
            attributes=_known("attributes", table.get("attributes"), sets, sampler),
            split=own_shape.value("tasks", "split", str, None),
            way=own_shape.number("tasks", "way", 5, WAY),
            shots=own_shape.numbers("tasks", "shots", [1, 5], SHOT),
            query=own_shape.number("tasks", "query", 15, QUERY),
            tasks=own_shape.number("tasks", "tasks", None, TASKS),
            seeds=own_shape.seeds(),
        )
        if draw in draws:
            raise InputError(f", [tasks], samplers: '{sampler}' is there twice")
        _check_data(draw, sets)
        _check_like(draw, draws)
        draws.append(draw)
    return tuple(draws)


def _check_data(draw: Draw, sets: Sequence[str]) -> None:
    """Refuse a sampler that needs attributes where there are none, or that is given what it has no use for."""
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
    liked = [one for one in before if str(one.sampler) == draw.like]
    there = {place for one in liked for place in product(one.shots, one.seeds)}
    for shot, seed in product(draw.shots, draw.seeds):
        if (shot, seed) not in there:
            raise InputError(
                f", [tasks], sampler '{draw.sampler}', like: '{draw.like}' has no tasks of {counted(shot, 'shot')} "
                f"and seed {seed}: give both the same shots and seeds"
            )


def _encoder(read: TableReader, given: Any, encoders: Sequence[Encoder], sampler: Sampler) -> str | None:
    """The spelling of the encoder that is named so; None where nothing is given."""
    found = read.encoder_named(given, encoders) if isinstance(given, str) else None
    return str(found) if found is not None else _known("encoder", given, [str(one) for one in encoders], sampler)


def _known(key: str, given: Any, known: Sequence[str], sampler: Sampler) -> str | None:
    """One of the known spellings, or of their bare names; None where nothing is given."""
    if given is None:
        return None
    for one in known:
        if given == one or (one and given == parse_spelling(one)[0]):
            return one
    before = " before it" if key == "like" else ""
    raise InputError(
        f", [tasks], sampler '{sampler}': there is no {key} '{given}'{before}{did_you_mean(str(given), known)}"
    )
