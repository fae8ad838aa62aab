"""The encoder `file`: features computed elsewhere, as NumPy arrays or Parquet with item identifiers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import option
from shotproof.core.records import FeaturesRecord
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.numpy_files import read_npy, read_npz
from shotproof.core.storage.store import OnError
from shotproof.core.tables import find_rows, read_table, require_unique
from shotproof.features.encoder import Encoder
from shotproof.features.features import Features


@dataclass(frozen=True)
class FeatureFile(Encoder):
    """Features from a file, as float32; local maps [n, d, h, w] as float16.

    `.npy`: an array [n, d], its rows in the order of the catalog. `.npz`: arrays `items` [n] (strings) and
    `features` [n, d]. `.parquet`: columns `item` and `feature` (lists of one length). Items that are not in the catalog
    are left out. The record of a Parquet file states which transforms of the features were fitted on classes.
    """

    about = "features made elsewhere: npy, npz or Parquet"
    example = "file:features.npz"

    path: Path = option(help="file of features", argument=True, path=True)

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        """Read the file, and put its rows in the order of the catalog."""
        readers = {".npy": self._read_npy, ".npz": self._read_npz, ".parquet": self._read_parquet}
        if self.path.suffix not in readers:
            raise InputError(f"features file {self.path}: expected a file name that ends with {', '.join(readers)}")
        items, values, record = readers[self.path.suffix]()
        if values.ndim not in (2, 4):
            raise InputError(
                f"features file {self.path}: expected [n, d] values, or maps [n, d, h, w], found {list(values.shape)}"
            )
        rows = self._find_rows(items, len(values), catalog)
        with np.errstate(over="ignore"):  # values too large for float32 are reported as not finite
            return Features.from_array(catalog.items, values[rows].astype(np.float32), record=record)

    def _find_rows(self, items: pa.Array | None, count: int, catalog: Catalog) -> npt.NDArray[np.int64]:
        """Return the row of each item of the catalog."""
        if items is None:
            if count != len(catalog):
                raise InputError(
                    f"features file {self.path} has {count} rows, the catalog has {len(catalog)} items: "
                    "a file without item identifiers must have one row per item, in the order of the catalog"
                )
            return np.arange(count)
        if len(items) != count:
            raise InputError(f"features file {self.path}: {len(items)} items, but {count} rows of features")
        require_unique(items, f"features file {self.path}, items")
        return find_rows(catalog.item_column, items, f"features file {self.path} lacks")

    def _read_npy(self) -> tuple[None, npt.NDArray[Any], FeaturesRecord]:
        return None, self._require_numbers(read_npy(self.path, f"features file {self.path}")), FeaturesRecord()

    def _read_npz(self) -> tuple[pa.Array, npt.NDArray[Any], FeaturesRecord]:
        arrays = read_npz(self.path, f"features file {self.path}", ("items", "features"))
        items = arrays["items"]
        if items.ndim != 1 or items.dtype.kind != "U":
            raise InputError(f"features file {self.path}: 'items' must be [n] strings, found {items.dtype}")
        try:
            identifiers = pa.array(items.tolist(), pa.string())
            identifiers.validate(full=True)  # NumPy accepts numbers that are not characters, and Arrow some of them
        except (ValueError, SystemError) as error:
            problem = "half a surrogate pair, or a number that is not a character"
            raise InputError(f"features file {self.path}: 'items' must be text, found {problem}") from error
        return identifiers, self._require_numbers(arrays["features"]), FeaturesRecord()

    def _read_parquet(self) -> tuple[pa.Array, npt.NDArray[Any], FeaturesRecord]:
        table, record = read_table(self.path, "features", {"item": "string"}, FeaturesRecord)
        if "feature" not in table.column_names:
            hint = did_you_mean("feature", table.column_names)
            raise InputError(f"features file {self.path} has no column 'feature'{hint}")
        feature = table.column("feature").combine_chunks()
        lengths = pc.unique(pc.list_value_length(feature)) if _is_list(feature.type) else []
        if len(lengths) != 1 or not lengths[0].is_valid:
            raise InputError(f"features file {self.path}, column 'feature': expected lists of one length")
        if not pa.types.is_floating(feature.type.value_type) and not pa.types.is_integer(feature.type.value_type):
            raise InputError(f"features file {self.path}, column 'feature': expected numbers, found {feature.type}")
        values = pc.fill_null(feature.flatten().cast(pa.float64()), np.nan).to_numpy()
        return table.column("item"), values.reshape(len(feature), -1), FeaturesRecord(fitted=record.fitted)

    def _require_numbers(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.dtype.kind not in "fiu":
            raise InputError(f"features file {self.path}: expected an array of numbers, found {values.dtype}")
        return values


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
