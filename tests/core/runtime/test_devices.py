import subprocess
import sys
import threading

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.core.runtime.devices import (
    background_thread,
    choose_device,
    choose_devices,
    one_thread_per_operation,
    threads,
)


@pytest.mark.parametrize("name", ["gpu", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"device '{name}' cannot be used, expected e.g. cpu, cuda"):
        choose_device(name)


def test_the_cpu_is_always_there() -> None:
    assert choose_device("cpu", torch.float64) == torch.device("cpu")
    assert choose_device(None).type in ("cpu", "cuda")
    assert choose_devices("cpu") == [torch.device("cpu")]


def test_one_thread_per_operation_ends_with_its_block() -> None:
    torch.set_num_threads(2)
    with one_thread_per_operation():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_the_runtime_is_imported_without_heavy_libraries() -> None:
    code = (
        "import sys, shotproof.core.runtime.runtime, shotproof.core.runtime.local, shotproof.core.runtime.devices; "
        "print({'torch', 'rich', 'loky', 'cloudpickle', 'numpy', 'IPython'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_each_thread_computes_by_itself_and_the_number_of_threads_is_given_back() -> None:
    before = torch.get_num_threads()
    with threads(2) as pool:
        assert set(pool.map(lambda _: torch.get_num_threads(), range(4))) == {1}
    assert torch.get_num_threads() == before


def test_a_thread_beside_computes_in_as_many_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with background_thread() as thread:
            assert thread.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_nobody_waits_for_a_thread_after_an_error() -> None:
    begun, end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        end.wait(30)
        ended.set()

    def interrupted() -> None:
        with threads(1) as pool:
            pool.submit(work)
            begun.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not ended.is_set()
    end.set()
