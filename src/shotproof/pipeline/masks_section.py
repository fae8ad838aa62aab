"""Section [masks] of an experiment: the foregrounds of images are cut out first, and images without a mask left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

from shotproof.core.errors import InputError, error_prefix
from shotproof.core.options import Option
from shotproof.core.sections import Place, Section, read_options
from shotproof.masks.cut_images import CutSettings
from shotproof.masks.cutter import Cutter
from shotproof.masks.mask_quality import MaskThresholds


@dataclass(frozen=True)
class Masking(Section):
    """Cutting of foregrounds: a cutter or a folder of masks, and the thresholds of their quality."""

    settings: CutSettings

    def __post_init__(self) -> None:
        """Skip validation: the settings are checked separately."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the keys of the section: settings and thresholds, named as on the command line."""
        settings = [option for option in CutSettings.options() if option.name != "thresholds"]
        with_cutter = [replace(option, kind=Cutter) if option.name == "cutter" else option for option in settings]
        return (*with_cutter, *MaskThresholds.options())

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; the files of the cutter and the folder of masks are relative to the file's folder."""
        values = read_options(cls.options(), table, place)
        with error_prefix(f"{place}: "):
            if {"cutter", "masks"} <= set(values):
                raise InputError("expected either cutter or masks, not both")
            names = [option.name for option in MaskThresholds.options()]
            thresholds = MaskThresholds(**{name: values.pop(name) for name in names if name in values})
            return cls(CutSettings(**values, thresholds=thresholds))

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the masks except the images and the files of masks."""
        settings = self.settings
        return {
            "cutter": None if settings.made_cutter is None else settings.made_cutter.fingerprint,
            "box_side": settings.box_side,
            **settings.thresholds.parameters(),
        }

    def folder(self, images: str, labels: Collection[str] | None) -> str:
        """Return the folder name for the masks of a catalog with this digest, unique to how they are made."""
        text = json.dumps([images, self.parameters(), labels and sorted(labels)], sort_keys=True)
        return f"masks-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
