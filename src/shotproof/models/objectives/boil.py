"""BOIL: as MAML, but the body alone takes the steps, and the head stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shotproof.core.options import option
from shotproof.models.inner_loop import BatchNorm
from shotproof.models.network import FewShotNetwork
from shotproof.models.objectives.steps_on_items import BATCH_NORM, StepsOnItems


@dataclass(frozen=True)
class Boil(StepsOnItems):
    """Cross-entropy of the queries after a gradient step of the backbone on the support, under the head as it is.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: a gradient step of the backbone alone on the support"
    paper = "Oh, Yoo, Kim and Yun, BOIL: Towards Representation Change for Few-shot Learning, 2021"
    example = "boil(rate=0.3)"
    settings: ClassVar[Mapping[str, Any]] = {"optimizer": "adam", "lr": 6e-4, "weight_decay": 0.0}

    rate: float = option(0.5, "learning rate of the backbone within a task: 0.3 for ResNets", above=0)
    steps: int = option(1, "gradient steps within a task", least=0)
    first_order: bool = option(False, "whether gradients within a task are taken as constants")
    batch_norm: BatchNorm = option("batch", BATCH_NORM)

    def adapts(self, parameter: str) -> bool:
        """Those of the backbone do."""
        return parameter.startswith("backbone.")

    def steps_of(self, net: FewShotNetwork) -> int:
        """As many as the options say."""
        return self.steps
