"""A trained model as an encoder: `model:FILE`."""

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
    """The backbone of a model that `shotproof train` has written, with the model's own preprocessing.

    The features' record names the classes that the model has seen, so that tasks of these are refused. A stage is the
    mean over the map of a block, also where the backbone makes its own vector in another way.
    """

    about = "a model that shotproof train has written"
    example = "model:protonet.model"
    reduces = True

    path: Path = option(help="the model", argument=True, path=True)
    maps: bool = option(False, "local maps in place of one vector")
    stage: int | None = option(None, STAGE, least=1)

    @cached_property
    def model(self) -> Model:
        """What the file holds."""
        return Model.read(self.path)

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """The model's."""
        return self.model.preprocessing

    @cached_property
    def medium(self) -> str:  # type: ignore[override]
        """What its items are: `image` or `sound`."""
        return self.preprocessing.medium

    def __getstate__(self) -> dict[str, Any]:
        # Processes that decode need not read the weights for what was read already.
        read = {key: value for key, value in vars(self).items() if key == "preprocessing"}
        return {**super().__getstate__(), **read}

    @cached_property
    def pretrained_on(self) -> str | None:  # type: ignore[override]
        """What the weights that it was trained from had been trained on."""
        return self.model.backbone.pretrained_on

    @cached_property
    def fingerprint(self) -> str:
        """The model's digest."""
        return f"model {self.model.digest}"

    @cached_property
    def network(self) -> Any:
        """Backbone and head, in evaluation mode."""
        import torch

        return self.model.network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def count_stages(self, catalog: Catalog) -> int:
        """How many stages there are, by an empty item: sounds that are to be mixed cannot be read yet."""
        import torch

        self.check(catalog)
        empty = np.zeros((1, *self.preprocessing.stored_shape), self.preprocessing.stored_type)
        with torch.no_grad():  # weights loaded in inference mode could not be moved to a GPU
            return len(self.stages(torch.from_numpy(empty)))

    def load(self, path: Any) -> npt.NDArray[Any]:
        """What the model keeps of an item, [height, width, channels]."""
        return self.preprocessing.load(path)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """What is kept of items to features, [b, d], or maps, [b, d, h, w]."""
        items, body = self.preprocessing.prepared(batch), self.network.backbone
        features: torch.Tensor = body.maps(items) if self.maps else body.vectors(items)
        return features

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """What is kept of items to the mean over the map of each block."""
        maps: list[torch.Tensor] = self.network.backbone.stages(self.preprocessing.prepared(batch))
        return [each.mean(dim=(2, 3)) for each in maps]

    def encode_rows(
        self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None
    ) -> Encoded:
        """What was encoded, with the classes that the model has seen."""
        rows = super().encode_rows(catalog, runtime, on_error, glance)
        return rows._replace(record=replace(rows.record, trained_on=self.model.record.seen))
