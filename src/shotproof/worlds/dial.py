"""An encoder that leans on the context to a known degree: does an instrument read what was dialled?

It looks at the catalog's columns, not at pictures. With a share s of context, an item's feature is

    sqrt(1 - s) * code(label)  +  sqrt(s) * sum of code(factor, value) / sqrt(number of factors)  +  noise

where a code is a random vector of length 1. Whatever the share, context and noise together have `noise` times
the variance of the label's part: the label stands out equally well, so accuracy on random tasks hardly moves,
and only what disturbs it changes, from pure chance (at s = 0 nothing in a feature depends on the context) to
the context. From s = noise / (noise + 1) on there is no room for noise, and the label fades.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.draws import bits
from shotproof.errors import InputError, did_you_mean
from shotproof.features.encoder import Encoder, EncodeSettings
from shotproof.features.features import Features
from shotproof.worlds.shapes import FACTORS

FloatArray = npt.NDArray[np.float64]


class DialEncoder(Encoder):
    """Mixes the label's code with the codes of the context factors at a known share."""

    about: ClassVar[str] = "synthetic: mixes label and context at a known share, to calibrate (share=0.5)"

    def __init__(
        self,
        share: float = 0.5,
        dimensions: int = 64,
        noise: float = 4.0,
        seed: int = 0,
        factors: Sequence[str] = tuple(FACTORS),
    ) -> None:
        if not 0 <= share <= 1:
            raise InputError(f"dial encoder: share is {share}, expected 0 (label only) to 1 (context only)")
        if dimensions < 1:
            raise InputError(f"dial encoder: dimensions is {dimensions}, expected 1 or more")
        if not 0 <= noise < np.inf:
            raise InputError(f"dial encoder: noise is {noise}, expected 0 or more")
        if not factors:
            raise InputError("dial encoder: factors is empty, expected at least one column of the catalog")
        self.share, self.dimensions, self.noise, self.seed = share, dimensions, noise, seed
        self.factors = tuple(factors)
        self.name = f"dial(share={share:g})"

    def parameters(self) -> dict[str, Any]:
        """The settings, and that the features are made up."""
        return {
            "synthetic": True,
            "share": self.share,
            "dimensions": self.dimensions,
            "noise": self.noise,
            "seed": self.seed,
            "factors": list(self.factors),
        }

    def encode(self, catalog: Catalog, settings: EncodeSettings) -> Features:
        """A feature an item, [items, dimensions]; each depends on its own row alone."""
        columns = catalog.table.column_names
        for factor in self.factors:
            if factor not in columns:
                raise InputError(
                    "dial encoder: it reads the context factors of a synthetic world, and the catalog "
                    f"has no column '{factor}'{did_you_mean(factor, columns)}"
                )
        label = self._codes(catalog, "label")
        context = sum(self._codes(catalog, factor) for factor in self.factors) / np.sqrt(len(self.factors))
        room = max(self.noise * (1 - self.share) - self.share, 0.0)
        values = np.sqrt(1 - self.share) * label + np.sqrt(self.share) * context + np.sqrt(room) * self._noise(catalog)
        return Features.from_array(catalog.items, values)

    def _codes(self, catalog: Catalog, column: str) -> FloatArray:
        """The code of each item's value in a column, of length 1: [items, dimensions]."""
        encoded = pc.dictionary_encode(catalog.table.column(column).combine_chunks())
        random = self._bits([f"{column}={value}" for value in encoded.dictionary.to_pylist()])
        signs = (random >> np.uint64(63)).astype(np.float64) * 2 - 1
        codes: FloatArray = (signs / np.sqrt(self.dimensions))[encoded.indices.to_numpy()]
        return codes

    def _noise(self, catalog: Catalog) -> FloatArray:
        """Nearly normal noise of total variance 1, from nothing but the items' names: [items, dimensions]."""
        random = self._bits([f"item={item}" for item in catalog.items.to_pylist()])
        # Four uniform numbers of 16 bits add up to a nearly normal one, the same to the bit on any machine.
        quarters = random.view(np.uint16).reshape(*random.shape, 4).sum(axis=-1, dtype=np.int64)
        centred = (quarters - 2 * 0xFFFF) / 2**16
        noise: FloatArray = centred * np.sqrt(3 / self.dimensions)
        return noise

    def _bits(self, texts: Sequence[str]) -> npt.NDArray[np.uint64]:
        """Random bits for each text and dimension: [texts, dimensions]."""
        digests = [hashlib.sha256(text.encode()).digest()[:8] for text in texts]
        keys = np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)
        return bits(self.seed, keys[:, None], np.arange(self.dimensions))
