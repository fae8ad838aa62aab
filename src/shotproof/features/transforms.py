"""What is done to features before a method sees them, one explicit step after the other, recorded in their name.

Vectors are [n, d]. Of maps [n, d, h, w] the channels are the dimensions: each location is treated as a vector.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof import draws
from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.registry import Registry
from shotproof.specs import parse_call, write_call

FloatArray = npt.NDArray[np.float64]
BLOCK_VALUES = 2**24  # numbers that are transformed at a time


class Transform(ABC):
    """One step of preprocessing; what it makes of an item does not depend on the other items."""

    about: ClassVar[str]

    def prepare(self, features: Features) -> None:  # noqa: B027 - most have nothing to check
        """Check what it is to be applied to."""

    @abstractmethod
    def apply(self, values: FloatArray) -> FloatArray:
        """Vectors [n, d] or maps [n, d, h, w] to new ones."""

    def parameters(self) -> dict[str, Any]:
        """The options that it was made with, for the record."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}


class _OnBase(Transform):
    """A step that needs the statistics of a base set, which is best disjoint from what is tested."""

    def __init__(self, base: str | Path | Features) -> None:
        self._features = base if isinstance(base, Features) else Features.read(base)
        self._file = self._features.name if isinstance(base, Features) else Path(base).name
        rows = self._features.array.astype(np.float64)
        self.mean, self.std = rows.mean(0), rows.std(0)

    def prepare(self, features: Features) -> None:
        """Refuse a base set of another encoder's dimensions; warn of one that has all of the items."""
        d = features.array.shape[1] if features.shape is None else features.shape[0]
        if d != len(self.mean):
            raise Mismatch(
                f"transform '{transforms.name_of(self)}': the base set has {len(self.mean)} dimensions "
                f"('{self._features.name}'), the features {d} ('{features.name}'): encode both alike"
            )
        if pc.all(pc.is_in(features.table.column("item"), value_set=self._features.table.column("item"))).as_py():
            what = "the base set has all items that are evaluated: its statistics know the test set"
            warnings.warn(f"transform '{transforms.name_of(self)}': {what}", UserWarning, stacklevel=4)

    def parameters(self) -> dict[str, Any]:
        """The base set's file and the beginning of its digest."""
        return {"base": f"{self._file}@{self._features.digest[:8]}"}


class Center(_OnBase):
    """x - mean of a base set, as in SimpleShot's CL2N (Wang et al. 2019)."""

    about = "subtract the mean of a base set, center(base='base.parquet')"

    def apply(self, values: FloatArray) -> FloatArray:
        """Every location of a map, too, by the mean of the base set's channels."""
        return values - _along(self.mean, values)


class Standardise(_OnBase):
    """(x - mean) / std of a base set; a dimension that never varies there is only centred."""

    about = "subtract the mean of a base set and divide by its standard deviation"

    def apply(self, values: FloatArray) -> FloatArray:
        """By channel."""
        return (values - _along(self.mean, values)) / _along(np.where(self.std > 0, self.std, 1.0), values)


@dataclass
class Unit(Transform):
    """x / |x|; zero stays zero."""

    about = "scale to length 1"

    def apply(self, values: FloatArray) -> FloatArray:
        """Of a map, the vector at each location."""
        lengths = np.sqrt((values**2).sum(axis=1, keepdims=True))
        return values / np.where(lengths > 0, lengths, 1.0)


@dataclass
class Power(Transform):
    """(x + 1e-6)^power, for features that are not negative, such as those after a ReLU (PT-MAP; Hu et al. 2021).

    Below 0: `signed` mirrors, -(|x| + 1e-6)^power; `relu` takes 0; `refuse` is an error.
    """

    power: float = 0.5
    negatives: str = "signed"

    about = "raise to a power, sign kept: power(power=0.5)"

    def __post_init__(self) -> None:
        from shotproof.methods.power import PowerTransform

        self._transform = PowerTransform(self.power, self.negatives)  # type: ignore[arg-type]

    def apply(self, values: FloatArray) -> FloatArray:
        """Each number by itself."""
        import torch

        transformed: FloatArray = self._transform(torch.from_numpy(values)).numpy()
        return transformed


