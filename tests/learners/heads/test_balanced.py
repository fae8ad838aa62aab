from __future__ import annotations

import pytest
import torch

from shotproof.learners.method import make_method
from tests.drawn_tasks import draw

# 3 classes, of which the third has no query at all.
SUPPORT = 5 * torch.eye(3, dtype=torch.float64).repeat_interleave(2, 0)
LABELS = torch.arange(3).repeat_interleave(2)
QUERY = 5 * torch.eye(3, dtype=torch.float64)[[0, 0, 0, 0, 0, 1]]


@pytest.mark.parametrize("spec", ["pt-map", "proto-lp(steps=20)", "ecpe"])
def test_the_switch_is_for_unbalanced_queries(spec: str) -> None:
    noise = 0.3 * torch.rand(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    task = ((SUPPORT + noise[:6])[None], LABELS[None], (QUERY + noise[6:])[None], 3)
    free = spec.replace(")", ", balanced=False)") if "(" in spec else f"{spec}(balanced=False)"
    assert make_method(spec).balanced
    assert not make_method(free).balanced
    shares = make_method(free).scores(*task)[0]
    assert shares.argmax(1).tolist() == QUERY.argmax(1).tolist()
    torch.testing.assert_close(shares.sum(1), torch.ones(6, dtype=torch.float64))
    assert shares[:, 0].sum() > make_method(spec).scores(*task)[0, :, 0].sum()


@pytest.mark.parametrize("spec", ["pt-map(steps=3)", "proto-lp(steps=3)"])
def test_every_class_gets_its_part_of_the_queries(spec: str) -> None:
    batch = draw()
    shares = make_method(spec).scores(*batch)
    torch.testing.assert_close(shares.sum(1), torch.full_like(shares.sum(1), batch.query.shape[1] / batch.way))


def test_a_turn_of_the_features_changes_nothing() -> None:
    batch = draw(d=12)
    turn = torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).Q
    turned = batch._replace(support=batch.support @ turn, query=batch.query @ turn)
    for spec in ("pt-map(power=1, steps=3)", "proto-lp(power=1, steps=3)", "ecpe(power=1, steps=3)"):
        torch.testing.assert_close(make_method(spec).scores(*turned), make_method(spec).scores(*batch))
