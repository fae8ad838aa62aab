"""Which methods an experiment evaluates, and on what: the entries of its methods, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import SHOT
from shotproof.core.nouns import counted
from shotproof.features.encoder import Encoder
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import DEFAULT_METHODS, Method, make_method
from shotproof.learners.model_head import ModelHead
from shotproof.pipeline.table_reader import TableReader

# What a method's table may say beside the method's own options.
USE_KEYS = ("on", "shots")


@dataclass(frozen=True)
class MethodUse:
    """One entry of the methods: what is evaluated, on what.

    on: encoders, or models that it adapts, as the experiment has them; None: all
    shots: the tasks that it is evaluated on; None: all
    """

    method: Method
    on: tuple[Encoder | str | Path, ...] | None = None
    shots: tuple[int, ...] | None = None

    def applies(self, on: Encoder | str | Path | None, shot: int | None = None) -> bool:
        """Whether it is evaluated on these features, with this model, or on the items (None), at so many shots."""
        return (self.on is None or on in self.on) and (shot is None or self.shots is None or shot in self.shots)


def read_methods(read: TableReader) -> list[tuple[Method, dict[str, Any]]]:
    """The method of each entry, and what its table says of where to evaluate it.

    Raises:
        InputError: a method cannot be; the message says where.
    """
    found: list[tuple[Method, dict[str, Any]]] = []
    for given in read.items("evaluate", "methods", (str, dict), list(DEFAULT_METHODS)):
        where = {key: given[key] for key in USE_KEYS if key in given} if isinstance(given, dict) else {}
        own = {key: value for key, value in given.items() if key not in USE_KEYS} if where else given
        try:
            method = read.with_written_paths(make_method(own, folder=read.folder))
        except InputError as error:
            raise error.placed(", [evaluate], methods: ") from error
        if any(method.spelling == one.spelling and where == other for one, other in found):
            raise InputError(f", [evaluate]: methods has '{method}' twice")
        found.append((method, where))
    return found


def encoders_of_models(read: TableReader, methods: Sequence[Method]) -> list[Encoder]:
    """The encoders of methods `model:FILE`, each of which takes the features of its own model, which is read."""
    try:
        return list(dict.fromkeys(one.encoder for one in methods if isinstance(one, ModelHead)))
    except InputError as error:
        raise error.placed(read.place("evaluate", "methods")) from error


def read_uses(
    read: TableReader,
    entries: Sequence[tuple[Method, dict[str, Any]]],
    encoders: Sequence[Encoder],
    models: Sequence[str | Path],
    shots: Sequence[int],
) -> tuple[MethodUse, ...]:
    """The methods' entries.

    Args:
        read: the experiment's tables
        entries: as `read_methods` gives them
        encoders: those of the experiment
        models: those of the experiment
        shots: of all task sets

    Returns:
        The uses, in the order given.

    Raises:
        InputError: an entry cannot be, or tasks of some shots have no method; the message says where.
    """
    uses = tuple(_use(read, method, where, encoders, models, shots) for method, where in entries)
    for shot in shots:
        if uses and not any(use.shots is None or shot in use.shots for use in uses):
            raise InputError(
                f", [tasks], shots: no method is evaluated on tasks of {counted(shot, 'shot')}: "
                "expected one in [evaluate]"
            )
    return uses


def _use(
    read: TableReader,
    method: Method,
    where: dict[str, Any],
    encoders: Sequence[Encoder],
    models: Sequence[str | Path],
    shots: Sequence[int],
) -> MethodUse:
    place = f"evaluate], method '{method}'"  # a reader's places end in a bracket
    own = TableReader({"evaluate": where}, read.folder)
    try:
        chosen = own.numbers("evaluate", "shots", [], SHOT) or None
        given = own.value("evaluate", "on", (str, list), None)
        names = [] if given is None else [given] if isinstance(given, str) else own.items("evaluate", "on", str, [])
        own.refuse_repeated("evaluate", "on", names)
    except InputError as error:
        raise InputError(str(error).replace("evaluate]", place, 1)) from error
    for shot in chosen or ():
        if shot not in shots:
            known = ", ".join(map(str, sorted(set(shots))))
            raise InputError(
                f", [{place}, shots: there are no tasks of {counted(shot, 'shot')}: expected some of {known}"
            )
    if isinstance(method, ModelHead):
        if names:
            raise InputError(f", [{place}, on: it takes the features of its own model: leave it out")
        return MethodUse(method, (method.encoder,), chosen)
    if not names:
        return MethodUse(method, None, chosen)
    if isinstance(method, Adaptation):
        return MethodUse(method, tuple(_model(name, models, read, place) for name in names), chosen)
    if method.needs == "items":
        raise InputError(f", [{place}, on: it sees the items themselves: leave it out")
    return MethodUse(method, tuple(_encoder(name, encoders, read, place) for name in names), chosen)


def _encoder(name: str, encoders: Sequence[Encoder], read: TableReader, place: str) -> Encoder:
    found = read.encoder_named(name, encoders)
    if found is None:
        near = did_you_mean(name, [str(one) for one in encoders])
        raise InputError(f", [{place}, on: '{name}' is none of the encoders of [features]{near}")
    return found


def _model(name: str, models: Sequence[str | Path], read: TableReader, place: str) -> str | Path:
    found = next((one for one in models if one in (name, read.folder / name)), None)
    if found is None:
        near = did_you_mean(name, [Path(one).name for one in models])
        raise InputError(f", [{place}, on: '{name}' is none of the models of [evaluate]{near}")
    return found
