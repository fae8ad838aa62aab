"""Section [mix] of an experiment: items are put on other backgrounds first, and the mixtures are used as data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from shotproof.core.errors import InputError, error_prefix
from shotproof.core.options import Option
from shotproof.core.sections import Place, Section, read_options
from shotproof.core.storage.files import path_exists
from shotproof.features.encoder import encoders
from shotproof.masks.mix_images import ImageMixSettings
from shotproof.sounds.mapping import PairMapping, read_mapping, shipped_mappings
from shotproof.sounds.mix import MixSettings
from shotproof.sounds.quality import Thresholds

NO_EMBEDDING = "none"


@dataclass(frozen=True)
class Mixing(Section):
    """Mixing of recordings or images with backgrounds: the mapping of pairs and the settings."""

    mapping: PairMapping
    settings: MixSettings

    def __post_init__(self) -> None:
        """Skip validation: the settings are checked separately."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the keys of the section: the mapping, settings and thresholds, named as on the command line."""
        files = f"a TOML or CSV file, or one of {', '.join(shipped_mappings())}"
        settings = [option for option in MixSettings.options() if option.name != "thresholds"]
        renamed = [
            replace(option, name="gain", also=("margin_db",)) if option.name == "margin_db" else option
            for option in settings
        ]
        return (Option("mapping", str, None, files, required=True), *renamed, *Thresholds.options())

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; the mapping and the files of the encoder are relative to the file's folder."""
        values = read_options(cls.options(), table, place)
        mapping_file = place.folder / (name := values.pop("mapping"))
        with error_prefix(f"{place}, mapping: "):
            mapping = read_mapping(mapping_file if path_exists(mapping_file) else name)
        thresholds = Thresholds(**{option.name: values.pop(option.name, None) for option in Thresholds.options()})
        with error_prefix(f"{place}: "):
            if "gain" in values:
                values["margin_db"] = values.pop("gain")
            if values.get("embedding") == NO_EMBEDDING:
                values["embedding"] = None
            elif "embedding" in values:
                values["embedding"] = encoders.make(values["embedding"]).resolved_against(place.folder)
            return cls(mapping, MixSettings(**values, thresholds=thresholds))

    def settings_for(self, medium: str | None) -> MixSettings | ImageMixSettings:
        """Return the settings for this kind of items.

        Raises:
            InputError: a setting for sounds is set, and the items are images.
        """
        if medium != "image":
            return self.settings
        names = [option.name for option in ImageMixSettings.options()]
        for option in (*MixSettings.options(), *Thresholds.options()):
            owner = self.settings if hasattr(self.settings, option.name) else self.settings.thresholds
            if option.name not in (*names, "thresholds") and getattr(owner, option.name) != option.default:
                key = "gain" if option.name == "margin_db" else option.name
                raise InputError(f"'{key}' is for sounds, and the items are images: expected {', '.join(names)}")
        return ImageMixSettings(**{name: getattr(self.settings, name) for name in names})

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the mixtures except the recordings.

        It includes `on_the_fly` and the audio format, which determine the files.
        """
        return {**asdict(self.settings.spelled), "mapping": self.mapping.digest}

    def folder(self, recordings: str) -> str:
        """Return the folder name for mixtures of recordings with this digest, unique to the mixing parameters."""
        text = json.dumps([recordings, self.parameters()], sort_keys=True)
        return f"mixed-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
