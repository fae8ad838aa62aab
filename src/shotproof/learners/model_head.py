"""What a trained model has learned beside its backbone, as a method: `model:FILE`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.options import option
from shotproof.core.records import FeaturesRecord
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor, device

    from shotproof.models.model import Model
    from shotproof.models.model_encoder import ModelEncoder
    from shotproof.models.network import FewShotNetwork


@dataclass(frozen=True)
class ModelHead(Method):
    """The scores of the objective that a model was trained for, on the features that the same model gives.

    Of an objective without learned parameters, such as `protonet`, its own way to score; of a classification of the
    training classes, cosines with class means.
    """

    about = "the head of a model that shotproof train has written, on the features of the same model"
    example = "model:protonet.model"

    path: Path = option(help="the model", argument=True, path=True)

    @property
    def name(self) -> str:
        """How it is spelled."""
        return "model"

    @cached_property
    def model(self) -> Model:
        """What the file holds."""
        from shotproof.models.model import Model

        return Model.read(self.path)

    @cached_property
    def encoder(self) -> ModelEncoder:
        """What gives the features that it takes."""
        from shotproof.models.model_encoder import ModelEncoder

        return ModelEncoder(path=self.path, maps=self.needs == "maps")

    @property
    def needs(self) -> Literal["vectors", "maps"]:  # type: ignore[override]
        """What its objective sees of an item."""
        needs = self.model.objective.needs
        if needs == "items":
            raise InputError(
                f"method '{self.spelling}': objective '{self.model.objective}' adapts the network to each task, which "
                f"features do not allow: evaluate method '{self.model.objective.name}' with the model and the catalog"
            )
        return needs

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """Whether its objective scores each query by itself."""
        return self.model.objective.family

    def require_features(self, record: FeaturesRecord) -> None:
        """Refuse features that are not this model's, as they came from it."""
        if record.transforms or not (record.fingerprint or "").startswith(f"model {self.model.digest}"):
            raise Mismatch(
                f"method '{self.spelling}' takes the features that this model gives, without any transform, found "
                f"those of '{record.classifier}': encode by model:{self.path}"
            )

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Those of the objective, with the model's learned parameters."""
        import torch

        with torch.no_grad():
            net = self._network(support.device)
            return self.model.objective.scores(net, support, labels, query, way).double()

    @cached_property
    def _networks(self) -> dict[device, FewShotNetwork]:
        return {}

    def _network(self, where: device) -> FewShotNetwork:
        if where not in self._networks:
            self._networks[where] = self.model.network().to(where)
        return self._networks[where]
