"""Transforms that apply a fitted map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shotproof.core.arrays import FloatArray
from shotproof.core.errors import Mismatch
from shotproof.core.file_options import FileOptions
from shotproof.core.options import option
from shotproof.core.records import FittedOn
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.features.transforms import Transform, dimensions


class MapTransform(Transform):
    """Step that applies a fitted map to each vector, and to each location of local maps."""

    @property
    @abstractmethod
    def map(self) -> FittedMap:
        """Return the map."""

    def apply(self, values: FloatArray) -> FloatArray:
        """Apply the map."""
        return self.map.apply(values)


@dataclass(frozen=True)
class Fitted(MapTransform, FileOptions):
    """A map that `wccn`, `nap` or `leace` has fitted, read from its file: `Nap(...).map.write("nap.parquet")`.

    It needs no base set any more, and makes the same features as the transform that fitted it. Features need the same
    steps before it as those of the base set had.
    """

    about = "a fitted wccn, nap or leace, read from its file"
    example = "fitted(file='nap.parquet')"

    file: Path | FittedMap = option(help="file of the fitted map", path=True)

    @property
    def map(self) -> FittedMap:
        """Return the map, as read from the file."""
        fitted_map: FittedMap = self.content("file")
        return fitted_map

    def prepare(self, features: Features) -> None:
        """Check that the map has the features' dimensions."""
        record = self.map.record
        if dimensions(features) != self.map.dimensions:
            fitted_on = f" ('{self.map.name}' on '{record.features}')" if record.features else f" ('{self.map.name}')"
            raise Mismatch(
                f"transform '{self.name}': the map has {self.map.dimensions} dimensions{fitted_on}, the features "
                f"{dimensions(features)} ('{features.name}'): use the encoder that it was fitted on"
            )

    def fitted_on(self) -> FittedOn:
        """Return what the record of the map states."""
        return FittedOn(self.map.record.transform, len(self.map.record.classes))

    def remarks(self, features: Features) -> Iterator[str]:
        """Warn if the map was fitted after other steps than those of the features."""
        record = self.map.record
        steps = tuple(map(str, features.record.transforms))
        if record.transform is not None and steps != record.transforms:
            yield (
                f"the map was fitted after {_listed(record.transforms)}, and the features went through "
                f"{_listed(steps)}: apply the same steps before it"
            )


def _listed(steps: tuple[str, ...]) -> str:
    return " > ".join(steps) or "no other step"
