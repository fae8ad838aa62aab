"""The encoder `dial`: it relies on the context to a known degree, to calibrate measurements of such reliance.

It reads the catalog's columns, not pictures. With a share s of context, an item's feature is

    sqrt(1 - s) * code(label)  +  sqrt(s) * sum of code(factor, value) / sqrt(number of factors)  +  noise

where a code is a random vector of length 1. For every share, context and noise together have `noise` times the variance
of the label's part. The label is therefore equally distinct, and accuracy on random tasks hardly changes; only the
disturbance changes, from pure chance (at s = 0 no feature depends on the context) to the context. From
s = noise / (noise + 1) on, there is no room for noise, and the label becomes weaker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import bits
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import LARGEST_SEED
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoder import Encoder
from shotproof.features.features import Features
from shotproof.worlds.shapes import FACTORS

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DialEncoder(Encoder):
    """Mixture of the label's code with the codes of the context factors, at a known share."""

    about = "synthetic: mixes label and context at a known share, to calibrate"
    example = "dial(share=0.3)"

    share: float = option(0.5, "share of the context: 0 is the label alone, 1 the context alone", least=0, most=1)
    dimensions: int = option(64, "number of dimensions of the features", least=1)
    noise: float = option(4.0, "variance of context and noise, relative to the label's", least=0)
    seed: int = option(0, "random seed of the codes", least=0, most=LARGEST_SEED)
    factors: tuple[str, ...] = option(tuple(FACTORS), "columns of the catalog that are context")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factors:
            raise InputError("encoder 'dial': factors: expected at least one column of the catalog, found none")

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        """Compute one feature per item, [items, dimensions], which depends only on the item's row."""
        columns = catalog.table.column_names
        for factor in self.factors:
            if factor not in columns:
                raise InputError(
                    "encoder 'dial' needs the context factors of a synthetic world, but the catalog "
                    f"has no column '{factor}'{did_you_mean(factor, columns)}"
                )
        label = self._codes(catalog, "label")
        context = sum(self._codes(catalog, factor) for factor in self.factors) / np.sqrt(len(self.factors))
        room = max(self.noise * (1 - self.share) - self.share, 0.0)
        values = np.sqrt(1 - self.share) * label + np.sqrt(self.share) * context + np.sqrt(room) * self._noise(catalog)
        return Features.from_array(catalog.items, values)

    def _codes(self, catalog: Catalog, column: str) -> FloatArray:
        """Compute the code of each item's value in a column, of length 1, [items, dimensions]."""
        encoded = pc.dictionary_encode(catalog.table.column(column).combine_chunks())
        random_bits = self._bits([f"{column}={value}" for value in encoded.dictionary.to_pylist()])
        signs = (random_bits >> np.uint64(63)).astype(np.float64) * 2 - 1
        codes: FloatArray = (signs / np.sqrt(self.dimensions))[encoded.indices.to_numpy()]
        return codes

    def _noise(self, catalog: Catalog) -> FloatArray:
        """Compute nearly normal noise of total variance 1 from the items' names alone, [items, dimensions]."""
        random_bits = self._bits([f"item={item}" for item in catalog.items])
        # Four uniform numbers of 16 bits add up to a nearly normal one, bit for bit the same on every machine.
        sums = random_bits.view(np.uint16).reshape(*random_bits.shape, 4).sum(axis=-1, dtype=np.int64)
        centered = (sums - 2 * 0xFFFF) / 2**16
        noise: FloatArray = centered * np.sqrt(3 / self.dimensions)
        return noise

    def _bits(self, texts: Sequence[str]) -> npt.NDArray[np.uint64]:
        """Draw random bits for each text and dimension, [texts, dimensions]."""
        digests = [hashlib.sha256(text.encode()).digest()[:8] for text in texts]
        keys = np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)
        return bits(self.seed, keys[:, None], np.arange(self.dimensions))
