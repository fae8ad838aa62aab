"""What an encoder makes of items: one vector an item."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import InputError, Mismatch
from shotproof.tables import Meta, conform, digest, read_table, require_unique, write_table

REQUIRED = {"item": "string", "feature": "floats"}


@dataclass(frozen=True)
class Features:
    """A row an item: `item` and `feature`, a fixed-size list of float32 or float16; all values finite."""

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", conform(self.table, REQUIRED, "features"))
        require_unique(self.table.column("item"), "features, column 'item'")

    @classmethod
    def from_array(cls, items: Any, values: npt.ArrayLike, meta: Meta | None = None) -> Features:
        """From item identifiers [n] and values [n, d]; a value that is not finite is an error that names its item."""
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[0] != len(items) or array.shape[1] == 0:
            raise InputError(f"features: expected an array of shape [{len(items)}, d], found {list(array.shape)}")
        array = np.ascontiguousarray(array, dtype=np.float16 if array.dtype == np.float16 else np.float32)
        broken = ~np.isfinite(array).all(axis=1)
        if broken.any():
            raise InputError(f"features: item '{items[int(np.argmax(broken))]}' has a value that is not finite")
        feature = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        return cls(pa.table({"item": pa.array(items, pa.string()), "feature": feature}), meta or {})

    @classmethod
    def read(cls, path: str | Path) -> Features:
        """Read features.parquet."""
        table, meta = read_table(Path(path), "features", REQUIRED)
        return cls(table, meta)

    def write(self, path: str | Path) -> None:
        """Write features.parquet."""
        write_table(Path(path), self.table, {**self.meta, "kind": "features", "digest": self.digest})

    @property
    def name(self) -> str:
        """The encoder's name, or `features` where it is not known."""
        return str(self.meta.get("made_by", {}).get("encoder", "features"))

    @cached_property
    def digest(self) -> str:
        """Digest of the content."""
        return digest(self.table, ["item", "feature"])

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """The values, [n, d], float32 or float16."""
        column = self.table.column("feature").combine_chunks()
        values: npt.NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
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
