"""Features: a vector or a local map for each item."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch, did_you_mean, error_prefix
from shotproof.core.nouns import counted
from shotproof.core.records import FeaturesRecord, Source
from shotproof.core.tables import (
    Tabular,
    conform,
    digest,
    find_rows,
    list_values,
    read_parquet_schema,
    read_table,
    require_unique,
    whole_column,
    write_table,
)
from shotproof.features.mapped import Mapped, is_large, map_features

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = {"item": "string", "feature": "floats"}
TEXT = "class_text"
GROUP_BYTES = 2**26  # size of a row group in the file
BLOCK_ROWS = 256  # number of maps that are averaged at a time


@dataclass(frozen=True)
class Tally:
    """Numbers of items that were encoded, and that came from the cache or are copies of another item."""

    encoded: int = 0
    reused: int = 0


@dataclass(frozen=True, repr=False)
class Features(Tabular):
    """Table with one row per item: `item`, and `feature`, a fixed-size list of finite float32 or float16 values.

    Local maps of d channels and h x w locations are lists of d h w numbers, with `shape` [d, h, w] in the record.
    Features of a two-tower model may have a column `class_text`: the text of each item's class, in the same space.
    If `encode` has just computed the features, `tally` has the numbers of encoded and reused items.
    """

    table: pa.Table
    record: FeaturesRecord = field(default_factory=FeaturesRecord)
    tally: Tally | None = field(default=None, compare=False)
    mapped: Mapped | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        columns = REQUIRED | ({TEXT: "floats"} if TEXT in self.table.column_names else {})
        object.__setattr__(self, "table", conform(self.table, columns, "features"))
        require_unique(self.table.column("item"), "features, column 'item'")
        if self.shape is not None:
            _check_shape(self.shape, self.table.schema.field("feature").type.list_size)

    @classmethod
    def from_array(
        cls,
        items: Any,
        values: npt.ArrayLike,
        *,
        name: str = "",
        record: FeaturesRecord | None = None,
        tally: Tally | None = None,
    ) -> Features:
        """Build features from an array.

        Args:
            items: identifiers, [n]
            values: vectors [n, d], or maps [n, d, h, w], which are stored in float16
            name: name of the features in tables
            record: sources of the features, if known
            tally: numbers of encoded and reused items, if known

        Returns:
            The features, one row per item.

        Raises:
            InputError: the shapes do not fit, or a value is not finite; the message names its item.

        Example:
            >>> Features.from_array(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], name="mine").array.shape
            (2, 2)
        """
        array = np.asarray(values)
        if array.ndim not in (2, 4) or array.shape[0] != len(items) or 0 in array.shape[1:]:
            expected = f"[{len(items)}, d], or [{len(items)}, d, h, w] for maps"
            raise InputError(f"features: expected an array of shape {expected}, found {list(array.shape)}")
        shape = array.shape[1:] if array.ndim == 4 else None
        is_half = array.dtype == np.float16 or array.ndim == 4
        with np.errstate(over="ignore"):  # values too large for the type are reported as not finite
            array = np.ascontiguousarray(array.reshape(len(items), -1), dtype=np.float16 if is_half else np.float32)
        has_infinite = ~np.isfinite(array).all(axis=1)
        if has_infinite.any():
            raise InputError(f"features: item '{items[int(np.argmax(has_infinite))]}' has a value that is not finite")
        feature = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        record = replace(record or FeaturesRecord(), shape=shape)
        record = replace(record, name=name) if name else record
        return cls(pa.table({"item": pa.array(items, pa.string()), "feature": feature}), record, tally)

    @classmethod
    def read(cls, path: str | Path) -> Features:
        """Read features.parquet. The values of a large file are memory-mapped."""
        path = Path(path)
        if not is_large(path):
            table, record = read_table(path, "features", REQUIRED, FeaturesRecord)
            with error_prefix(f"{path}: "):
                return cls(table, record)
        schema = read_parquet_schema(path, f"features file {path}")
        conform(schema.empty_table(), REQUIRED, f"features file {path}")
        text_column = [TEXT] if TEXT in schema.names else []
        small_columns, record = read_table(
            path, "features", {"item": "string"}, FeaturesRecord, columns=["item", *text_column]
        )
        with error_prefix(f"{path}: "):
            return cls._from_mapped(small_columns, record, map_features(path))

    @classmethod
    def _from_mapped(cls, other_columns: pa.Table, record: FeaturesRecord, mapped: Mapped) -> Features:
        """Build features from memory-mapped values and their other columns."""
        return cls(other_columns.add_column(1, "feature", mapped.column()), record, mapped=mapped)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.mapped is None:
            return Features, (self.table, self.record, self.tally)
        return Features._from_mapped, (self.table.drop_columns(["feature"]), self.record, self.mapped)

    def write(self, path: str | Path) -> None:
        """Write features.parquet."""
        kind = self.table.schema.field("feature").type
        rows = max(1, GROUP_BYTES // (kind.list_size * kind.value_type.bit_width // 8))
        write_table(Path(path), self.table, "features", self.record, self.digest, group_rows=rows)

    @property
    def name(self) -> str:
        """Return the name in tables: the encoder and the transforms after it, or `features` if these are unknown."""
        return self.record.classifier

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Features:
        """Build features from a data frame with the columns `item` and `feature`, vectors of the same length."""
        for name in REQUIRED:
            if name not in frame.columns:
                raise InputError(f"the data frame has no column '{name}'{did_you_mean(name, map(str, frame.columns))}")
        lengths = {np.shape(value) for value in frame["feature"]}
        if len(lengths) != 1:
            raise InputError(
                f"the data frame's column 'feature' has values of {len(lengths)} shapes: expected vectors of one length"
            )
        return cls.from_array(list(frame["item"]), np.stack(list(frame["feature"])))

    def describe(self) -> str:
        """Return the encoder, the number of items, and the size of a vector or map."""
        size = " x ".join(map(str, self.shape)) if self.shape else self.table.schema.field("feature").type.list_size
        return f"{self.name}, {counted(len(self), 'item')} of {size} numbers"

    @cached_property
    def digest(self) -> str:
        """Return the digest of the content."""
        return digest(self.table, ["item", "feature", *([TEXT] if TEXT in self.table.column_names else [])])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return the channels, height and width of local maps; None if each item has one vector."""
        return self.record.shape

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """Return one vector per item, [n, d], float32 or float16; for maps, the mean over their locations."""
        if self.shape is None:
            return self._values
        blocks = range(0, len(self), BLOCK_ROWS)
        means = [self.maps[start : start + BLOCK_ROWS].mean(axis=(2, 3), dtype=np.float32) for start in blocks]
        return np.concatenate(means) if means else np.empty((0, self.shape[0]), np.float32)

    @property
    def maps(self) -> npt.NDArray[Any]:
        """Return the local maps, [n, d, h, w]. Raise InputError if there are none."""
        if self.shape is None:
            raise InputError(
                f"features of '{self.name}' are one vector per item: an encoder with maps=True gives local maps"
            )
        return self._values.reshape(-1, *self.shape)

    @cached_property
    def texts(self) -> npt.NDArray[Any] | None:
        """Return the text of each item's class, [n, d]; None if there are no texts."""
        return _to_array(self.table.column(TEXT)) if TEXT in self.table.column_names else None

    def with_texts(self, catalog: Catalog, texts: Features) -> Features:
        """Add the texts of the classes to the features, for methods that use them, such as `zero-shot`.

        Args:
            catalog: catalog with the class of each item
            texts: features of all labels, whose items are the labels, in the same space as these features

        Raises:
            Mismatch: the catalog lacks items, or the dimensions differ.
            InputError: the texts lack a label, or these features are maps.

        Example:
            >>> import shotproof as sp
            >>> columns = {"item": ["a"], "path": ["a.png"], "label": ["owl"], "split": ["test"]}
            >>> images, words = Features.from_array(["a"], [[3.0, 4.0]]), Features.from_array(["owl"], [[0.0, 1.0]])
            >>> images.with_texts(sp.Catalog(pa.table(columns)), words).texts.tolist()
            [[0.0, 1.0]]
        """
        if self.shape is not None:
            raise InputError(f"features of '{self.name}' are local maps: texts need one vector per item")
        if self.array.shape[1] != texts.array.shape[1]:
            raise Mismatch(
                f"the features have {self.array.shape[1]} dimensions and the texts {texts.array.shape[1]}: expected "
                "both in one space, like that of a two-tower model after its projections"
            )
        labels = catalog.table.column("label").take(pa.array(catalog.rows_of(self.table.column("item"), "features")))
        rows = pc.index_in(labels, value_set=texts.table.column("item"))
        if rows.null_count:
            label = labels.filter(pc.is_null(rows))[0].as_py()
            raise InputError(
                f"the texts lack the class '{label}'{did_you_mean(label, texts.table['item'].to_pylist())}"
            )
        vectors = texts.array[rows.to_numpy()].astype(np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = self.table.drop_columns([TEXT]) if TEXT in self.table.column_names else self.table
        sources = {**self.record.sources, "texts": Source(texts.digest, texts.name)}
        return replace(self, table=table.append_column(TEXT, column), record=replace(self.record, sources=sources))

    @cached_property
    def _values(self) -> npt.NDArray[Any]:
        """Return the values of each row, [n, length]."""
        return _to_array(self.table.column("feature"))

    def rows_of(self, items: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Return the row of each item. An item without a feature is an error that names it."""
        hint = ": were they made from another catalog? sp.encode computes them, those of changed items with tasks=[...]"
        return find_rows(items, self.table.column("item"), "the features lack", hint)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def _to_array(lists: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Convert a column of lists of one length to an array, [n, length]."""
    column = whole_column(lists)
    values: npt.NDArray[Any] = list_values(column).to_numpy(zero_copy_only=False)
    return values.reshape(len(column), column.type.list_size)


def _check_shape(shape: Any, size: int) -> None:
    """Check that the shape in the metadata fits the length of the lists."""
    is_valid = len(shape) == 3 and all(type(length) is int and length > 0 for length in shape)
    if not is_valid or math.prod(shape) != size:
        raise InputError(f"features: expected a shape [d, h, w] of {size} numbers in the metadata, found {list(shape)}")
