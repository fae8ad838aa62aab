"""What every registered backbone promises."""

from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.models.backbone import BackboneNetwork, backbones
from tests.small_networks import spelled

# Models of timm are held to their own tests: the package need not be installed.
every_backbone = pytest.mark.parametrize("name", [name for name in backbones.names() if name != "timm"])
pytestmark = pytest.mark.usefixtures("quiet_transformers")


def built(spelling: str, channels: int = 3, side: int = 32) -> BackboneNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return backbones.make(spelling).build((channels, side, side))


def side_of(name: str) -> int:
    return 16 if name == "wrn-28-10" else 32  # the largest one is slow, and has no need of more


@every_backbone
def test_its_stages_end_in_its_maps_and_these_become_its_vectors(name: str) -> None:
    side = side_of(name)
    network = built(spelled(name), side=side).eval()
    items = torch.randn(2, 3, side, side)
    with torch.no_grad():
        stages, maps, vectors = network.stages(items), network.maps(items), network.vectors(items)
    assert torch.equal(stages[-1], maps)
    assert maps.shape == (2, *network.map_shape)
    if type(network).vectors is BackboneNetwork.vectors:  # others have a token or a pooler of their own
        assert torch.equal(network.pool(maps), vectors)
    assert vectors.shape == (2, network.dim)
    sides = [stage.shape[-1] for stage in stages]
    assert sides == sorted(sides, reverse=True)


@every_backbone
def test_in_evaluation_an_item_does_not_depend_on_the_others(name: str) -> None:
    side = side_of(name)
    network = built(spelled(name), side=side).eval()
    items = torch.randn(3, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        together, alone = network(items), torch.cat([network(one[None]) for one in items])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


@every_backbone
def test_gradients_reach_every_weight(name: str) -> None:
    side = side_of(name)
    network = built(spelled(name), side=side).train()
    network(torch.randn(2, 3, side, side)).square().sum().backward()
    without = [key for key, each in network.named_parameters() if each.requires_grad and each.grad is None]
    assert not without


@every_backbone
def test_spectrograms_of_one_channel_unless_it_is_pretrained(name: str) -> None:
    if backbones.get(name).pretrained:
        with pytest.raises(InputError, match=f"backbone '{name}' needs images with 3 channels, found 1"):
            built(spelled(name), channels=1)
    else:
        side = side_of(name)
        assert built(spelled(name), channels=1, side=side).eval()(torch.randn(1, 1, side, side)).shape[0] == 1


@pytest.mark.parametrize(
    ("spelling", "parameters", "map_shape", "dim"),
    [
        ("conv64f", 113_088, (64, 5, 5), 1600),
        ("conv64f(pools=3)", 113_088, (64, 10, 10), 6400),
        ("conv64f(pools=2, pooling='mean')", 113_088, (64, 21, 21), 64),
        ("resnet12", 12_424_320, (640, 5, 5), 640),
        ("resnet12(width='512')", 7_996_800, (512, 5, 5), 512),
        ("resnet12(pools=2)", 12_424_320, (640, 21, 21), 640),
        ("resnet18", 11_168_832, (512, 11, 11), 512),
        ("resnet18(last_stride=1)", 11_168_832, (512, 21, 21), 512),
        ("resnet18(stem='large')", 11_176_512, (512, 3, 3), 512),
        ("resnet10", 4_905_792, (512, 3, 3), 512),
        ("resnet10(stem='small')", 4_898_112, (512, 11, 11), 512),
        ("wrn-28-10", 36_472_784, (640, 21, 21), 640),
    ],
)
def test_sizes_are_those_of_the_papers(
    spelling: str, parameters: int, map_shape: tuple[int, int, int], dim: int
) -> None:
    network = built(spelling, side=84)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert (network.map_shape, network.dim) == (map_shape, dim)


def test_items_that_are_too_small_are_refused() -> None:
    with pytest.raises(InputError, match="backbone 'conv64f' cannot take items of 8 x 8"):
        built("conv64f", side=8)


@pytest.mark.parametrize("spelling", ["conv64f(running_statistics=False)", "resnet18(running_statistics=False)"])
def test_without_running_statistics_evaluation_uses_those_of_the_batch(spelling: str) -> None:
    network = built(spelling)
    items = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(network.train()(items), network.eval()(items))
        assert not torch.allclose(network(items)[:1], network(items[:1]), atol=1e-3)
