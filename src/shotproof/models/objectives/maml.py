"""MAML: weights from which a few gradient steps on the support lead to a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shotproof.core.options import option
from shotproof.models.inner_loop import BatchNorm
from shotproof.models.network import FewShotNetwork
from shotproof.models.objectives.steps_on_items import BATCH_NORM, StepsOnItems


@dataclass(frozen=True)
class Maml(StepsOnItems):
    """Cross-entropy of the queries after gradient steps of all weights on the support.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: gradient steps of all weights on the support"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(rate=0.1, first_order=True)"
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

    def adapts(self, parameter: str) -> bool:
        """All do."""
        return True

    def steps_of(self, net: FewShotNetwork) -> int:
        """As many as the options say."""
        return self.steps if net.training else self.test_steps
