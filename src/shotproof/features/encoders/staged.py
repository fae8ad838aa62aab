"""Encoders whose networks have stages: the pooled output of every block, all of them in one pass."""

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

STAGE = "the block whose pooled output is taken, counted from 1; None: the network's own output"


class StagedEncoder(NetworkEncoder):
    """An encoder of a network with stages.

    One pass gives the pooled outputs of all stages, which are cached side by side: whoever asks for one stage has paid
    for the others.
    """

    stage: int | None  # an option of each, described by STAGE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stage is not None and self.maps:
            raise InputError(f"{self._title}: a stage is pooled to one vector: give either stage or maps, not both")

    @abstractmethod
    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Return a batch of what `load` gave to the pooled output of each block, [b, d] each, the first block first."""

    @property
    def stored(self) -> str:
        """Return the fingerprint; of stages, that of all together."""
        return f"{self.fingerprint} stages" if self.stage is not None else super().stored

    @property
    def keeps_shape(self) -> bool:
        """Of maps, their shape; of stages, the width of each."""
        return self.stage is not None or self.maps

    def shape_of(self, values: npt.NDArray[Any]) -> tuple[int, ...]:
        """Return the shape of a map, or the width of each stage, as the first batch has told."""
        return super().shape_of(values) if self.stage is None else vars(self)["widths"]

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the features; of stages, all of them side by side."""
        if self.stage is None:
            return super().compute(batch)
        import torch

        found = self.stages(batch)
        self._require_stage(len(found))
        vars(self)["widths"] = tuple(stage.shape[1] for stage in found)  # the same for every batch
        return torch.cat([stage.float() for stage in found], dim=1)

    def features_of(self, rows: Encoded) -> Features:
        """Return the features of the stage, or of the network's own output."""
        if self.stage is None:
            return super().features_of(rows)
        self._require_stage(len(rows.shape))
        return _stages(rows)[self.stage - 1]

    def encode_stages(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> list[Features]:
        """Return the features of every stage, the first block first, in one pass."""
        return _stages(self.at(self.stage or 1).encode_rows(catalog, runtime, on_error))

    def at(self, stage: int) -> Self:
        """Return the encoder of a stage, with the network that was loaded for this one."""
        other: Self = replace(self, stage=stage)  # type: ignore[type-var]
        options = {option.name for option in self.options()}
        vars(other).update({name: value for name, value in vars(self).items() if name not in options})
        return other

    def count_stages(self, catalog: Catalog) -> int:
        """How many stages there are, by the first item that can be read."""
        import torch

        self.check(catalog)
        for file in self.files(catalog):
            try:
                item = self.load(file)
            except UnreadableItem:
                continue
            with torch.no_grad():  # weights loaded in inference mode could not be moved to a GPU
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
    """Return the pooled output of every block of an encoder's network, in one pass.

    Args:
        catalog: the items
        encoder: one whose network has stages: `lite0`, `hf:NAME`, `hf-audio:NAME` or `model:FILE`, without a stage
        on_error: what to do about an item whose file cannot be read, as in `encode`
        runtime: how to compute

    Returns:
        Features of each stage, the first block first; each is what `encode` gives for `lite0(stage=1)` and so on.

    Raises:
        InputError: the encoder has no stages, or is one of them already.
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
    made = encoders.make(encoder)
    if not isinstance(made, StagedEncoder):
        raise no_stages(made)
    if made.stage is not None or made.maps:
        raise InputError(f"encoder '{made}': all stages are asked for: leave {'stage' if made.stage else 'maps'} out")
    with resolve(runtime) as current:
        found = made.encode_stages(catalog, current, on_error)
    one_pass = [found[0], *(replace(one, tally=Tally(0, len(one))) for one in found[1:])]
    return [with_record(features, made.at(place), catalog) for place, features in enumerate(one_pass, 1)]


def _stages(rows: Encoded) -> list[Features]:
    """Return the features of every stage, from rows of all stages side by side."""
    return [
        Features.from_array(rows.items, rows.values[:, start:end], record=rows.record, tally=rows.tally)
        for start, end in pairwise(np.cumsum([0, *rows.shape]))
    ]


def no_stages(encoder: Encoder) -> InputError:
    """Return the error for an encoder that gives no stages."""
    return InputError(
        f"encoder '{encoder.name}' has no stages: expected lite0, hf:NAME, hf-audio:NAME or model:FILE, "
        "networks whose blocks are known"
    )
