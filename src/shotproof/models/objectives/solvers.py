"""R2D2 and MetaOptNet: a classifier solved on the support, with gradients through the solution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.gram import ridge_weights
from shotproof.functional.support_vectors import attach_gradient, solve_dual
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective, trained_by


@dataclass(frozen=True)
class R2d2(TaskObjective):
    """Cross-entropy of a ridge regression to one-hot labels, times a learned scale; the penalty is learned too.

    The paper's third parameter, a constant added to all scores, has no effect on the cross-entropy.
    """

    about = "tasks: ridge regression in closed form, with learned penalty and scale"
    paper = "Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, 2019"
    example = "r2d2(penalty=1)"
    settings = trained_by(optimizer="sgd", lr=0.1, nesterov=True, schedule="cosine", tasks_per_update=4)

    penalty: float = option(50.0, "initial weight of the penalty", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Initialize the penalty, as its logarithm so that it stays positive, and the scale."""
        return nn.ParameterDict({"log_penalty": torch.tensor(math.log(self.penalty)), "scale": torch.tensor(1.0)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the scaled scores of the regression, solved in float64."""
        rows, target = support.double(), functional.one_hot(labels, way).double()
        penalty = net.head.get_parameter("log_penalty").double().exp()
        scores = query.double() @ rows.mT @ ridge_weights(rows @ rows.mT, target, penalty)
        scale: Tensor = net.head.get_parameter("scale")
        return scale * scores.to(query.dtype)


@dataclass(frozen=True)
class MetaOptNet(TaskObjective):
    """Cross-entropy of Crammer and Singer's support vector machine, times a learned scale.

    The dual is solved to convergence, while the paper's solver stops after 15 steps; the gradient is that of the exact
    solution.
    """

    about = "tasks: multi-class support vector machine, with gradients through its solution"
    paper = "Lee, Maji, Ravichandran and Soatto, Meta-Learning with Differentiable Convex Optimization, 2019"
    example = "metaoptnet(C=1)"
    # The paper's factors of the learning rate are 1, 0.06, 0.012 and 0.0024; these are 1, 0.06, 0.0147 and 0.0036.
    settings = trained_by(
        shot=15,
        query=6,
        epochs=60,
        tasks=8000,
        tasks_per_update=8,
        optimizer="sgd",
        lr=0.1,
        nesterov=True,
        schedule="step",
        milestones=(20, 20, 40, 50),
        decay=0.245,
    )

    C: float = option(0.1, "weight of the errors relative to the penalty on the weights", above=0)
    iterations: int = option(300, "maximum number of steps of the solver", least=1)
    smoothing: float = option(0.0, "label smoothing: share of a label spread over all classes", least=0, most=0.9)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Initialize the scale."""
        return nn.ParameterDict({"scale": torch.tensor(1.0)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the scaled margins, solved in float64."""
        rows, target = support.double(), functional.one_hot(labels, way).double()
        kernel = rows @ rows.mT
        weights, _ = solve_dual(kernel.detach(), target, self.C, self.iterations)
        if kernel.requires_grad:
            weights = attach_gradient(weights, kernel, target, self.C)
        scale: Tensor = net.head.get_parameter("scale")
        return scale * (query.double() @ rows.mT @ weights).to(query.dtype)

    def task_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Compute the cross-entropy, with label smoothing."""
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), label_smoothing=self.smoothing)
