"""TSA: small linear maps beside the convolutions, and one on the features, tuned on the support."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

FEATURES = "new.features"
START = 1e-4  # of the diagonal of each adapter


@dataclass(frozen=True)
class Tsa(Adaptation):
    """Score: cosines with class means after steps of Adadelta on adapters alone.

    Beside each 3 x 3 convolution lies a 1 x 1 convolution, first 1e-4 of the identity, whose output is added; features
    go through a linear map, first the identity. The support is classified by its own class means, logits are cosines
    times 10. Batch norm keeps its running statistics.
    """

    about = "adapters beside the convolutions and on the features, tuned on the support"
    paper = "Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, 2022"
    example = "tsa(rate=0.05)"
    rates = (0.05, 0.1, 0.5)

    steps: int = option(40, "steps of Adadelta", least=0)
    rate: float = option(0.1, "learning rate of the adapters beside convolutions", above=0)
    feature_rate: float = option(1.0, "learning rate of the map of features", above=0)

    def require_model(self, model: Model) -> None:
        """Refuse networks without such convolutions."""
        if not _convolutions(model.network()):
            raise Mismatch(f"method '{self.spelling}': backbone '{model.backbone}' has no 3 x 3 convolutions")

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """A 1 x 1 convolution of the same stride is the middle of a 3 x 3 one: adapters are added to its weights."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        own, plain = _convolutions(net), descent.vectors_of(net)

        def call(adapters: Weights, items: Tensor) -> Tensor:
            weights = {
                name: each + functional.pad(adapters[name][..., None, None], (1, 1, 1, 1)) for name, each in own.items()
            }
            return plain(weights, items) @ adapters[FEATURES].T

        def repeated(matrix: Tensor) -> Tensor:
            return matrix.expand(len(tasks), *matrix.shape).clone()

        device = tasks.support.device
        adapters = {name: repeated(START * torch.eye(*each.shape[:2], device=device)) for name, each in own.items()}
        features = repeated(torch.eye(net.backbone.dim, device=device))
        optimizer = torch.optim.Adadelta(
            [{"params": [*adapters.values()], "lr": self.rate}, {"params": [features], "lr": self.feature_rate}]
        )
        adapters[FEATURES] = features
        inputs = [(tasks.support, tasks.target)] * self.steps
        descent.descend(net, descent.support_loss(call), adapters, optimizer, inputs)
        return descent.prototype_scores(net, call, adapters, tasks)


def _convolutions(net: FewShotNetwork) -> Weights:
    """The weights of all padded 3 x 3 convolutions of the backbone, by name."""
    return {
        f"backbone.{name}.weight": one.weight.detach()
        for name, one in net.backbone.named_modules()
        if isinstance(one, nn.Conv2d) and one.kernel_size == (3, 3) and one.padding == (1, 1) and one.groups == 1
    }
