"""Entries of an experiment's methods: which methods to evaluate, and on what, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from shotproof.core.errors import InputError, did_you_mean, error_prefix
from shotproof.core.limits import SHOT
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.sections import Entry
from shotproof.core.spelling import parse_spelling
from shotproof.features.encoder import Encoder, encoders
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method, make_method
from shotproof.learners.model_head import ModelHead


@dataclass(frozen=True)
class MethodUse(Entry):
    """Entry of the methods: the method, and what it is evaluated on."""

    kind: ClassVar[str] = "method"

    method: Method = option(help="method to evaluate")
    on: tuple[str | Path | Encoder, ...] | None = option(
        None,
        "encoders of [features], or models of [evaluate] if the method adapts a network; by default all of them",
        distinct=True,
        single=True,
    )
    shots: tuple[int, ...] | None = option(
        None, "evaluate only on tasks with these numbers of shots; by default on all", within=SHOT, distinct=True
    )

    @classmethod
    def make(cls, spec: str | Mapping[str, Any], folder: Path) -> Method:
        """Build the method; custom code, and files that it writes such as logs, are relative to the folder."""
        method = make_method(spec, folder=folder)
        resolved_paths = {
            option.name: folder / value
            for option in method.options()
            if option.path and not option.argument and isinstance(value := getattr(method, option.name), Path)
        }
        return replace(method, **resolved_paths) if resolved_paths else method  # type: ignore[type-var]

    def applies(self, on: Encoder | str | Path | None, shot: int | None = None) -> bool:
        """Return whether the method is evaluated on this encoder, model or the items (None), with this many shots."""
        return (self.on is None or on in self.on) and (shot is None or self.shots is None or shot in self.shots)


def encoders_of_models(methods: Sequence[Method]) -> list[Encoder]:
    """Return the encoders of methods `model:FILE`, each of which uses the features of its own model."""
    with error_prefix(", [evaluate], methods: "):
        return list(dict.fromkeys(method.encoder for method in methods if isinstance(method, ModelHead)))


def encoder_named(name: str, candidates: Sequence[Encoder], folder: Path) -> Encoder | None:
    """Find the encoder with this spelling or bare name; return None if there is none.

    Args:
        name: spelling in the file
        candidates: encoders of the experiment
        folder: folder of the file
    """
    for encoder in candidates:
        if name in (str(encoder), parse_spelling(str(encoder))[0]):
            return encoder
    try:
        encoder_of_spelling = encoders.make(name).resolved_against(folder)
    except InputError:
        return None
    return next((encoder for encoder in candidates if encoder == encoder_of_spelling), None)


def resolve_uses(
    uses: Sequence[MethodUse],
    known_encoders: Sequence[Encoder],
    models: Sequence[str | Path],
    shots: Sequence[int],
    folder: Path,
) -> tuple[MethodUse, ...]:
    """Resolve the encoders and models that the methods' entries refer to.

    Args:
        uses: entries, as in the file
        known_encoders: encoders of the experiment
        models: models of the experiment
        shots: numbers of shots of all task sets
        folder: folder of the experiment file

    Returns:
        The entries, in the same order.

    Raises:
        InputError: an entry is invalid, or no method is evaluated on some number of shots; the message names the
            location.
    """
    resolved = tuple(_resolve(use, known_encoders, models, shots, folder) for use in uses)
    for shot in shots:
        if resolved and not any(use.shots is None or shot in use.shots for use in resolved):
            raise InputError(
                f", [tasks], shots: no method is evaluated on tasks with {counted(shot, 'shot')}: add one to [evaluate]"
            )
    return resolved


def _resolve(
    use: MethodUse, known_encoders: Sequence[Encoder], models: Sequence[str | Path], shots: Sequence[int], folder: Path
) -> MethodUse:
    """Resolve one entry."""
    with error_prefix(f", [evaluate], method '{use}', "):
        for shot in use.shots or ():
            if shot not in shots:
                available = ", ".join(map(str, sorted(set(shots))))
                raise InputError(f"shots: there are no tasks with {counted(shot, 'shot')}: expected any of {available}")
        if isinstance(use.method, ModelHead):
            if use.on is not None:
                raise InputError("on: the method uses the features of its own model: remove the key")
            return replace(use, on=(use.method.encoder,))
        if use.on is None:
            return use
        if use.method.needs == "items" and not isinstance(use.method, Adaptation):
            raise InputError("on: the method reads the items directly: remove the key")
        targets: list[str | Path | Encoder] = []
        for name in use.on:
            target: str | Path | Encoder | None
            if isinstance(use.method, Adaptation):
                target = next((model for model in models if model in (name, folder / str(name))), None)
                group, names = "models of [evaluate]", [Path(model).name for model in models]
            else:
                target = name if isinstance(name, Encoder) else encoder_named(str(name), known_encoders, folder)
                group, names = "encoders of [features]", [str(encoder) for encoder in known_encoders]
            if target is None:
                raise InputError(f"on: '{name}' is not among the {group}{did_you_mean(str(name), names)}")
            targets.append(target)
        return replace(use, on=tuple(targets))
