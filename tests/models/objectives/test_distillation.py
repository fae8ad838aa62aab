from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from shotproof.core.errors import InputError
from shotproof.models.backbone import backbones
from shotproof.models.model import Model, weights_digest
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective, objectives
from shotproof.models.objectives.distillation import Skd, divergence, rotate_items
from tests.models.objectives.untrained_models import NAMES, model_of
from tests.small_networks import BACKBONE, CLASSES, class_batch, loss_of, network_of


def student(spelling: str, teacher: Model) -> tuple[Objective[Any], FewShotNetwork]:
    objective = objectives.make(spelling)
    net = network_of(objective)
    objective.begin(net, teacher, NAMES)
    return objective, net.train()


def test_the_divergence_is_that_of_softened_predictions() -> None:
    draw = np.random.default_rng(0)
    found, taught = draw.normal(size=(2, 5, 4)) * 3
    p, q = (log_softmax(each / 4, axis=1) for each in (taught, found))
    expected = 16 * (np.exp(p) * (p - q)).sum(1).mean()
    assert divergence(torch.from_numpy(found), torch.from_numpy(taught), 4.0).item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["rfs", "skd"])
def test_every_generation_after_the_first_has_a_teacher(name: str) -> None:
    spelled = [stage.spelling for stage in objectives.make(f"{name}(generations=3)").stages()]
    assert spelled == [name, f"{name}(distill=True)", f"{name}(distill=True)"]


def test_a_distilled_generation_of_rfs_adds_the_divergence_from_its_teacher() -> None:
    teacher, batch = model_of(objectives.make("baseline"), seed=3), class_batch()
    objective, net = student("rfs(distill=True, classification=0.3, imitation=0.7)", teacher)
    before = weights_digest(net.head.teacher.state_dict())
    loss = loss_of(objective, net, batch)
    loss.backward()
    with torch.no_grad():
        logits = net.head(net(batch.items))
        taught = teacher.network().head(teacher.network()(batch.items))
        classified = torch.nn.functional.cross_entropy(logits, batch.labels)
    expected = 0.3 * classified + 0.7 * divergence(logits, taught, 4.0)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert all(parameter.grad is None for parameter in net.head.teacher.parameters())
    assert weights_digest(net.head.teacher.state_dict()) == before
    assert weights_digest(net.backbone.state_dict()) != weights_digest(teacher.network().backbone.state_dict())


def test_a_distilled_generation_of_skd_starts_as_its_teacher() -> None:
    teacher, batch = model_of(Skd(), seed=3), class_batch()
    objective, net = student("skd(distill=True, twins=0)", teacher)
    assert loss_of(objective, net.eval(), batch).item() == pytest.approx(0, abs=1e-5)
    objective, net = student("skd(distill=True, twins=2)", teacher)
    with torch.no_grad():
        logits, twins = (objective.logits(net.eval(), items) for items in (batch.items, batch.items.flip(2, 3)))
    expected = 2 * np.linalg.norm((logits - twins).numpy(), axis=1).mean()
    assert loss_of(objective, net, batch).item() == pytest.approx(expected, rel=1e-4)


def test_items_rotate_items_four_times_are_as_they_were() -> None:
    items = torch.randn(2, 3, 5, 5)
    once = rotate_items(items)[2:4]
    torch.testing.assert_close(rotate_items(rotate_items(rotate_items(once)[2:4])[2:4])[2:4], items)
    torch.testing.assert_close(rotate_items(items)[2:4], items.transpose(2, 3).flip(2))


def test_rotations_are_told_from_the_logits() -> None:
    batch, objective = class_batch(), Skd(turning=3)
    net = network_of(objective).train()
    with torch.no_grad():
        for each in (net.head.classes, net.head.turns):
            each.weight.zero_()
            each.bias.zero_()
    # Zero logits: log of the number of classes, and log 2 for each of four yes-or-no questions.
    assert loss_of(objective, net, batch).item() == pytest.approx(np.log(CLASSES) + 3 * np.log(2), rel=1e-5)


def test_a_teacher_that_cannot_teach_is_refused() -> None:
    objective = objectives.make("rfs(distill=True)")
    net = network_of(objective)
    with pytest.raises(InputError, match=r"'rfs\(distill=True\)' needs a teacher"):
        objective.begin(net, None, NAMES)
    with pytest.raises(InputError, match="cannot be a teacher"):
        objective.begin(net, model_of(objectives.make("protonet"), 0), NAMES)
    with pytest.raises(InputError, match="trained on 6 classes, which are not the 6 of this training"):
        objective.begin(net, model_of(objectives.make("rfs"), 0), NAMES[::-1])


def test_items_that_are_not_square_cannot_be_turned() -> None:
    with pytest.raises(InputError, match="square items, found 16 x 32"):
        Skd().prepare(backbones.make(BACKBONE).build((1, 16, 32)), 3, 3)
