"""Fitted maps: linear maps of features, fitted on a base set, as small files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.core.records import MapRecord
from shotproof.core.tables import Tabular, conform, list_values, whole_column
from shotproof.functional.nuisance import LowRankMap

NUMBERS = {"scale": "number", "offset": "number"}
LISTS = {"directions": "floats", "images": "floats"}


@dataclass(frozen=True, repr=False)
class FittedMap(Tabular):
    """Map y = scale * x + sum over i of <x - offset, direction_i> * image_i, with one row per dimension.

    scale, offset: one number per dimension
    directions, images: lists of k float32 values: entry i of row j is dimension j of direction_i and of image_i

    The rank k is small for a projection, so that the file is small.

    Example:
        >>> first = np.array([[1.0], [0.0]])
        >>> without_first = FittedMap.of(LowRankMap(np.ones(2), np.zeros(2), first, -first))
        >>> without_first
        <FittedMap: fitted map of 2 dimensions, rank 1>
        >>> without_first.apply(np.array([[3.0, 4.0]])).tolist()
        [[0.0, 4.0]]
    """

    KIND, REQUIRED, RECORD = "fitted map", NUMBERS | LISTS, MapRecord

    table: pa.Table
    record: MapRecord = field(default_factory=MapRecord)

    def __post_init__(self) -> None:
        table = conform(self.table, self.REQUIRED, self.KIND)
        object.__setattr__(self, "table", table)
        if not len(table):
            raise InputError(f"{self.KIND}: expected one row per dimension, found no rows")
        ranks = [table.schema.field(name).type.list_size for name in LISTS]
        if ranks[0] != ranks[1]:
            raise InputError(f"{self.KIND}: expected as many images as directions, found {ranks[1]} and {ranks[0]}")
        for name in self.REQUIRED:
            column = whole_column(table.column(name))
            numbers = list_values(column) if name in LISTS else column
            if numbers.null_count or not pc.all(pc.is_finite(numbers)).as_py():
                raise InputError(f"{self.KIND}, column '{name}': expected finite numbers, found null or not finite")

    @classmethod
    def of(cls, low_rank: LowRankMap, record: MapRecord | None = None) -> FittedMap:
        """Build it from arrays, which are rounded to float32; a map of rank 0 gets a direction of zeros.

        Args:
            low_rank: the arrays
            record: what it was fitted on
        """
        d = len(low_rank.scale)
        columns = {name: pa.array(_rounded(getattr(low_rank, name)).astype(np.float64)) for name in NUMBERS}
        for name in LISTS:
            values = _rounded(getattr(low_rank, name)) if low_rank.directions.shape[1] else np.zeros((d, 1), np.float32)
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        return cls(pa.table(columns), record or MapRecord())

    @property
    def name(self) -> str:
        """Return its name: that of the transform that fitted it."""
        return self.record.name or "map"

    @property
    def dimensions(self) -> int:
        """Return the number of dimensions."""
        return int(self.table.num_rows)

    @property
    def rank(self) -> int:
        """Return the number of directions."""
        return int(self.table.schema.field("directions").type.list_size)

    def describe(self) -> str:
        """Return what fitted it, the number of dimensions and the rank."""
        by = f", by {self.record.transform}" if self.record.transform else ""
        return f"fitted map of {counted(self.dimensions, 'dimension')}, rank {self.rank}{by}"

    def apply(self, values: FloatArray) -> FloatArray:
        """Map vectors [n, d], or the vector at each location of maps [n, d, h, w].

        Raises:
            InputError: the values have another number of dimensions.
        """
        if values.ndim < 2 or values.shape[1] != self.dimensions:
            raise InputError(
                f"{self.KIND} '{self.name}': expected values of {self.dimensions} dimensions, "
                f"found an array of shape {list(values.shape)}"
            )
        scale, offset, directions, images = self.arrays
        rows = np.moveaxis(values, 1, -1)
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are reported with their item
            mapped: FloatArray = rows * scale + ((rows - offset) @ directions) @ images.T
        return np.moveaxis(mapped, -1, 1)

    @cached_property
    def arrays(self) -> LowRankMap:
        """Return the columns as float64 arrays: [d] twice, [d, k] twice."""
        arrays = [
            list_values(column).to_numpy(zero_copy_only=False).reshape(-1, self.rank) if name in LISTS else column
            for name, column in ((name, whole_column(self.table.column(name))) for name in self.REQUIRED)
        ]
        return LowRankMap(*(np.asarray(array, dtype=np.float64) for array in arrays))


def _rounded(values: FloatArray) -> npt.NDArray[np.float32]:
    """Round each column to 24 bits below its largest number, which hides in which order libraries add up."""
    _, exponents = np.frexp(np.abs(values).max(axis=0, initial=0))
    steps = np.ldexp(1.0, exponents - 24)
    return np.ascontiguousarray(np.round(values / steps) * steps, dtype=np.float32)
