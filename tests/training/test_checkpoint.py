"""What a checkpoint gives back to an optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from shotproof.core.errors import InputError
from shotproof.training.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer

OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, fused=True),
    "adam": lambda weights: torch.optim.Adam(weights, 0.1, fused=True),
}


def network() -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)


def step(net: nn.Conv2d, optimizer: torch.optim.Optimizer) -> Tensor:
    optimizer.zero_grad()
    net(torch.arange(75.0).view(1, 3, 5, 5).sin()).square().sum().backward()
    optimizer.step()
    return net.weight.detach().clone()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_goes_on_from_a_file_as_if_it_had_never_stopped(tmp_path: Path, name: str) -> None:
    net = network()
    optimizer = OPTIMIZERS[name](net.parameters())
    step(net, optimizer)
    Checkpoint({}, 1, (), weights=net.state_dict(), optimizer=optimizer_tensors(optimizer)).write(
        tmp_path / "one.checkpoint"
    )
    expected = step(net, optimizer)

    found, resumed = Checkpoint.read(tmp_path / "one.checkpoint"), network()
    resumed.load_state_dict(dict(found.weights))
    again = OPTIMIZERS[name](resumed.parameters())
    restore_optimizer(again, found.optimizer)
    # Fused optimizers read the numbers of a weight and of its state side by side, as they lie in memory.
    layouts = {each.stride() for each in again.state[resumed.weight].values() if each.ndim == 4}
    assert layouts == {resumed.weight.stride()}
    assert torch.equal(step(resumed, again), expected)


@pytest.mark.parametrize("name", ["2.exp_avg", "first.exp_avg", "-1.exp_avg"])
def test_a_tensor_that_is_of_no_parameter_is_refused(name: str) -> None:
    optimizer = OPTIMIZERS["adam"](network().parameters())
    with pytest.raises(InputError, match=f"tensor 'optimizer/{name}' belongs to none of 2 parameters"):
        restore_optimizer(optimizer, {name: torch.zeros(4)})
