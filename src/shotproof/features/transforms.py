"""What is done to features before a method sees them, one explicit step after the other, recorded in their name.

Vectors are [n, d]. Of maps [n, d, h, w] the channels are the dimensions: each location is treated as a vector.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof.core import draws
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.limits import LARGEST_SEED
from shotproof.core.options import Component, option
from shotproof.core.records import Maker, Source
from shotproof.core.registry import Registry
from shotproof.core.spelling import write_call
from shotproof.features.features import Features

FloatArray = npt.NDArray[np.float64]
BLOCK_VALUES = 2**24  # numbers that are transformed at a time


class Transform(Component, ABC):
    """One step of preprocessing; what it makes of an item does not depend on the other items."""

    kind = "transform"

    def prepare(self, features: Features) -> None:
        """Check what it is to be applied to."""

    @abstractmethod
    def apply(self, values: FloatArray) -> FloatArray:
        """Vectors [n, d] or maps [n, d, h, w] to new ones."""


@dataclass(frozen=True)
class _OnBase(Transform):
    """A step that needs the statistics of a base set, which is best disjoint from what is tested.

    It is spelled with the beginning of the base set's digest, `center(base='base.parquet@1f2e3d4c')`, so that results
    by another base set are those of another classifier. Where such a spelling is read, the digest is checked.
    """

    base: Path | Features = option(help="features of the base set", path=True)

    @property
    def spelling(self) -> str:
        """Return the name, with the base set's file and the beginning of its digest."""
        return write_call(self.name, self.parameters())

    def parameters(self) -> dict[str, Any]:
        """Return the base set's file and the beginning of its digest."""
        name = self._base.name if isinstance(self.base, Features) else self._file.name
        return {"base": f"{name}@{self._base.digest[:8]}"}

    def prepare(self, features: Features) -> None:
        """Refuse a base set of another encoder's dimensions; warn of one that has all of the items."""
        d = features.array.shape[1] if features.shape is None else features.shape[0]
        if d != len(self.mean):
            raise Mismatch(
                f"transform '{self.name}': the base set has {len(self.mean)} dimensions "
                f"('{self._base.name}'), the features {d} ('{features.name}'): encode both alike"
            )
        if pc.all(pc.is_in(features.table.column("item"), value_set=self._base.table.column("item"))).as_py():
            what = "the base set has all items that are evaluated: its statistics know the test set"
            warnings.warn(f"transform '{self.name}': {what}", UserWarning, stacklevel=4)

    @cached_property
    def mean(self) -> FloatArray:
        """Return the base set's, [d]."""
        mean: FloatArray = self._base.array.astype(np.float64).mean(0)
        return mean

    @cached_property
    def std(self) -> FloatArray:
        """Return the base set's, [d]."""
        std: FloatArray = self._base.array.astype(np.float64).std(0)
        return std

    @property
    def _file(self) -> Path:
        assert isinstance(self.base, Path)
        return self.base if self.base.exists() else self.base.with_name(self.base.name.partition("@")[0])

    @cached_property
    def _base(self) -> Features:
        if isinstance(self.base, Features):
            return self.base
        read = Features.read(self._file)
        beginning = "" if self._file == self.base else self.base.name.partition("@")[2]
        if not read.digest.startswith(beginning):
            raise Mismatch(f"transform '{self.name}': {self._file} has the digest {read.digest}, not {beginning}...")
        return read


@dataclass(frozen=True)
class Center(_OnBase):
    """x - mean of a base set, as in SimpleShot's CL2N (Wang et al. 2019)."""

    about = "subtract the mean of a base set"
    paper = "Wang et al., SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot Learning, 2019"
    example = "center(base='base.parquet')"

    def apply(self, values: FloatArray) -> FloatArray:
        """Return every location of a map, too, by the mean of the base set's channels."""
        return values - _along(self.mean, values)


@dataclass(frozen=True)
class Standardize(_OnBase):
    """(x - mean) / std of a base set; a dimension that never varies there is only centered."""

    about = "subtract the mean of a base set and divide by its standard deviation"
    example = "standardize(base='base.parquet')"

    def apply(self, values: FloatArray) -> FloatArray:
        """By channel."""
        return (values - _along(self.mean, values)) / _along(np.where(self.std > 0, self.std, 1.0), values)


@dataclass(frozen=True)
class Unit(Transform):
    """x / |x|; zero stays zero."""

    about = "scale to length 1"

    def apply(self, values: FloatArray) -> FloatArray:
        """Of a map, the vector at each location."""
        lengths = np.sqrt((values**2).sum(axis=1, keepdims=True))
        return values / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True)
