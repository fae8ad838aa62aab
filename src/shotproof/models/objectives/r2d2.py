"""R2D2: ridge regression on the support, solved in closed form, with gradients through the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective
from shotproof.models.scoring.ridge import ridge_weights


@dataclass(frozen=True)
class R2d2(TaskObjective):
    """Cross-entropy of a ridge regression to one-hot labels, times a learned scale; the penalty is learned too.

    The paper's third parameter, a number that is added to all scores, has no effect on the cross-entropy.
    """

    about = "tasks: ridge regression in closed form, with learned penalty and scale"
    paper = "Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, 2019"
    example = "r2d2(penalty=1)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "sgd",
        "lr": 0.1,
        "nesterov": True,
        "schedule": "cosine",
        "tasks_per_update": 4,
    }

    penalty: float = option(50.0, "weight of the penalty at the start", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The penalty, by its logarithm so that it stays above zero, and the scale."""
        return nn.ParameterDict({"log_penalty": torch.tensor(math.log(self.penalty)), "scale": torch.tensor(1.0)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scaled regression, solved in float64."""
        rows, target = support.double(), functional.one_hot(labels, way).double()
        penalty = net.head.get_parameter("log_penalty").double().exp()
        scores = query.double() @ rows.mT @ ridge_weights(rows @ rows.mT, target, penalty)
        scale: Tensor = net.head.get_parameter("scale")
        return scale * scores.to(query.dtype)
