from __future__ import annotations

import threading

import pytest
import torch

from shotproof.core.runtime.threads import thread_beside, threads


def test_each_thread_computes_by_itself_and_the_number_of_threads_is_given_back() -> None:
    before = torch.get_num_threads()
    with threads(2) as pool:
        assert set(pool.map(lambda _: torch.get_num_threads(), range(4))) == {1}
    assert torch.get_num_threads() == before


def test_a_thread_beside_computes_in_as_many_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with thread_beside() as thread:
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
