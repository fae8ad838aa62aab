from __future__ import annotations

import torch

from shotproof.models.objectives.leo import Leo
from tests.small_networks import WAY, network_of, task_batch


def test_without_steps_the_head_is_the_decoded_code() -> None:
    objective = Leo(code_steps=0, weight_steps=0)
    net, batch = network_of(objective).eval(), task_batch()
    with torch.no_grad():
        support, query = net(batch.support), net(batch.query)
        scores = objective.scores(net, support, batch.support_labels, query, WAY)
        head = net.head
        for task in range(2):
            codes = support[task] @ head.encoder.weight.T
            weights = []
            for one in range(WAY):
                rows = codes[batch.support_labels[task] == one]
                related = torch.stack([head.relation(torch.cat([row, code])) for row in rows for code in codes])
                weights.append((head.decoder.weight @ related.mean(0)[:64])[:64])
            torch.testing.assert_close(scores[task], query[task] @ torch.stack(weights).T, rtol=1e-4, atol=1e-5)


def test_steps_lower_the_loss_of_the_support_and_nothing_is_drawn_in_evaluation() -> None:
    batch, losses = task_batch(), []
    for steps in (0, 5):
        objective = Leo(code_steps=steps, weight_steps=steps)
        net = network_of(objective).eval()
        with torch.no_grad():
            support = net(batch.support)
            scores = [objective.scores(net, support, batch.support_labels, support, WAY) for _ in range(2)]
        assert torch.equal(*scores)
        losses.append(torch.nn.functional.cross_entropy(scores[0].flatten(0, 1), batch.support_labels.flatten()))
    assert losses[1] < losses[0] - 1e-4


def test_a_frozen_backbone_is_not_trained() -> None:
    net = network_of(Leo())
    frozen, whole = (
        {id(each) for group, _ in Leo(frozen=one).parameter_groups(net) for each in group} for one in (True, False)
    )
    assert frozen == {id(parameter) for parameter in net.head.parameters()}
    assert whole == {id(parameter) for parameter in net.parameters()}
