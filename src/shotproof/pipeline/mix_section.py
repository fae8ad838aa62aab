"""The section [mix] of an experiment: recordings are mixed with backgrounds first, and the mixtures are the data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Option
from shotproof.core.storage.files import is_there
from shotproof.features.encoder import encoders
from shotproof.sounds.mapping import PairMapping, read_mapping, shipped_mappings
from shotproof.sounds.mix import MixSettings
from shotproof.sounds.quality import Thresholds

NO_EMBEDDING = "none"
_RENAMED = {"margin_db": "gain"}  # as the command line has it


@dataclass(frozen=True)
class Mixing:
    """What is mixed, and how."""

    mapping: PairMapping
    settings: MixSettings

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the mixtures but the recordings; `on_the_fly` and the format decide the files."""
        spelled = replace(
            self.settings, embedding=None if self.settings.embedding is None else f"{self.settings.embedding}"
        )
        return {**asdict(spelled), "mapping": self.mapping.digest}

    def folder(self, recordings: str) -> str:
        """The folder of the mixtures of recordings with this digest: another one for whatever is mixed otherwise."""
        text = json.dumps([recordings, self.parameters], sort_keys=True)
        return f"mixed-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def mix_options() -> dict[str, Option]:
    """The keys of the section beside `mapping` and `embedding`, each with what it may be."""
    own = [each for each in MixSettings.options() if each.name not in ("embedding", "thresholds")]
    return {_RENAMED.get(each.name, each.name): each for each in (*own, *Thresholds.options())}


MIX_KEYS = ("mapping", *mix_options(), "embedding")


def read_mixing(given: Mapping[str, Any], folder: Path) -> Mixing:
    """From the section's table; InputError begins with the place, for the file's name to be put before.

    Args:
        given: the table
        folder: of the experiment's file, which paths start from
    """
    if not isinstance(given.get("mapping"), str):
        raise InputError(
            f", [mix]: expected mapping, a TOML or CSV file or one of {', '.join(shipped_mappings())}, as text"
        )
    beside = folder / given["mapping"]
    try:
        mapping = read_mapping(beside if is_there(beside) else given["mapping"])
    except InputError as error:
        raise error.placed(", [mix], mapping: ") from error
    values: dict[str, Any] = {}
    for key, each in mix_options().items():
        if key in given:
            try:
                values[each.name] = each.check(given[key])
            except InputError as error:
                message = str(error).removeprefix(f"{each.name}: ")
                raise InputError(f", [mix], {key}: {message}") from error
    thresholds = Thresholds(**{each.name: values.pop(each.name, None) for each in Thresholds.options()})
    try:
        return Mixing(mapping, MixSettings(**values, **_embedding(given, folder), thresholds=thresholds))
    except InputError as error:
        raise error.placed(", [mix]: ") from error


def _embedding(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The encoder that says what is alike, its files found from the folder; nothing where none is given."""
    if "embedding" not in given:
        return {}
    named = given["embedding"]
    if not isinstance(named, str):
        raise InputError(f"embedding: expected an encoder or none, found {named!r}{did_you_mean(str(named), ['none'])}")
    if named == NO_EMBEDDING:
        return {"embedding": None}
    encoder = encoders.make(named)
    paths = {each.name: getattr(encoder, each.name) for each in encoder.options() if each.path}
    found = {name: type(value)(folder / value) for name, value in paths.items() if value and is_there(folder / value)}
    return {"embedding": replace(encoder, **found) if found else encoder}  # type: ignore[type-var]