class Power(Transform):
    """(x + 1e-6)^power, for features that are not negative, such as those after a ReLU (PT-MAP; Hu et al. 2021).

    Below 0: `signed` mirrors, -(|x| + 1e-6)^power; `relu` takes 0; `refuse` is an error.
    """

    about = "raise to a power, sign kept"
    paper = "Hu, Gripon and Pateux, Leveraging the Feature Distribution in Transfer-Based Few-Shot Learning, 2021"
    example = "power(power=0.5)"

    power: float = option(0.5, "the exponent", above=0)
    negatives: str = option("signed", "what becomes of values below 0", choices=("signed", "relu", "refuse"))

    def apply(self, values: FloatArray) -> FloatArray:
        """Return each number by itself."""
        import torch

        from shotproof.functional.feature_rows import PowerTransform

        raised = PowerTransform(self.power, self.negatives)  # type: ignore[arg-type]
        transformed: FloatArray = raised(torch.from_numpy(values)).numpy()
        return transformed


@dataclass(frozen=True)
class Project(Transform):
    """x times a random matrix of normal numbers over sqrt(d): fewer dimensions, distances kept about as they were.

    A stand-in for the trained layer by which DeepBDC and others reduce the channels of their maps.
    """

    about = "a random projection to fewer dimensions"
    example = "project(dimensions=128)"

    dimensions: int = option(help="how many are left", least=1)
    seed: int = option(0, "decides the projection", least=0, most=LARGEST_SEED)

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the same matrix for every location."""
        counters = np.arange(values.shape[1])[:, None], np.arange(self.dimensions), np.arange(2)[:, None, None]
        radius, angle = draws.uniform(draws.bits(self.seed, *counters))
        matrix = np.sqrt(-2 * np.log1p(-radius) / self.dimensions) * np.cos(2 * np.pi * angle)
        projected: FloatArray = np.moveaxis(np.tensordot(values, matrix, axes=(1, 0)), -1, 1)
        return projected


@dataclass(frozen=True)
class Pool(Transform):
    """The mean over equal parts of a map: fewer locations for the heads whose cost grows with their square."""

    about = "average maps down to fewer locations"
    example = "pool(height=3, width=3)"

    height: int = option(help="rows of locations that are left", least=1)
    width: int = option(help="columns of locations that are left", least=1)

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
        "standardize": "shotproof.features.transforms:Standardize",
        "l2": "shotproof.features.transforms:Unit",
        "power": "shotproof.features.transforms:Power",
        "project": "shotproof.features.transforms:Project",
        "pool": "shotproof.features.transforms:Pool",
    },
)


Step = str | Mapping[str, Any] | Transform


def transform(features: Features, steps: Step | Iterable[Step]) -> Features:
    """What is done to features before a method sees them.

    Args:
        features: vectors or maps
        steps: one or several, in order: spellings such as `l2` or `center(base='base.parquet')`, tables such as
            {"name": "pool", "height": 3, "width": 3}, or transforms

    Returns:
        New features, whose record has the steps. Tables call them `lite0 > center(base='base.parquet@1f2e3d4c') > l2`,
        so that results with another preprocessing are those of another classifier.

    Raises:
        UnknownName: no transform has this name.
        InputError: an option is wrong, or the step cannot be applied to such features.

    Example:
        >>> features = Features.from_array(["a"], [[3.0, 4.0]], name="mine")
        >>> unit = transform(features, "l2")
        >>> unit.name, unit.array.tolist()
        ('mine > l2', [[0.6000000238418579, 0.800000011920929]])
    """
    for step in [steps] if isinstance(steps, str | Mapping | Transform) else steps:
        made = transforms.make(step)
        made.prepare(features)
        features = _applied(features, made)
    return features


def _applied(features: Features, step: Transform) -> Features:
    values = features.array if features.shape is None else features.maps
    if not len(values):
        raise InputError(f"the features '{features.name}' have no items: there is nothing that {step} could change")
    rows = max(1, BLOCK_VALUES // max(1, values[:1].size))
    kind = np.float32 if features.shape is None else np.float16
    blocks = [
        step.apply(values[start : start + rows].astype(np.float64)).astype(kind)
        for start in range(0, len(values), rows)
    ]
    record = replace(
        features.record,
        transforms=(*features.record.transforms, Maker.of(step)),
        sources={**features.record.sources, "features": Source(features.digest, features.name)},
    )
    return Features.from_array(features.table.column("item").to_pylist(), np.concatenate(blocks), record=record)


def _along(row: FloatArray, values: FloatArray) -> FloatArray:
    """One number per channel, shaped so that it applies to vectors or maps."""
    return row.reshape(1, -1, *[1] * (values.ndim - 2))
