"""The section [mix] of an experiment: recordings are mixed with backgrounds first, and the mixtures are the data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from shotproof.core.errors import placed
from shotproof.core.options import Option
from shotproof.core.sections import Place, Section, read_options
from shotproof.core.storage.files import is_there
from shotproof.features.encoder import encoders
from shotproof.sounds.mapping import PairMapping, read_mapping, shipped_mappings
from shotproof.sounds.mix import MixSettings
from shotproof.sounds.quality import Thresholds

NO_EMBEDDING = "none"


@dataclass(frozen=True)
class Mixing(Section):
    """What is mixed, and how."""

    mapping: PairMapping
    settings: MixSettings

    def __post_init__(self) -> None:
        """Check nothing: the settings are checked."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The keys of the section: the mapping, the settings and the thresholds, by their names on the command line."""
        files = f"a TOML or CSV file, or one of {', '.join(shipped_mappings())}"
        own = [each for each in MixSettings.options() if each.name != "thresholds"]
        named = [replace(each, name="gain", also=("margin_db",)) if each.name == "margin_db" else each for each in own]
        return (Option("mapping", str, None, files, required=True), *named, *Thresholds.options())

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; the mapping and the encoder's files are looked for in the file's folder."""
        values = read_options(cls.options(), table, place)
        beside = place.folder / (name := values.pop("mapping"))
        with placed(f"{place}, mapping: "):
            mapping = read_mapping(beside if is_there(beside) else name)
        thresholds = Thresholds(**{each.name: values.pop(each.name, None) for each in Thresholds.options()})
        with placed(f"{place}: "):
            if "gain" in values:
                values["margin_db"] = values.pop("gain")
            if values.get("embedding") == NO_EMBEDDING:
                values["embedding"] = None
            elif "embedding" in values:
                values["embedding"] = encoders.make(values["embedding"]).found_from(place.folder)
            return cls(mapping, MixSettings(**values, thresholds=thresholds))

    def parameters(self) -> dict[str, Any]:
        """All that decides the mixtures but the recordings; `on_the_fly` and the format decide the files."""
        return {**asdict(self.settings.spelled), "mapping": self.mapping.digest}

    def folder(self, recordings: str) -> str:
        """The folder of the mixtures of recordings with this digest: another one for whatever is mixed otherwise."""
        text = json.dumps([recordings, self.parameters()], sort_keys=True)
        return f"mixed-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
