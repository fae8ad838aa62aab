"""Transforms of features: explicit preprocessing steps, which are part of the features' name.

Vectors are [n, d]. The dimensions of maps [n, d, h, w] are their channels: each location is treated as a vector.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core import draws
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.file_options import FileOptions
from shotproof.core.limits import LARGEST_SEED
from shotproof.core.options import Component, option
from shotproof.core.records import FittedOn, Maker, Source
from shotproof.core.registry import Registry
from shotproof.features.features import Features

BLOCK_VALUES = 2**24  # number of values that are transformed at a time


class Transform(Component, ABC):
    """One step of preprocessing, which treats each item independently of the others."""

    kind = "transform"

    def after(self, features: Features, steps: Mapping[str, Transform]) -> Self:
        """Return the step as it is applied to features that went through other steps.

        Args:
            features: the features
            steps: those of the earlier steps that are at hand, by their spellings
        """
        return self

    def prepare(self, features: Features) -> None:
        """Check that the transform can be applied to these features."""

    def remarks(self, features: Features) -> Iterator[str]:
        """Yield warnings about these features, such as that they are those that the transform was fitted on."""
        yield from ()

    def fitted_on(self) -> FittedOn | None:
        """Return what was fitted, and on how many classes; None for a step that needs no classes."""
        return None

    @abstractmethod
    def apply(self, values: FloatArray) -> FloatArray:
        """Transform vectors [n, d] or maps [n, d, h, w]."""

    def apply_to(self, features: Features) -> npt.NDArray[Any]:
        """Transform all items. A step that needs to know which items they are replaces this, not `apply`."""
        return in_blocks(features, lambda values, _rows: self.apply(values))


@dataclass(frozen=True)
class OnBase(Transform, FileOptions):
    """Step that uses the statistics of a base set, which should be disjoint from the test set."""

    base: Path | Features = option(help="features of the base set", path=True)

    def prepare(self, features: Features) -> None:
        """Check that the base set has the features' dimensions."""
        base = self.base_set
        if dimensions(features) != dimensions(base):
            raise Mismatch(
                f"transform '{self.name}': the base set has {dimensions(base)} dimensions "
                f"('{base.name}'), the features {dimensions(features)} ('{features.name}'): use one encoder for both"
            )

    def remarks(self, features: Features) -> Iterator[str]:
        """Warn if the base set contains all items."""
        if self._has_all_items(features):
            yield "the base set contains all items to evaluate: its statistics leak information about the test set"

    @cached_property
    def base_set(self) -> Features:
        """Return the features of the base set."""
        base: Features = self.content("base")
        return base

    @property
    def base_items(self) -> pa.Array | pa.ChunkedArray:
        """Return the items of the base set."""
        return self.base_set.table.column("item")

    def _has_all_items(self, features: Features) -> bool:
        """Return whether all items of the features are in the base set."""
        return bool(pc.all(pc.is_in(features.table.column("item"), value_set=self.base_items)).as_py())

    @cached_property
    def mean(self) -> FloatArray:
        """Return the mean of the base set, [d]."""
        mean: FloatArray = self.base_set.array.astype(np.float64).mean(0)
        return mean

    @cached_property
    def std(self) -> FloatArray:
        """Return the standard deviation of the base set, [d]."""
        std: FloatArray = self.base_set.array.astype(np.float64).std(0)
        return std


@dataclass(frozen=True)
class Center(OnBase):
    """x - mean of a base set, as in SimpleShot's CL2N (Wang et al. 2019)."""

    about = "subtract the mean of a base set"
    paper = "Wang et al., SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot Learning, 2019"
    example = "center(base='base.parquet')"

    def apply(self, values: FloatArray) -> FloatArray:
        """Subtract the mean of each channel; for maps, at every location."""
        return values - per_channel(self.mean, values)


@dataclass(frozen=True)
class Standardize(OnBase):
    """(x - mean) / std of a base set; a dimension that is constant there is only centered."""

    about = "subtract the mean of a base set and divide by its standard deviation"
    example = "standardize(base='base.parquet')"

    def apply(self, values: FloatArray) -> FloatArray:
        """Standardize each channel."""
        std = np.where(self.std > 0, self.std, 1.0)
        return (values - per_channel(self.mean, values)) / per_channel(std, values)


@dataclass(frozen=True)
class Unit(Transform):
    """x / |x|; zero stays zero."""

    about = "scale to length 1"

    def apply(self, values: FloatArray) -> FloatArray:
        """Scale each vector; for maps, the vector at each location."""
        lengths = np.sqrt((values**2).sum(axis=1, keepdims=True))
        return values / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True)
class Power(Transform):
    """(x + 1e-6)^power, for non-negative features, such as those after a ReLU (PT-MAP; Hu et al. 2021).

    For values below 0, `signed` mirrors the function, -(|x| + 1e-6)^power; `relu` replaces them with 0; `refuse` raises
    an error.
    """

    about = "raise to a power, sign kept"
    paper = "Hu, Gripon and Pateux, Leveraging the Feature Distribution in Transfer-Based Few-Shot Learning, 2021"
    example = "power(power=0.5)"

    power: float = option(0.5, "exponent", above=0)
    negatives: str = option("signed", "how to treat values below 0", choices=("signed", "relu", "refuse"))

    def apply(self, values: FloatArray) -> FloatArray:
        """Raise each value to the power."""
        import torch

        from shotproof.functional.feature_rows import PowerTransform

        raise_to_power = PowerTransform(self.power, self.negatives)  # type: ignore[arg-type]
        transformed: FloatArray = raise_to_power(torch.from_numpy(values)).numpy()
        return transformed


