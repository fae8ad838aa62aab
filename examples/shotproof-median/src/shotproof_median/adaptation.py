"""Custom adaptation: the whole backbone takes gradient steps on each task's support, by class medians."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

import shotproof as sp
from shotproof.core.options import option
from shotproof.learners.adaptation.adaptation import DecodedTasks
from shotproof.learners.adaptation.descent import embedding_function
from shotproof.models.network import FewShotNetwork


@dataclass(frozen=True)
class MedianSteps(sp.Adaptation):
    """Score: minus the distances to class medians of features, after `steps` of gradient descent of the backbone."""

    about = "nearest class median on a network that takes gradient steps on the support"
    example = "median-steps(steps=3)"
    rates = (0.001, 0.01)  # what --tune-on chooses from

    steps: int = option(5, "gradient steps on the support", least=0)
    rate: float = option(0.01, "the learning rate", above=0)

    def adapted_scores(self, model: sp.Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Adapt to each task separately, all at once: the network's own weights stay unchanged."""
        embed = embedding_function(net)  # the network with other weights
        start = {name: weight.detach() for name, weight in net.named_parameters() if name.startswith("backbone.")}

        def scores(weights: dict[str, Tensor], support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
            vectors = embed(weights, torch.cat([support, query]))
            return -torch.cdist(vectors[len(support) :], medians(vectors[: len(support)], labels, tasks.way), p=1)

        def loss(weights: dict[str, Tensor], support: Tensor, labels: Tensor) -> Tensor:
            return functional.cross_entropy(scores(weights, support, labels, support), labels)

        def of_task(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
            weights = start
            for _ in range(self.steps):
                slopes = grad(loss)(weights, support, labels)
                weights = {name: weight - self.rate * slopes[name] for name, weight in weights.items()}
            return scores(weights, support, labels, query)

        scores_of_tasks: Tensor = vmap(of_task)(tasks.support, tasks.labels, tasks.query)
        return scores_of_tasks


def medians(vectors: Tensor, labels: Tensor, way: int) -> Tensor:
    """Compute the median of each class, [way, d], from vectors [n, d]."""
    of_class = [vectors.masked_fill((labels != c)[:, None], torch.nan).nanmedian(0).values for c in range(way)]
    return torch.stack(of_class)
