"""Encoder that uses a trained model: `model:FILE`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shotproof.catalog.catalog import Catalog
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoders.pretrained_network import Encoded, Glance
from shotproof.features.encoders.staged import STAGE, StagedEncoder
from shotproof.models.model import Model
from shotproof.models.preprocessing import Preprocessing

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ModelEncoder(StagedEncoder):
    """Encode with the backbone of a model from `shotproof train`, using the model's preprocessing.

    The features' record names the classes that the model was trained on, so that tasks of these are rejected. A stage
    is the mean over the map of a block, even if the backbone computes its vector in another way.
    """

    about = "a model written by shotproof train"
    example = "model:protonet.model"
    reduces = True

    path: Path = option(help="the model file", argument=True, path=True)
    maps: bool = option(False, "encode to local maps instead of one vector")
    stage: int | None = option(None, STAGE, least=1)

    @cached_property
    def model(self) -> Model:
        """Read the model from its file."""
        return Model.read(self.path)

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """Return the model's preprocessing."""
        return self.model.preprocessing

    @cached_property
    def medium(self) -> str:  # type: ignore[override]
        """Return the kind of items: `image` or `sound`."""
        return self.preprocessing.medium

    def __getstate__(self) -> dict[str, Any]:
        # Keep the preprocessing, so that worker processes need not read the model's weights.
        cached = {key: value for key, value in vars(self).items() if key == "preprocessing"}
        return {**super().__getstate__(), **cached}

    @cached_property
    def pretrained_on(self) -> str | None:  # type: ignore[override]
        """Return the class list of the pretrained weights the model was trained from, if any."""
        return self.model.backbone.pretrained_on

    @cached_property
    def fingerprint(self) -> str:
        """Return the model's digest."""
        return f"model {self.model.digest}"

    @cached_property
    def network(self) -> Any:
        """Build backbone and head, in evaluation mode."""
        import torch

        return self.model.network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def count_stages(self, catalog: Catalog) -> int:
        """Count the stages by an empty item: sounds that are still to be mixed cannot be read yet."""
        import torch

        self.check(catalog)
        empty = np.zeros((1, *self.preprocessing.stored_shape), self.preprocessing.stored_type)
        with torch.no_grad():  # weights loaded in inference mode cannot be moved to a GPU
            return len(self.stages(torch.from_numpy(empty)))

    def load(self, path: Any) -> npt.NDArray[Any]:
        """Load the stored form of an item, [height, width, channels]."""
        return self.preprocessing.load(path)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode stored items to features, [b, d], or maps, [b, d, h, w]."""
        items, backbone = self.preprocessing.prepared(batch), self.network.backbone
        features: torch.Tensor = backbone.maps(items) if self.maps else backbone.vectors(items)
        return features

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Encode stored items to the mean over the map of each block."""
        maps: list[torch.Tensor] = self.network.backbone.stages(self.preprocessing.prepared(batch))
        return [stage_map.mean(dim=(2, 3)) for stage_map in maps]

    def encode_rows(
        self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Encoded:
        """Encode the rows and record the classes the model was trained on."""
        rows = super().encode_rows(catalog, runtime, on_error, glance)
        return rows._replace(record=replace(rows.record, trained_on=self.model.record.seen))
