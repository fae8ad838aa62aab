from __future__ import annotations

import pytest
import torch
from benchmarks.plain_heads import scaled

from shotproof.functional import sinkhorn as sinkhorn_module
from shotproof.functional.sinkhorn import balance, sinkhorn


def drawn(tasks: int = 5, way: int = 4, rows: int = 10, spread: float = 3.0) -> torch.Tensor:
    return spread * torch.randn(tasks, way, rows, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_each_task_stops_by_itself_where_the_plain_iteration_does() -> None:
    kernel = drawn()
    for tolerance in (1e-2, 1e-6):
        plain = torch.stack([scaled(task.T.exp(), 2.5, tolerance).T for task in kernel])
        torch.testing.assert_close(sinkhorn(kernel, 2.5, tolerance), plain)


def test_rows_that_are_fixed_stay_fixed() -> None:
    plan, fixed = drawn().exp(), torch.eye(4, dtype=torch.float64).repeat(5, 1, 1)
    plain = torch.stack([scaled(task.T, 2.5, 1e-3, fixed[0]).T for task in plan])
    found = balance(plan.clone(), 2.5, 1e-3, fixed=fixed)
    torch.testing.assert_close(found, plain)
    assert torch.equal(found[..., :4], fixed)


@pytest.mark.parametrize("every", [1, 4, 7])
def test_how_often_it_asks_whether_tasks_are_done_does_not_matter(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = drawn() * torch.linspace(0.1, 2, 5, dtype=torch.float64)[:, None, None]  # some are done much sooner
    alone = torch.cat([sinkhorn(task[None], 2.5, 1e-6) for task in kernel])
    monkeypatch.setattr(sinkhorn_module, "passes_between_checks", lambda _: every)
    assert torch.equal(sinkhorn(kernel, 2.5, 1e-6), alone)


def test_every_class_gets_its_part() -> None:
    columns = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)[:, None]
    found = sinkhorn(drawn(), columns, 1e-9)
    torch.testing.assert_close(found.sum(2, keepdim=True), columns.expand(5, 4, 1))
    torch.testing.assert_close(found.sum(1), torch.ones(5, 10, dtype=torch.float64), atol=1e-4, rtol=0)


def test_without_parts_it_is_a_softmax() -> None:
    torch.testing.assert_close(sinkhorn(drawn(), None, 1e-6), drawn().softmax(1))


def test_rows_that_are_fixed_stay_fixed_without_parts_too() -> None:
    plan, fixed = drawn().exp(), torch.eye(4, dtype=torch.float64).repeat(5, 1, 1)
    expected = torch.cat([fixed, drawn().softmax(1)[..., 4:]], 2)
    torch.testing.assert_close(balance(plan, None, 1e-3, fixed=fixed), expected)


def test_what_float64_cannot_hold_is_scaled_first() -> None:
    far = drawn(spread=1000.0)
    far[:, 0] -= 5000  # e^-5000 is 0
    found = sinkhorn(far, 2.5, 1e-6)
    assert found.isfinite().all()
    torch.testing.assert_close(found.sum(2), torch.full((5, 4), 2.5, dtype=torch.float64))
