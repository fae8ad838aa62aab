from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.functional.feature_rows import class_means
from shotproof.models.objective import ClassBatch
from shotproof.models.objectives.classifiers import BaselinePlusPlus, NegCosine
from tests.drawn_tasks import formula
from tests.models.objectives.given_vectors import as_items, network_on


def test_its_logits_are_scaled_cosines_times_learned_lengths() -> None:
    objective = BaselinePlusPlus()
    net = network_on(objective, 8, 1, 1, classes=5)
    torch.testing.assert_close(net.head.lengths, net.head.directions.norm(dim=1))
    rows = torch.randn(7, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        net.head.lengths.copy_(torch.arange(5.0) + 1)
        logits = objective.logits(net, as_items(rows)).numpy()
    directions, values = net.head.directions.detach().numpy(), rows.numpy()
    cosines = [
        [np.dot(row, direction) / (np.linalg.norm(row) * np.linalg.norm(direction)) for direction in directions]
        for row in values
    ]
    np.testing.assert_allclose(logits, 2 * np.array(cosines) * (np.arange(5) + 1), atol=1e-4)


def test_the_size_of_a_feature_has_no_say_and_cosines_keep_within_the_scale() -> None:
    objective = BaselinePlusPlus(scale=4)
    net = network_on(objective, 8, 1, 1, classes=5)
    rows = torch.randn(7, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        net.head.lengths.fill_(1)
        logits = objective.logits(net, as_items(rows))
        torch.testing.assert_close(objective.logits(net, as_items(9 * rows)), logits, rtol=0, atol=1e-4)
    assert logits.abs().max() <= 4


@pytest.mark.parametrize(("classes", "scale"), [(200, 2), (201, 10)])
def test_many_classes_are_scaled_more(classes: int, scale: float) -> None:
    assert network_on(BaselinePlusPlus(), 8, 1, 1, classes=classes).head.scale == scale


@pytest.mark.parametrize(("margin", "expected"), [(0.0, 1.176665), (-0.02, 1.049820), (-0.3, 0.164032)])
def test_the_loss_of_the_fixture_with_class_means_as_weights(margin: float, expected: float) -> None:
    task, labels = formula()
    objective = NegCosine(margin=margin)
    net = network_on(objective, 8, 1, 1, classes=3)
    with torch.no_grad():
        net.head.weight.copy_(class_means(task.support, task.labels, 3)[0])
    loss = objective.loss(net, ClassBatch(as_items(task.query[0]), labels[0]), torch.Generator())
    assert loss.item() == pytest.approx(expected, abs=2e-5)
