import os

import pytest

from shotproof.errors import ShotproofError
from shotproof.processes import in_processes


class Adder:
    """Work with data of its own."""

    def __init__(self, number: int) -> None:
        self.number = number

    def add(self, value: int) -> int:
        return self.number + value

    def process(self, value: int) -> int:
        return os.getpid()

    def die(self, value: int) -> int:
        os._exit(1)


@pytest.mark.parametrize(("workers", "chunk"), [(1, 1), (2, 1), (2, 7), (3, 100)])
def test_results_come_in_order_whatever_the_number_of_processes(workers: int, chunk: int) -> None:
    assert list(in_processes(Adder(5).add, range(20), workers, chunk)) == list(range(5, 25))


def test_several_workers_are_other_processes_and_one_is_this_one() -> None:
    assert set(in_processes(Adder(0).process, range(4), 1)) == {os.getpid()}
    assert os.getpid() not in set(in_processes(Adder(0).process, range(4), 2))


def test_a_process_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(ShotproofError, match="a worker process died"):
        list(in_processes(Adder(0).die, range(4), 2))