@dataclass(frozen=True)
class Project(Transform):
    """x times a matrix of normal random numbers over sqrt(d): fewer dimensions, with distances about preserved.

    It stands in for the trained layer by which DeepBDC and others reduce the channels of their maps.
    """

    about = "a random projection to fewer dimensions"
    example = "project(dimensions=128)"

    dimensions: int = option(help="number of dimensions after the projection", least=1)
    seed: int = option(0, "random seed of the projection", least=0, most=LARGEST_SEED)

    def apply(self, values: FloatArray) -> FloatArray:
        """Project each vector; for maps, with the same matrix at every location."""
        counters = np.arange(values.shape[1])[:, None], np.arange(self.dimensions), np.arange(2)[:, None, None]
        radius, angle = draws.uniform(draws.bits(self.seed, *counters))
        matrix = np.sqrt(-2 * np.log1p(-radius) / self.dimensions) * np.cos(2 * np.pi * angle)
        projected: FloatArray = np.moveaxis(np.tensordot(values, matrix, axes=(1, 0)), -1, 1)
        return projected


@dataclass(frozen=True)
class Pool(Transform):
    """Mean over equal parts of a map: fewer locations for heads whose cost grows with the square of their number."""

    about = "average maps down to fewer locations"
    example = "pool(height=3, width=3)"

    height: int = option(help="rows of locations after pooling", least=1)
    width: int = option(help="columns of locations after pooling", least=1)

    def prepare(self, features: Features) -> None:
        """Check that the features are maps of at least this size."""
        _, height, width = features.maps.shape[1:]
        if self.height > height or self.width > width:
            raise InputError(f"transform 'pool': maps of {height} x {width} have no {self.height} x {self.width} parts")

    def apply(self, values: FloatArray) -> FloatArray:
        """Average parts of each map, which overlap by a location if the sizes do not divide."""
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
        "wccn": "shotproof.features.nuisance_transforms:Wccn",
        "nap": "shotproof.features.nuisance_transforms:Nap",
        "leace": "shotproof.features.nuisance_transforms:Leace",
        "center-contexts": "shotproof.features.nuisance_transforms:CenterContexts",
        "fitted": "shotproof.features.map_transforms:Fitted",
    },
)


Step = str | Mapping[str, Any] | Transform


def transform(features: Features, steps: Step | Iterable[Step]) -> Features:
    """Apply one or more transforms to features.

    Args:
        features: vectors or maps
        steps: one or more transforms, in order: spellings such as `l2` or `center(base='base.parquet')`, tables such as
            {"name": "pool", "height": 3, "width": 3}, or objects

    Returns:
        New features, whose record has the steps. Their name is, for example,
        `lite0 > center(base='base.parquet@1f2e3d4c') > l2`, so that results with another preprocessing are those of
        another classifier.

    Raises:
        UnknownName: no transform has this name.
        InputError: an option is invalid, or the step cannot be applied to such features.

    Example:
        >>> features = Features.from_array(["a"], [[3.0, 4.0]], name="mine")
        >>> unit = transform(features, "l2")
        >>> unit.name, unit.array.tolist()
        ('mine > l2', [[0.6000000238418579, 0.800000011920929]])
    """
    earlier: dict[str, Transform] = {}
    for step in [steps] if isinstance(steps, str | Mapping | Transform) else steps:
        prepared, transformed = apply_step(features, step, earlier)
        for remark in prepared.remarks(features):
            warnings.warn(f"transform '{prepared.name}': {remark}", UserWarning, stacklevel=3)
        features = transformed
    return features


def apply_step(features: Features, step: Step, earlier: dict[str, Transform]) -> tuple[Transform, Features]:
    """Apply one step without remarks.

    Args:
        features: vectors or maps
        step: the step
        earlier: steps that the features went through, by their spellings, to which the step is added

    Returns:
        The step as it was applied, and the new features.
    """
    prepared = transforms.make(step).after(features, earlier)
    prepared.prepare(features)
    earlier[prepared.spelling] = prepared
    return prepared, _apply(features, prepared)


def in_blocks(features: Features, change: Callable[[FloatArray, slice], FloatArray]) -> npt.NDArray[Any]:
    """Transform the values of features block by block, so that not all are in memory in float64.

    Args:
        features: vectors or maps
        change: changes the values of some rows, [b, d] or [b, d, h, w], given these and the rows

    Returns:
        The new values, in float32 for vectors, in float16 for maps.
    """
    values = features.array if features.shape is None else features.maps
    size = max(1, BLOCK_VALUES // max(1, values[:1].size))
    kind = np.float32 if features.shape is None else np.float16
    starts = range(0, len(values), size)
    blocks = [
        change(values[rows].astype(np.float64), rows).astype(kind)
        for rows in (slice(start, min(start + size, len(values))) for start in starts)
    ]
    return np.concatenate(blocks)


def dimensions(features: Features) -> int:
    """Return the number of dimensions of vectors, or of the channels of maps."""
    return int(features.array.shape[1] if features.shape is None else features.shape[0])


def per_channel(row: FloatArray, values: FloatArray) -> FloatArray:
    """Reshape numbers per channel, [d] or [n, d], so that they broadcast to vectors [n, d] or maps [n, d, h, w]."""
    return row.reshape(*row.shape[:-1] or [1], -1, *[1] * (values.ndim - 2))


def _apply(features: Features, step: Transform) -> Features:
    if not len(features):
        raise InputError(f"the features '{features.name}' have no items for transform '{step}'")
    fitted_on = step.fitted_on()
    record = replace(
        features.record,
        transforms=(*features.record.transforms, Maker.of(step)),
        fitted=(*features.record.fitted, *([fitted_on] if fitted_on else [])),
        sources={**features.record.sources, "features": Source(features.digest, features.name)},
    )
    return Features.from_array(features.table.column("item").to_pylist(), step.apply_to(features), record=record)
