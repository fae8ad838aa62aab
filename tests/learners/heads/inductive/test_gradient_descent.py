from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from shotproof.learners.heads.inductive.gradient_descent import CosineHead, LinearHead, SgdMethod, draw_weights
from shotproof.learners.method import make_method
from tests.drawn_tasks import Batch, draw

SEEDS = torch.tensor([5, 6, 7])
OPTIONS = [
    {"epochs": 40},
    {"batch": None, "dampening": 0.0, "weight_decay": 0.0},
    {"batch": 3, "momentum": 0.0, "init": "normal", "epochs": 20},
]


def trained(method: SgdMethod, batch: Batch, task: int, parameters: list[Tensor], logits: object) -> Tensor:
    """Torch's own SGD on the features themselves, with the method's mini-batches; scores of the queries."""
    optimizer = torch.optim.SGD(
        parameters,
        lr=method.rate,
        momentum=method.momentum,
        dampening=method.dampening if method.momentum else 0,
        weight_decay=method.weight_decay,
    )
    count = batch.labels.shape[1]
    for epoch in range(method.epochs):
        for rows in method.order(SEEDS[task : task + 1], epoch, count)[0].split(method.batch or count):
            optimizer.zero_grad()
            cross_entropy(logits(batch.support[task, rows]), batch.labels[task, rows]).backward()  # type: ignore[operator]
            optimizer.step()
    return logits(batch.query[task]).detach()  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("options", [*OPTIONS, {"init": "zero"}])
def test_the_linear_head_is_that_of_torch(options: dict[str, object]) -> None:
    batch, method = draw(tasks=3), LinearHead(**options)  # type: ignore[arg-type]
    scores = method.seeded_scores(*batch, SEEDS)
    for task in range(3):
        layer = method._draw_initial(torch.ones(1, 1, 13, dtype=torch.float64), batch.way, SEEDS[task : task + 1])[0]
        weight, bias = (part.clone().requires_grad_() for part in (layer[:, :-1], layer[:, -1]))
        expected = trained(method, batch, task, [weight, bias], lambda rows, w=weight, b=bias: rows @ w.T + b)
        torch.testing.assert_close(scores[task], expected)


@pytest.mark.parametrize("options", [*OPTIONS, {"norm": "unit", "scale": 10.0, "rate": 0.1}])
def test_the_cosine_head_is_that_of_torch(options: dict[str, object]) -> None:
    batch, method = draw(tasks=3), CosineHead(**options)  # type: ignore[arg-type]
    scores = method.seeded_scores(*batch, SEEDS)
    for task in range(3):
        v = draw_weights(SEEDS[task : task + 1], batch.way, 12, method.init)[0].requires_grad_()
        g = v.detach().norm(dim=-1).requires_grad_() if method.norm == "learned" else torch.ones(batch.way)

        def logits(rows: Tensor, v: Tensor = v, g: Tensor = g) -> Tensor:
            unit = rows / (rows.norm(dim=-1, keepdim=True) + 1e-5)
            return method.scale * g * (unit @ normalize(v, dim=-1).T)

        expected = trained(method, batch, task, [v, g] if g.requires_grad else [v], logits)
        torch.testing.assert_close(scores[task], expected)


def test_the_start_is_that_of_a_linear_layer() -> None:
    weights = LinearHead()._draw_initial(torch.ones(200, 1, 17), 5, torch.arange(200))
    assert weights.abs().max() <= 16**-0.5
    assert weights.std().item() == pytest.approx((3 * 16) ** -0.5, rel=0.02)
    assert draw_weights(torch.arange(200), 5, 16, "normal").std().item() == pytest.approx(0.01, rel=0.02)


def test_a_pure_cosine_stays_within_its_scale_and_ignores_a_querys_length() -> None:
    batch, method = draw(), CosineHead(norm="unit", scale=3.0)
    scores = method.scores(*batch)
    assert scores.abs().max() <= 3
    longer = method.scores(*batch._replace(query=7 * batch.query))
    torch.testing.assert_close(longer, scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", ["linear", "baseline++"])
def test_a_task_has_its_own_random_numbers(spec: str) -> None:
    batch, method = draw(tasks=2), make_method(spec)
    assert isinstance(method, SgdMethod)
    same = batch._replace(support=batch.support[:1].expand(2, -1, -1), labels=batch.labels[:1].expand(2, -1))
    scores = method.seeded_scores(*same, torch.tensor([1, 2]))
    assert not torch.allclose(scores[0], scores[1])
    alone = method.seeded_scores(*(rows[1:] for rows in same[:3]), same.way, torch.tensor([2]))  # type: ignore[call-arg]
    torch.testing.assert_close(alone, scores[1:])
