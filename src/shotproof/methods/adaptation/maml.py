"""MAML at test time: gradient steps of all weights from the learned start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.adaptation.adaptation import DecodedTasks
from shotproof.methods.adaptation.learned_start import LearnedStart
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

BATCH_NORM = "statistics of each batch, or the running ones; None: as the model was trained"


@dataclass(frozen=True)
class MamlAdaptation(LearnedStart):
    """Score: the logits after gradient steps of backbone and head on the cross-entropy of the support.

    By the statistics of each batch, as in the paper, queries have a say in each other's scores.
    """

    about = "a model of objective maml, adapted to each task by gradient steps of all weights"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(steps=20)"
    family = "transductive"
    objective = "maml"

    batch_norm: Literal["batch", "running"] | None = option(None, BATCH_NORM)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Those of the objective."""
        objective = self.changed(model, batch_norm=self.batch_norm)
        return objective.scores(net, tasks.support, tasks.labels, tasks.query, tasks.way)
