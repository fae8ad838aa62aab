from __future__ import annotations

from functools import partial

import pytest
import torch
from benchmarks import plain_heads
from benchmarks.plain_heads import PLAIN

from shotproof.learners.method import make_method, methods
from tests.drawn_tasks import draw

FEWER_STEPS = {
    "tim(steps=40)": partial(plain_heads.tim, steps=40),
    "alpha-tim(steps=40)": partial(plain_heads.alpha_tim, steps=40),
}
HEADS = {name: head for name, head in PLAIN.items() if "tim" not in name} | FEWER_STEPS


@pytest.mark.parametrize("spec", HEADS)
def test_a_batched_head_gives_what_the_plain_loop_gives(spec: str) -> None:
    batch = draw(seed=3, tasks=2, queries=11, d=20)
    plain = [HEADS[spec](*(part[t] for part in batch[:3]), batch.way) for t in range(2)]
    torch.testing.assert_close(make_method(spec).scores(*batch), torch.stack(plain), rtol=1e-6, atol=1e-6)


def test_every_transductive_head_has_a_plain_loop() -> None:
    heads = [name for name in methods.names() if methods.get(name).needs != "items"]
    transductive = {name for name in heads if methods.get(name).family == "transductive"}
    assert transductive - {"hela-vfa"} == set(PLAIN)
