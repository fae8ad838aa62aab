"""What an encoder makes of items: a vector each, or a local map."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shotproof.errors import InputError, Mismatch
from shotproof.features.mapped import is_large, map_features
from shotproof.tables import Meta, conform, digest, list_values, read_table, require_unique, whole_column, write_table

REQUIRED = {"item": "string", "feature": "floats"}
GROUP_BYTES = 2**26  # of a row group of the file
BLOCK_ROWS = 256  # of maps that are averaged at a time


@dataclass(frozen=True)
class Features:
    """A row an item: `item` and `feature`, a fixed-size list of float32 or float16; all values finite.

    Local maps of d channels and h x w locations are lists of d h w numbers, with `shape` [d, h, w] in the metadata.
    """

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", conform(self.table, REQUIRED, "features"))
        require_unique(self.table.column("item"), "features, column 'item'")
        if self.shape is not None:
            _check_shape(self.shape, self.table.schema.field("feature").type.list_size)

    @classmethod
    def from_array(cls, items: Any, values: npt.ArrayLike, meta: Meta | None = None) -> Features:
        """From item identifiers [n] and values [n, d], or maps [n, d, h, w], which are kept in float16.

        A value that is not finite is an error that names its item.
        """
        array = np.asarray(values)
        if array.ndim not in (2, 4) or array.shape[0] != len(items) or 0 in array.shape[1:]:
            wanted = f"[{len(items)}, d], or [{len(items)}, d, h, w] for maps"
            raise InputError(f"features: expected an array of shape {wanted}, found {list(array.shape)}")
        shape = {"shape": list(array.shape[1:])} if array.ndim == 4 else {}
        half = array.dtype == np.float16 or array.ndim == 4
        with np.errstate(over="ignore"):  # too large for the type is told as not finite
            array = np.ascontiguousarray(array.reshape(len(items), -1), dtype=np.float16 if half else np.float32)
        broken = ~np.isfinite(array).all(axis=1)
        if broken.any():
            raise InputError(f"features: item '{items[int(np.argmax(broken))]}' has a value that is not finite")
        feature = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        return cls(pa.table({"item": pa.array(items, pa.string()), "feature": feature}), {**(meta or {}), **shape})

    @classmethod
    def read(cls, path: str | Path) -> Features:
        """Read features.parquet; a large one is mapped into memory instead."""
        path = Path(path)
        if not is_large(path):
            return cls(*read_table(path, "features", REQUIRED))
        items, meta = read_table(path, "features", {"item": "string"}, columns=["item"])
        conform(pq.read_schema(path).empty_table(), REQUIRED, f"features file {path}")
        return cls(pa.table({"item": items.column("item"), "feature": map_features(path)}), meta)

    def write(self, path: str | Path) -> None:
        """Write features.parquet."""
        kind = self.table.schema.field("feature").type
        rows = max(1, GROUP_BYTES // (kind.list_size * kind.value_type.bit_width // 8))
        write_table(Path(path), self.table, {**self.meta, "kind": "features", "digest": self.digest}, group_rows=rows)

    @property
    def name(self) -> str:
        """The encoder's name, or `features` where it is not known."""
        return str(self.meta.get("made_by", {}).get("encoder", "features"))

    @cached_property
    def digest(self) -> str:
        """Digest of the content."""
        return digest(self.table, ["item", "feature"])

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of local maps; None where an item has one vector."""
        shape = self.meta.get("shape")
        return tuple(shape) if shape is not None else None

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """A vector an item, [n, d], float32 or float16; of maps, the mean over their locations."""
        if self.shape is None:
            return self._values
        blocks = range(0, len(self), BLOCK_ROWS)
        means = [self.maps[start : start + BLOCK_ROWS].mean(axis=(2, 3), dtype=np.float32) for start in blocks]
        return np.concatenate(means) if means else np.empty((0, self.shape[0]), np.float32)

    @property
    def maps(self) -> npt.NDArray[Any]:
        """The local maps, [n, d, h, w]; an error where there are none."""
        if self.shape is None:
            raise InputError(
                f"features of '{self.name}' are one vector an item: shotproof encode --maps makes local maps"
            )
        return self._values.reshape(-1, *self.shape)

    @cached_property
    def _values(self) -> npt.NDArray[Any]:
        """The numbers of each row."""
        column = whole_column(self.table.column("feature"))
        values: npt.NDArray[Any] = list_values(column).to_numpy(zero_copy_only=False)
        return values.reshape(len(column), column.type.list_size)

    def rows_of(self, items: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The row of each item; an item without a feature is an error that names it."""
        rows = pc.index_in(items, value_set=self.table.column("item"))
        if rows.null_count:
            missing = items.filter(pc.is_null(rows))
            raise Mismatch(
                f"the features lack {pc.count_distinct(missing).as_py()} items, e.g. '{missing[0].as_py()}': "
                "were they made from another catalog? (shotproof encode makes them anew)"
            )
        found: npt.NDArray[np.int64] = rows.to_numpy(zero_copy_only=False).astype(np.int64)
        return found

    def __len__(self) -> int:
        return int(self.table.num_rows)


def _check_shape(shape: Any, size: int) -> None:
    """Refuse a shape in somebody's metadata that is not that of the lists."""
    whole = len(shape) == 3 and all(type(length) is int and length > 0 for length in shape)
    if not whole or math.prod(shape) != size:
        raise InputError(f"features: expected a shape [d, h, w] of {size} numbers in the metadata, found {list(shape)}")
