from __future__ import annotations

import copy

import torch

from shotproof.models.objectives.gradient_steps import Mtl, ScaledConv2d
from shotproof.models.objectives.prototypes import ProtoNet
from tests.small_networks import loss_of, network_of, task_batch


def test_at_the_start_the_backbone_is_the_pretrained_one_and_keeps_its_weights_names() -> None:
    plain, scaled = network_of(ProtoNet()).eval(), network_of(Mtl()).eval()
    weights = {name: each for name, each in scaled.state_dict().items() if name.startswith("backbone.")}
    plain.load_state_dict(weights, strict=True)
    items = task_batch().support
    torch.testing.assert_close(scaled(items), plain(items), rtol=0, atol=0)


def test_scales_and_shifts_act_as_scaled_weights_and_biases_would() -> None:
    net = network_of(Mtl(), seed=3).eval()
    with torch.no_grad():
        for scale in (*net.head.scales, *net.head.shifts):
            scale.add_(0.1 * torch.randn(scale.shape, generator=torch.Generator().manual_seed(scale.numel())))
    folded, items = copy.deepcopy(net), task_batch().support
    convolutions = [module for module in folded.backbone.modules() if isinstance(module, ScaledConv2d)]
    assert len(convolutions) == 4
    with torch.no_grad():
        for place, one in enumerate(convolutions):
            one.weight.mul_(folded.head.scales[place])
            one.bias.add_(folded.head.shifts[place])
            folded.head.scales[place].fill_(1)
            folded.head.shifts[place].zero_()
    torch.testing.assert_close(folded(items), net(items), rtol=1e-4, atol=1e-5)


def test_an_update_moves_scales_and_head_and_leaves_the_backbone() -> None:
    objective = Mtl(steps=2)
    net = network_of(objective).train()
    before = {name: each.clone() for name, each in net.state_dict().items()}
    groups = [{"params": group, "lr": 0.01 * factor} for group, factor in objective.parameter_groups(net)]
    loss_of(objective, net, task_batch()).backward()
    torch.optim.SGD(groups).step()
    moved = {name for name, each in net.state_dict().items() if not torch.equal(each, before[name])}
    assert moved
    assert all(name.startswith("head.") for name in moved)
    assert {"head.linear.weight", "head.scales.0", "head.shifts.3"} <= moved
