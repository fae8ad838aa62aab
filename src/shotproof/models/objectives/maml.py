"""MAML: weights from which a few gradient steps on the support lead to a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import BatchNorm, adapted_scores, linear_head
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective

BATCH_NORM = "what batch norm uses: statistics of each batch, or the running ones of the model that training began with"


@dataclass(frozen=True)
class Maml(TaskObjective):
    """Cross-entropy of the queries after gradient steps of all weights on the support.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: gradient steps of all weights on the support"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(rate=0.1, first_order=True)"
    needs = "items"
    symmetric = False
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 0.0,
        "tasks_per_update": 2,
    }

    rate: float = option(0.01, "learning rate within a task", above=0)
    steps: int = option(5, "gradient steps within a task, in training", least=0)
    test_steps: int = option(10, "gradient steps within a task, in validation and at test time", least=0)
    first_order: bool = option(False, "whether gradients within a task are taken as constants")
    batch_norm: BatchNorm = option("batch", BATCH_NORM)

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """With batch statistics, queries have a say in each other's scores."""
        return "transductive" if self.batch_norm == "batch" else "inductive"

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The head's start."""
        return nn.Linear(backbone.dim, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logits after the steps."""
        linear_head(net, way)
        return adapted_scores(
            net,
            support,
            labels,
            query,
            adapts=lambda name: True,
            steps=self.steps if net.training else self.test_steps,
            rate=self.rate,
            first_order=self.first_order,
            batch_norm=self.batch_norm,
        )
