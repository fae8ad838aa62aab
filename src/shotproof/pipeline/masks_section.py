"""Section [masks] of an experiment: the foregrounds of images are cut out first.

Images without a good mask are left out, or kept without one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.item_files import BOX
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.options import Option, option
from shotproof.core.sections import Place, Section, read_options
from shotproof.core.storage.places import absolute
from shotproof.masks.cut_images import CutSettings, cutting_key
from shotproof.masks.cutter import Cutter
from shotproof.masks.mask_quality import MaskThresholds


@dataclass(frozen=True)
class Masking(Section):
    """Cutting of foregrounds: a cutter or a folder of masks, and the thresholds of their quality."""

    settings: CutSettings
    keep_all: bool = option(False, "keep images without a good mask too, for tasks that need no masks")

    def __post_init__(self) -> None:
        """Skip validation: the settings are checked separately."""

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the keys of the section: settings and thresholds, named as on the command line."""
        settings = [option for option in CutSettings.options() if option.name != "thresholds"]
        with_cutter = [replace(option, kind=Cutter) if option.name == "cutter" else option for option in settings]
        section_options = [option for option in super().options() if option.name == "keep_all"]
        return (*with_cutter, *section_options, *MaskThresholds.options())

    def value(self, name: str) -> Any:
        """Return the value of a key."""
        holders = (self, self.settings, self.settings.thresholds)
        return next(getattr(holder, name) for holder in holders if hasattr(holder, name))

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the section; the files of the cutter and the folder of masks are relative to the file's folder."""
        values = read_options(cls.options(), table, place)
        with error_prefix(f"{place}: "):
            if {"cutter", "masks"} <= set(values):
                raise InputError("expected either cutter or masks, not both")
            names = [option.name for option in MaskThresholds.options()]
            thresholds = MaskThresholds(**{name: values.pop(name) for name in names if name in values})
            keep_all = values.pop("keep_all", False)
            return cls(CutSettings(**values, thresholds=thresholds), keep_all)

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the masks except the images and the files of masks."""
        settings = self.settings
        return {
            "cutter": None if settings.made_cutter is None else cutting_key(settings.made_cutter),
            "box_side": settings.box_side,
            **settings.thresholds.parameters(),
        }

    def folder(self, images: str, labels: Collection[str] | None) -> str:
        """Return the folder name for the masks of a catalog with this digest, unique to how they are made."""
        masks = self.settings.masks and absolute(self.settings.masks).as_posix()
        text = json.dumps([images, self.parameters(), masks, labels and sorted(labels)], sort_keys=True)
        return f"masks-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def with_all_images(images: Catalog, masked: Catalog | None) -> Catalog:
    """Return all images, those without a good mask with an empty one.

    Args:
        images: the images that were cut
        masked: those of them that have a good mask; None if there are none
    """
    if masked is None:
        table = images.table.drop_columns([MASK] if MASK in images.table.column_names else [])
        return Catalog(table.append_column(MASK, pa.nulls(len(images), pa.string())), images.root, images.record)
    table = images.moved_to(masked.root).table
    rows = pc.index_in(images.item_column, value_set=masked.item_column)
    for name in masked.table.column_names:
        if name not in table.column_names or name in (MASK, *BOX):
            column = masked.table.column(name).combine_chunks().take(rows)
            table = (table.drop_columns([name]) if name in table.column_names else table).append_column(name, column)
    record = replace(images.record, sources=masked.record.sources, notes=masked.record.notes, stated_digest=None)
    return Catalog(table, masked.root, record)
