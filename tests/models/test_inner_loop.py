"""Inner loops against loops over tasks with copies of the network, and against finite differences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo.utils
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import InputError
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import (
    NetworkView,
    adapted,
    adapted_linear,
    gradient_step,
    linear_head,
    normalized_by,
    over_tasks,
    stateless_batch_norm,
)
from shotproof.models.model import weights_digest
from shotproof.models.network import FewShotNetwork

TASKS, WAY, SHOT = 3, 3, 2


class TinyBackbone(BackboneNetwork):
    """A convolution, batch norm and a smooth activation, in double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.dim = 4

    def stages(self, items: Tensor) -> list[Tensor]:
        return [torch.tanh(self.norm(self.conv(items)))]


def tiny() -> FewShotNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        body = TinyBackbone()
        net = FewShotNetwork(body, nn.Linear(4, WAY)).double()
        net.backbone.norm.running_mean.uniform_(-0.2, 0.2)
        net.backbone.norm.running_var.uniform_(0.5, 2)
    return net


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    labels = torch.arange(WAY).repeat_interleave(SHOT).expand(TASKS, -1)
    support = torch.randn(TASKS, WAY * SHOT, 1, 4, 4, generator=draw, dtype=torch.float64)
    return support, labels, torch.randn(TASKS, 5, 1, 4, 4, generator=draw, dtype=torch.float64)


def by_copies(net: FewShotNetwork, names: str, steps: int, rate: float, training: bool) -> Tensor:
    """The same by a copy of the network per task and torch's own optimizer."""
    scores = []
    for support, labels, query in zip(*drawn(), strict=True):
        own = copy.deepcopy(net).train(training)
        optimizer = torch.optim.SGD([each for name, each in own.named_parameters() if name.startswith(names)], rate)
        for _ in range(steps):
            optimizer.zero_grad()
            functional.cross_entropy(own.head(own.backbone(support)), labels).backward()
            optimizer.step()
        scores.append(own.head(own.backbone(query)).detach())
    return torch.stack(scores)


def scores_after(net: FewShotNetwork, names: str, steps: int, rate: float, **options: object) -> Tensor:
    support, labels, query = drawn()
    chosen = {"adapts": lambda name: name.startswith(names), "steps": steps, "rate": rate, **options}
    return adapted(net, support, labels, **chosen)(query)


@pytest.mark.parametrize("names", ["", "backbone.", "head."])
@pytest.mark.parametrize("statistics", ["batch", "running"])
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("at_once", [True, False])
def test_all_tasks_at_once_are_as_copies_of_the_network_one_by_one(
    names: str, statistics: str, steps: int, at_once: bool
) -> None:
    net = tiny().eval()
    before = weights_digest(net.state_dict())
    scores = scores_after(net, names, steps, 0.3, batch_norm=statistics, at_once=at_once)
    torch.testing.assert_close(scores.detach(), by_copies(net, names, steps, 0.3, statistics == "batch"))
    assert weights_digest(net.state_dict()) == before
    assert not any(module.training for module in net.modules())


def outer_gradient(net: FewShotNetwork, scores: Tensor) -> Tensor:
    loss = functional.cross_entropy(scores.flatten(0, 1), torch.zeros(TASKS * 5, dtype=torch.long))
    return torch.autograd.grad(loss, net.backbone.conv.weight)[0]


@pytest.mark.parametrize("statistics", ["batch", "running"])
def test_gradients_to_the_start_are_those_of_autograd_and_of_finite_differences(statistics: str) -> None:
    net = tiny().train(statistics == "batch")
    view, found = NetworkView(net, logits=True), {}
    for first_order in (True, False):
        scores = []
        with stateless_batch_norm(net):
            for support, labels, query in zip(*drawn(), strict=True):
                weights = dict(net.named_parameters())
                for _ in range(2):
                    loss = functional.cross_entropy(view.call(weights, support), labels)
                    slopes = torch.autograd.grad(loss, [*weights.values()], create_graph=not first_order)
                    weights = {name: weights[name] - 0.5 * slope for name, slope in zip(weights, slopes, strict=True)}
                scores.append(view.call(weights, query))
        batched = scores_after(net, "", 2, 0.5, first_order=first_order, batch_norm=statistics, at_once=True)
        found[first_order] = outer_gradient(net, batched)
        torch.testing.assert_close(found[first_order], outer_gradient(net, torch.stack(scores)))
    assert not torch.allclose(found[True], found[False], rtol=0.05)

    def loss_at(change: float) -> float:
        with torch.no_grad():
            net.backbone.conv.weight[3, 0, 2, 0] += change
            scores = scores_after(net, "", 2, 0.5, batch_norm=statistics)
            net.backbone.conv.weight[3, 0, 2, 0] -= change
        return functional.cross_entropy(scores.flatten(0, 1), torch.zeros(TASKS * 5, dtype=torch.long)).item()

    difference = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5
    assert found[False][3, 0, 2, 0].item() == pytest.approx(difference, rel=1e-5)


