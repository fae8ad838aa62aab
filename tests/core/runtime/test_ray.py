"""The Ray engine as far as it can be tested without Ray; the rest is in tests/scale."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from shotproof.core.errors import MissingExtra
from shotproof.core.runtime.engine import engines
from shotproof.core.runtime.ray import RayEngine
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.runtime.shared_state import shared_states


def test_without_the_extra_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=r"engine 'ray' needs .* pip install shotproof\[ray\]"):
        list(Runtime(engine="ray").map(abs, [-1], title=None))


@pytest.mark.parametrize("spelled", ["ray", "ray:10.0.0.1:6379", "ray://head:10001", "ray:10.0.0.1:6379(gpu_share=1)"])
def test_spellings(spelled: str) -> None:
    assert engines.make(spelled).spelling == spelled
    assert engines.make("ray://head:10001(cores=2)") == RayEngine(address="//head:10001", cores=2)


def test_a_machine_keeps_what_is_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": "/there", "RAY_ADDRESS": "there", "KEY": "here", "PATH": "/bin"})
    monkeypatch.setattr(sys, "path", ["/here", str(tmp_path)])
    states = shared_states(elsewhere=True)
    os.environ.clear()
    os.environ.update({"HOME": "/own", "RAY_ADDRESS": "own", "CUDA_VISIBLE_DEVICES": "1"})
    sys.path[:] = ["/own"]
    for set_state, state in states[:3]:
        set_state(state)
    assert os.environ == {"HOME": "/own", "RAY_ADDRESS": "own", "CUDA_VISIBLE_DEVICES": "1", "KEY": "here"}
    assert sys.path == [str(tmp_path), "/own"]
    for set_state, state in states[:3]:
        set_state({} if isinstance(state, dict) else state)
    assert "KEY" not in os.environ  # the next work comes without it
