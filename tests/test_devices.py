import pytest
import torch

from shotproof.devices import choose_device
from shotproof.errors import InputError


@pytest.mark.parametrize("name", ["gpu", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"device '{name}' cannot be used, expected e.g. cpu, cuda"):
        choose_device(name)


def test_the_cpu_is_always_there() -> None:
    assert choose_device("cpu", torch.float64) == torch.device("cpu")
    assert choose_device(None).type in ("cpu", "cuda")
