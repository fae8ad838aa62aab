"""BOIL: as MAML, but the body alone takes the steps, and the head stays."""

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
from shotproof.models.objectives.maml import BATCH_NORM


@dataclass(frozen=True)
class Boil(TaskObjective):
    """Cross-entropy of the queries after a gradient step of the backbone on the support, under the head as it is.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: a gradient step of the backbone alone on the support"
    paper = "Oh, Yoo, Kim and Yun, BOIL: Towards Representation Change for Few-shot Learning, 2021"
    example = "boil(rate=0.3)"
    needs = "items"
    symmetric = False
    settings: ClassVar[Mapping[str, Any]] = {"optimizer": "adam", "lr": 6e-4, "weight_decay": 0.0}

    rate: float = option(0.5, "learning rate of the backbone within a task: 0.3 for ResNets", above=0)
    steps: int = option(1, "gradient steps within a task", least=0)
    first_order: bool = option(False, "whether gradients within a task are taken as constants")
    batch_norm: BatchNorm = option("batch", BATCH_NORM)

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """With batch statistics, queries have a say in each other's scores."""
        return "transductive" if self.batch_norm == "batch" else "inductive"

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The head."""
        return nn.Linear(backbone.dim, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logits after the steps."""
        linear_head(net, way)
        return adapted_scores(
            net,
            support,
            labels,
            query,
            adapts=lambda name: name.startswith("backbone."),
            steps=self.steps,
            rate=self.rate,
            first_order=self.first_order,
            batch_norm=self.batch_norm,
        )
