"""Base class of encoders whose networks have stages: the pooled outputs of all blocks, from one pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
import numpy.typing as npt

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnknownName, UnreadableItem
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import OnError
from shotproof.features.encoder import Encoder, encoders, with_record
from shotproof.features.encoders.pretrained_network import Encoded, NetworkEncoder
from shotproof.features.features import Features, Tally

if TYPE_CHECKING:
    import torch

STAGE = "block whose pooled output is used, counted from 1; None: the network's own output"


class StagedEncoder(NetworkEncoder):
    """Encoder that uses a network with stages.

    One pass computes the pooled outputs of all stages, which are cached together: after one stage, the others are free.
    """

    stage: int | None  # an option of each subclass, described by STAGE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stage is not None and self.maps:
            raise InputError(f"{self._title}: a stage is pooled to one vector: give either stage or maps, not both")

    @abstractmethod
    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Encode a batch of loaded items as the pooled output of each block, [b, d] each, the first block first."""

    @property
    def stored(self) -> str:
        """Return the cache key: the fingerprint; for stages, that of all of them."""
        return f"{self.fingerprint} stages" if self.stage is not None else super().stored

    @property
    def keeps_shape(self) -> bool:
        """Return whether the cache needs a shape: that of maps, or the widths of the stages."""
        return self.stage is not None or self.maps

    def shape_of(self, values: npt.NDArray[Any]) -> tuple[int, ...]:
        """Return the shape of a map, or the widths of the stages, from the first batch."""
        return super().shape_of(values) if self.stage is None else vars(self)["widths"]

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """Compute the features; for stages, all of them concatenated."""
        if self.stage is None:
            return super().compute(batch)
        import torch

        outputs = self.stages(batch)
        self._require_stage(len(outputs))
        vars(self)["widths"] = tuple(output.shape[1] for output in outputs)  # the same for every batch
        return torch.cat([output.float() for output in outputs], dim=1)

    def features_of(self, rows: Encoded) -> Features:
        """Return the features of the stage, or of the network's own output."""
        if self.stage is None:
            return super().features_of(rows)
        self._require_stage(len(rows.shape))
        return _split_stages(rows)[self.stage - 1]

    def encode_stages(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> list[Features]:
        """Compute the features of every stage, the first block first, in one pass."""
        return _split_stages(self.at(self.stage or 1).encode_rows(catalog, runtime, on_error))

    def at(self, stage: int) -> Self:
        """Return the encoder of a stage, which shares this encoder's network."""
        other: Self = replace(self, stage=stage)  # type: ignore[type-var]
        options = {option.name for option in self.options()}
        vars(other).update({name: value for name, value in vars(self).items() if name not in options})
        return other

    def count_stages(self, catalog: Catalog) -> int:
        """Count the stages by encoding the first item that can be read."""
        import torch

        self.check(catalog)
        for file in self.files(catalog):
            try:
                item = self.load(file)
            except UnreadableItem:
                continue
            with torch.no_grad():  # weights that are loaded in inference mode cannot be moved to a GPU
                return len(self.stages(torch.from_numpy(np.stack([item]))))
        raise UnreadableItem(f"none of the {len(catalog)} items can be read")

    def _require_stage(self, count: int) -> None:
        if self.stage is not None and self.stage > count:
            raise InputError(f"{self._title} has {count} stages, found stage {self.stage}: expected 1 to {count}")


def encode_stages(
    catalog: Catalog,
    encoder: str | Mapping[str, Any] | Encoder,
    *,
    on_error: OnError = "raise",
    runtime: Runtime | None = None,
) -> list[Features]:
    """Compute the pooled output of every block of an encoder's network, in one pass.

    Args:
        catalog: items to encode
        encoder: an encoder with stages: `lite0`, `hf:NAME`, `hf-audio:NAME` or `model:FILE`, without the option stage
        on_error: what to do with an item whose file cannot be read, as in `encode`
        runtime: runtime settings

    Returns:
        The features of each stage, the first block first, equal to those of `encode` with `lite0(stage=1)` and so on.

    Raises:
        InputError: the encoder has no stages, or has the option stage or maps.
        UnreadableItem: the file of an item cannot be read.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=2, items=1).write(tempfile.mkdtemp())
        >>> [features.array.shape[1] for features in sp.analysis.encode_stages(catalog, "lite0")][-3:]
        [192, 320, 1280]
    """
    if on_error not in get_args(OnError):
        raise UnknownName("value of on_error", str(on_error), get_args(OnError))
    staged = encoders.make(encoder)
    if not isinstance(staged, StagedEncoder):
        raise no_stages(staged)
    if staged.stage is not None or staged.maps:
        option = "stage" if staged.stage else "maps"
        raise InputError(f"encoder '{staged}': all stages are encoded: leave {option} out")
    with resolve(runtime) as current:
        first, *others = staged.encode_stages(catalog, current, on_error)
    stages = [first, *(replace(features, tally=Tally(0, len(features))) for features in others)]
    return [with_record(features, staged.at(stage), catalog) for stage, features in enumerate(stages, 1)]


def _split_stages(rows: Encoded) -> list[Features]:
    """Split rows with all stages concatenated into the features of each stage."""
    return [
        Features.from_array(rows.items, rows.values[:, start:end], record=rows.record, tally=rows.tally)
        for start, end in pairwise(np.cumsum([0, *rows.shape]))
    ]


def no_stages(encoder: Encoder) -> InputError:
    """Build the error for an encoder without stages."""
    return InputError(
        f"encoder '{encoder.name}' has no stages: expected an encoder with known blocks: lite0, hf:NAME, "
        "hf-audio:NAME or model:FILE"
    )