@dataclass
class Project(Transform):
    """x times a random matrix of normal numbers over sqrt(d): fewer dimensions, distances kept about as they were.

    A stand-in for the trained layer by which DeepBDC and others reduce the channels of their maps.
    """

    dimensions: int
    seed: int = 0

    about = "a random projection to fewer dimensions: project(dimensions=128)"

    def __post_init__(self) -> None:
        for option, least in (("dimensions", 1), ("seed", 0)):
            value = getattr(self, option)
            if type(value) is not int or value < least:
                raise InputError(f"{option}: expected a whole number of {least} or more, found {value!r}")

    def apply(self, values: FloatArray) -> FloatArray:
        """The same matrix for every location."""
        counters = np.arange(values.shape[1])[:, None], np.arange(self.dimensions), np.arange(2)[:, None, None]
        radius, angle = (draws.bits(self.seed, *counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        matrix = np.sqrt(-2 * np.log1p(-radius) / self.dimensions) * np.cos(2 * np.pi * angle)
        projected: FloatArray = np.moveaxis(np.tensordot(values, matrix, axes=(1, 0)), -1, 1)
        return projected


@dataclass
class Pool(Transform):
    """The mean over equal parts of a map: fewer locations for the heads whose cost grows with their square."""

    height: int
    width: int

    about = "average maps down to fewer locations: pool(height=3, width=3)"

    def __post_init__(self) -> None:
        for option in ("height", "width"):
            if type(getattr(self, option)) is not int or getattr(self, option) < 1:
                raise InputError(f"{option}: expected a whole number above 0, found {getattr(self, option)!r}")

    def prepare(self, features: Features) -> None:
        """Refuse vectors, and maps that are smaller already."""
        _, height, width = features.maps.shape[1:]
        if self.height > height or self.width > width:
            raise InputError(f"transform 'pool': maps of {height} x {width} have no {self.height} x {self.width} parts")

    def apply(self, values: FloatArray) -> FloatArray:
        """Parts that overlap by a location where the sizes do not divide."""
        import torch

        pooled: FloatArray = torch.nn.functional.adaptive_avg_pool2d(
            torch.from_numpy(values), (self.height, self.width)
        ).numpy()
        return pooled


transforms: Registry[Transform] = Registry(
    "transform",
    {
        "center": "shotproof.features.transforms:Center",
        "standardise": "shotproof.features.transforms:Standardise",
        "l2": "shotproof.features.transforms:Unit",
        "power": "shotproof.features.transforms:Power",
        "project": "shotproof.features.transforms:Project",
        "pool": "shotproof.features.transforms:Pool",
    },
)


def transform(features: Features, steps: str | Transform | Iterable[str | Transform]) -> Features:
    """The features after each step, in order: `l2`, `center(base='base.parquet')` or a `Transform`.

    The encoder's name becomes e.g. `lite0 > center(base='base.parquet@1f2e3d4c') > l2`, so that results with another
    preprocessing are those of another classifier.
    """
    for step in [steps] if isinstance(steps, str | Transform) else steps:
        made = _make(step)
        made.prepare(features)
        features = _applied(features, made)
    return features


def _make(step: str | Transform) -> Transform:
    if isinstance(step, Transform):
        return step
    name, options = parse_call(step)
    return transforms.make(name, **options)


def _applied(features: Features, step: Transform) -> Features:
    values = features.array if features.shape is None else features.maps
    rows = max(1, BLOCK_VALUES // max(1, values[:1].size))
    kind = np.float32 if features.shape is None else np.float16
    blocks = [
        step.apply(values[start : start + rows].astype(np.float64)).astype(kind)
        for start in range(0, len(values), rows)
    ]
    name = transforms.name_of(step)
    made_by = dict(features.meta.get("made_by", {}))
    made_by["encoder"] = f"{features.name} > {write_call(name, step.parameters())}"
    made_by["transforms"] = [*made_by.get("transforms", []), {"transform": name, **step.parameters()}]
    meta = {**features.meta, "made_by": made_by, "from": {**features.meta.get("from", {}), "features": features.digest}}
    return Features.from_array(features.table.column("item").to_pylist(), np.concatenate(blocks), meta)


def _along(row: FloatArray, values: FloatArray) -> FloatArray:
    """A number a channel, shaped so that it applies to vectors or maps."""
    return row.reshape(1, -1, *[1] * (values.ndim - 2))