class TracedNetwork(FewShotNetwork):
    """Compiled as any other, but that no machine code is made."""

    def compiled(self, name: str, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return super().compiled(name, function, backend="eager", **options)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")  # PyTorch's own
def test_steps_are_compiled_once_and_give_the_same_gradients() -> None:
    plain = tiny().train()
    traced = TracedNetwork(plain.backbone, plain.head).train()
    traced.compile_training()
    torch._dynamo.reset()
    graphs = []
    for _ in range(2):
        scores, expected = (scores_after(net, "", 3, 0.3, at_once=True) for net in (traced, plain))
        torch.testing.assert_close(scores, expected)
        torch.testing.assert_close(outer_gradient(traced, scores), outer_gradient(plain, expected))
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    # The first step, in which all tasks have the same weights, the steps after it, and the queries.
    assert graphs[1] == graphs[0]
    assert graphs[0] >= 3
    assert not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.parametrize("first_order", [False, True])
def test_a_linear_head_is_adapted_as_autograd_would(first_order: bool) -> None:
    draw = torch.Generator().manual_seed(2)
    support = torch.randn(TASKS, WAY * SHOT, 7, generator=draw, dtype=torch.float64)
    labels = torch.arange(WAY).repeat(SHOT).expand(TASKS, -1)
    head = nn.Linear(7, WAY).double()
    weights, biases = adapted_linear(head.weight, head.bias, support, labels, 3, 0.2, first_order)
    for task in range(TASKS):
        weight, bias = head.weight, head.bias
        for _ in range(3):
            loss = functional.cross_entropy(support[task] @ weight.T + bias, labels[task])
            slopes = torch.autograd.grad(loss, (weight, bias), create_graph=not first_order)
            weight, bias = weight - 0.2 * slopes[0], bias - 0.2 * slopes[1]
        torch.testing.assert_close(weights[task], weight)
        torch.testing.assert_close(biases[task, 0], bias)
        expected, found = (
            torch.autograd.grad(w.square().sum(), head.weight, retain_graph=True)[0] for w in (weight, weights[task])
        )
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("statistics", ["batch", "running"])
@pytest.mark.parametrize("shared", [True, False])
def test_steps_of_several_tasks_at_once_in_half_precision_are_those_in_single(statistics: str, shared: bool) -> None:
    net = tiny().float()
    support, labels, _ = drawn()
    weights = {name: each.detach().clone() for name, each in net.named_parameters()}
    given = weights if shared else {name: each.expand(TASKS, *each.shape) for name, each in weights.items()}
    step = gradient_step(NetworkView(net, logits=True), 10.0, first_order=True)
    found = []
    for half in (True, False):
        # PyTorch's own batch norm ends here with an error in half precision, on a GPU as on a CPU.
        with torch.autocast("cpu", torch.bfloat16, enabled=half), normalized_by(net, statistics, stepwise=half):
            found.append(over_tasks(net, step, shared, at_once=True)(given, support.float(), labels))
    for name, each in weights.items():
        changes = [one[name] - each for one in found]
        torch.testing.assert_close(*changes, rtol=0.05, atol=0.02)
    assert (found[1]["backbone.norm.bias"] - weights["backbone.norm.bias"]).abs().max() > 0.1


def test_batch_norm_is_as_it_was_afterwards() -> None:
    net = tiny().train()
    with normalized_by(net, "running"):
        assert not net.backbone.norm.training
    assert net.backbone.norm.training
    assert net.backbone.norm.track_running_stats


def test_tasks_of_another_number_of_classes_than_the_heads_are_refused() -> None:
    with pytest.raises(InputError, match=r"head has 3 classes, but the tasks have 5: .* way=5"):
        linear_head(tiny(), 5)
