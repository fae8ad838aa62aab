"""Which methods an experiment evaluates, and on what: the entries of its methods, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from shotproof.core.errors import InputError, did_you_mean, placed
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
    """One entry of the methods: what is evaluated, on what."""

    kind: ClassVar[str] = "method"

    method: Method = option(help="the classifier")
    on: tuple[str | Path | Encoder, ...] | None = option(
        None,
        "encoders of [features], or models of [evaluate] if the method adapts a network; all of them unless given",
        distinct=True,
        single=True,
    )
    shots: tuple[int, ...] | None = option(
        None, "evaluate on tasks of these shots; on all unless given", within=SHOT, distinct=True
    )

    @classmethod
    def make(cls, given: str | Mapping[str, Any], folder: Path) -> Method:
        """Make the method; code of one's own, and files that it writes, such as a log, are looked for in the folder."""
        method = make_method(given, folder=folder)
        written = {
            each.name: folder / value
            for each in method.options()
            if each.path and not each.argument and isinstance(value := getattr(method, each.name), Path)
        }
        return replace(method, **written) if written else method  # type: ignore[type-var]

    def applies(self, on: Encoder | str | Path | None, shot: int | None = None) -> bool:
        """Whether it is evaluated on these features, with this model, or on the items (None), at so many shots."""
        return (self.on is None or on in self.on) and (shot is None or self.shots is None or shot in self.shots)


def encoders_of_models(methods: Sequence[Method]) -> list[Encoder]:
    """The encoders of methods `model:FILE`, each of which takes the features of its own model, which is read."""
    with placed(", [evaluate], methods: "):
        return list(dict.fromkeys(method.encoder for method in methods if isinstance(method, ModelHead)))


def encoder_named(name: str, known: Sequence[Encoder], folder: Path) -> Encoder | None:
    """Return the one of the known encoders that is spelled so, by itself or in a file, or has this bare name.

    Args:
        name: as a file spells it
        known: those of the experiment
        folder: of the file
    """
    for encoder in known:
        if name in (str(encoder), parse_spelling(str(encoder))[0]):
            return encoder
    try:
        made = encoders.make(name).found_from(folder)
    except InputError:
        return None
    return next((encoder for encoder in known if encoder == made), None)


def resolve_uses(
    uses: Sequence[MethodUse],
    known: Sequence[Encoder],
    models: Sequence[str | Path],
    shots: Sequence[int],
    folder: Path,
) -> tuple[MethodUse, ...]:
    """Look up what the methods' entries name.

    Args:
        uses: the entries, as a file has them
        known: the encoders of the experiment
        models: those of the experiment
        shots: of all task sets
        folder: of the experiment's file

    Returns:
        The uses, in the order given.

    Raises:
        InputError: an entry cannot be, or tasks of some shots have no method; the message says where.
    """
    resolved = tuple(_resolve(use, known, models, shots, folder) for use in uses)
    for shot in shots:
        if resolved and not any(use.shots is None or shot in use.shots for use in resolved):
            raise InputError(
                f", [tasks], shots: no method is evaluated on tasks of {counted(shot, 'shot')}: "
                "expected one in [evaluate]"
            )
    return resolved


def _resolve(
    use: MethodUse, known: Sequence[Encoder], models: Sequence[str | Path], shots: Sequence[int], folder: Path
) -> MethodUse:
    with placed(f", [evaluate], method '{use}', "):
        for shot in use.shots or ():
            if shot not in shots:
                some = ", ".join(map(str, sorted(set(shots))))
                raise InputError(f"shots: there are no tasks of {counted(shot, 'shot')}: expected some of {some}")
        if isinstance(use.method, ModelHead):
            if use.on is not None:
                raise InputError("on: it takes the features of its own model: leave it out")
            return replace(use, on=(use.method.encoder,))
        if use.on is None:
            return use
        if use.method.needs == "items" and not isinstance(use.method, Adaptation):
            raise InputError("on: it sees the items themselves: leave it out")
        on: list[str | Path | Encoder] = []
        for name in use.on:
            place: str | Path | Encoder | None
            if isinstance(use.method, Adaptation):
                place = next((model for model in models if model in (name, folder / str(name))), None)
                what, names = "models of [evaluate]", [Path(model).name for model in models]
            else:
                place = name if isinstance(name, Encoder) else encoder_named(str(name), known, folder)
                what, names = "encoders of [features]", [str(encoder) for encoder in known]
            if place is None:
                raise InputError(f"on: '{name}' is none of the {what}{did_you_mean(str(name), names)}")
            on.append(place)
        return replace(use, on=tuple(on))
