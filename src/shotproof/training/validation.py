"""Accuracy on fixed tasks of classes that training does not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shotproof.models.items import ResidentItems
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective
from shotproof.models.preprocessing import Preprocessing
from shotproof.training.batches import TaskRows

ITEMS_AT_A_TIME = 256
TASKS_AT_A_TIME = 8


@dataclass(frozen=True)
class Validation:
    """Tasks, the items that they are of, and how these become input."""

    items: ResidentItems
    tasks: TaskRows
    preprocessing: Preprocessing

    @torch.no_grad()
    def accuracy(self, net: FewShotNetwork, objective: Objective[Any]) -> float:
        """The share of queries, in percent, that the objective's scores label correctly; the network is evaluated."""
        training = net.training
        net.eval()
        seen = None if objective.needs == "items" else self._seen(net, objective)
        correct = torch.zeros((), dtype=torch.int64, device=self.items.device)
        for start in range(0, len(self.tasks), TASKS_AT_A_TIME):
            tasks = self.tasks[start : start + TASKS_AT_A_TIME]

            def side(rows: Tensor) -> Tensor:
                return self._input(rows) if seen is None else seen[rows]

            way = tasks.classes.shape[1]
            scores = objective.scores(net, side(tasks.support), tasks.support_labels, side(tasks.query), way)
            correct += (scores.argmax(-1) == tasks.query_labels).sum()
        net.train(training)
        return 100 * int(correct) / self.tasks.query_labels.numel()

    def _seen(self, net: FewShotNetwork, objective: Objective[Any]) -> Tensor:
        """What scores see of every item."""
        rows = torch.split(torch.arange(len(self.items)), ITEMS_AT_A_TIME)
        return torch.cat([net(self._input(some), objective.needs) for some in rows])

    def _input(self, rows: Tensor) -> Tensor:
        stored = self.items.take(rows.flatten())
        return self.preprocessing.prepared(stored).reshape(*rows.shape, *self.preprocessing.shape)
