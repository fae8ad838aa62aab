"""Head of a trained model as a method: `model:FILE`."""

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
    """Score by the objective a model was trained for, on the features of the same model.

    An objective without learned parameters, such as `protonet`, scores by its own rule. An objective that classifies
    the training classes scores by cosines with class means.
    """

    about = "head of a model written by shotproof train, on the features of the same model"
    example = "model:protonet.model"

    path: Path = option(help="the model", argument=True, path=True)

    @property
    def name(self) -> str:
        """Return the prefix of its spelling."""
        return "model"

    @cached_property
    def model(self) -> Model:
        """Read the model from its file."""
        from shotproof.models.model import Model

        return Model.read(self.path)

    @cached_property
    def encoder(self) -> ModelEncoder:
        """Return the encoder that computes the features the head needs."""
        from shotproof.models.model_encoder import ModelEncoder

        return ModelEncoder(path=self.path, maps=self.needs == "maps")

    @property
    def needs(self) -> Literal["vectors", "maps"]:  # type: ignore[override]
        """Return the kind of features the objective needs. Raise InputError if it needs the items themselves."""
        needs = self.model.objective.needs
        if needs == "items":
            raise InputError(
                f"method '{self.spelling}': objective '{self.model.objective}' adapts the network to each task, so "
                f"features are not enough: evaluate method '{self.model.objective.name}' with the model and the catalog"
            )
        return needs

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """Return `inductive` if the objective scores each query independently of the others."""
        return self.model.objective.family

    def require_features(self, record: FeaturesRecord) -> None:
        """Raise Mismatch unless the features come from this model, without transforms."""
        if record.transforms or not (record.fingerprint or "").startswith(f"model {self.model.digest}"):
            raise Mismatch(
                f"method '{self.spelling}' needs the features of this model, without transforms, found "
                f"those of '{record.classifier}': encode with model:{self.path}"
            )

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score by the objective, with the parameters the model has learned."""
        import torch

        with torch.no_grad():
            net = self._network(support.device)
            return self.model.objective.scores(net, support, labels, query, way).double()

    @cached_property
    def _networks(self) -> dict[device, FewShotNetwork]:
        return {}

    def _network(self, target_device: device) -> FewShotNetwork:
        if target_device not in self._networks:
            self._networks[target_device] = self.model.network().to(target_device)
        return self._networks[target_device]
