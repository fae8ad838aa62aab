"""What MAML and BOIL share: gradient steps on the support, through the backbone, from the items themselves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from torch import Tensor, nn

from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import BatchNorm, adapted, linear_head
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective

BATCH_NORM = "what batch norm uses: statistics of each batch, or the running ones of the model that training began with"


class StepsOnItems(TaskObjective):
    """A linear head and a backbone, of which `adapts` says what takes the steps; a subclass has the options.

    With the statistics of each batch, as in the papers, a query's scores depend on the other queries of its task.
    """

    needs = "items"
    symmetric = False

    rate: float
    first_order: bool
    batch_norm: BatchNorm

    @abstractmethod
    def adapts(self, parameter: str) -> bool:
        """Whether a parameter of the network takes the steps."""

    @abstractmethod
    def steps_of(self, net: FewShotNetwork) -> int:
        """How many steps a network takes, in training or in evaluation mode."""

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
        score = adapted(
            net,
            support,
            labels,
            adapts=self.adapts,
            steps=self.steps_of(net),
            rate=self.rate,
            first_order=self.first_order,
            batch_norm=self.batch_norm,
        )
        return score(query)
