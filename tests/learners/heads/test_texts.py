"""Methods on the texts of classes: the formulas in NumPy, the training by torch's own optimizer, and the contract."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.learners.bases import TextMethod
from shotproof.learners.method import make_method, methods
from tests.drawn_tasks import draw

NAMES = [name for name in methods.names() if methods.get(name).needs == "texts"]
every_method = pytest.mark.parametrize("name", NAMES)


class TextBatch(NamedTuple):
    """What `scores_with_texts` takes."""

    support: Tensor
    labels: Tensor
    query: Tensor
    texts: Tensor


def drawn(seed: int = 0, tasks: int = 4) -> TextBatch:
    batch = draw(seed, tasks=tasks)
    texts = torch.from_numpy(np.random.default_rng(seed + 1).normal(size=(tasks, batch.way, batch.query.shape[-1])))
    return TextBatch(batch.support, batch.labels, batch.query, texts)


def made(spec: str) -> TextMethod:
    method = make_method(spec)
    assert isinstance(method, TextMethod)
    return method


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_scores_are_those_of_the_formula() -> None:
    batch = drawn()
    alpha, beta = 2.0, 3.0
    zero_shot = made("zero-shot").scores_with_texts(*batch)
    tip = made(f"tip-adapter(alpha={alpha}, beta={beta})").scores_with_texts(*batch)
    default = made("tip-adapter").scores_with_texts(*batch)
    for task in range(4):
        support, labels, query, texts = (part[task].numpy() for part in batch)
        for place, asked in enumerate(unit(query)):
            cosines = unit(texts) @ asked
            np.testing.assert_allclose(zero_shot[task, place], cosines, atol=1e-12)
            for scores, a, b in ((tip, alpha, beta), (default, 1.0, 5.5)):
                cached = np.zeros(len(texts))
                for row, label in zip(unit(support), labels, strict=True):
                    cached[label] += a * np.exp(-b * (1 - row @ asked))
                np.testing.assert_allclose(scores[task, place], cached + 100 * cosines, atol=1e-10)


def by_torch(spec: str, batch: TextBatch, task: int) -> Tensor:
    """The scores of one task, its parameters trained by torch.optim.AdamW along a cosine, as in published code."""
    normalize = torch.nn.functional.normalize
    support, query, texts = (normalize(part[task], dim=-1) for part in (batch.support, batch.query, batch.texts))
    labels, values = batch.labels[task], torch.nn.functional.one_hot(batch.labels[task], len(texts)).double()
    parameter = torch.nn.Parameter((support if spec == "tip-adapter-f" else texts).clone())
    settings = {"eps": 1e-4} if spec == "tip-adapter-f" else {}
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, **settings)  # type: ignore[arg-type]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

    def logits(rows: Tensor) -> Tensor:
        if spec == "text-probe":
            return 100 * rows @ parameter.T
        return 100 * rows @ texts.T + ((-1) * (5.5 - 5.5 * rows @ parameter.T)).exp() @ values

    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits(support), labels).backward()
        optimizer.step()
        schedule.step()
    return logits(query).detach()


@pytest.mark.parametrize("spec", ["tip-adapter-f", "text-probe"])
def test_training_is_that_of_torch(spec: str) -> None:
    batch = drawn()
    scores = made(spec).scores_with_texts(*batch)
    untrained = made(f"{spec}(epochs=0)").scores_with_texts(*batch)
    assert (scores - untrained).abs().max() > 1e-3
    for task in range(4):
        torch.testing.assert_close(scores[task], by_torch(spec, batch, task), rtol=1e-9, atol=1e-9)


def test_without_a_step_or_a_cache_they_are_the_simpler_method() -> None:
    batch = drawn()
    zero_shot, tip = (made(name).scores_with_texts(*batch) for name in ("zero-shot", "tip-adapter"))
    torch.testing.assert_close(made("tip-adapter-f(epochs=0)").scores_with_texts(*batch), tip)
    torch.testing.assert_close(made("tip-adapter(alpha=0)").scores_with_texts(*batch), 100 * zero_shot)
    torch.testing.assert_close(made("text-probe(epochs=0, scale=1)").scores_with_texts(*batch), zero_shot)


def test_training_tells_the_support_apart_better() -> None:
    batch = drawn()
    for name in ("tip-adapter-f", "text-probe"):
        correct = [
            int((made(spec).scores_with_texts(*batch._replace(query=batch.support)).argmax(-1) == batch.labels).sum())
            for spec in (f"{name}(epochs=0)", f"{name}(epochs=100, rate=0.01)")
        ]
        assert correct[1] > correct[0]


@every_method
def test_order_and_names_do_not_matter(name: str) -> None:
    method, batch = made(name), drawn()
    scores = method.scores_with_texts(*batch)
    order = torch.from_numpy(np.random.default_rng(1).permutation(batch.labels.shape[1]))
    shuffled = batch._replace(support=batch.support[:, order], labels=batch.labels[:, order])
    torch.testing.assert_close(method.scores_with_texts(*shuffled), scores)
    renamed = torch.tensor([2, 0, 3, 1])
    texts = torch.empty_like(batch.texts)
    texts[:, renamed] = batch.texts
    other = method.scores_with_texts(*batch._replace(labels=renamed[batch.labels], texts=texts))
    torch.testing.assert_close(other[..., renamed], scores)


@every_method
def test_a_query_and_a_task_stand_alone_and_inputs_stay(name: str) -> None:
    method, batch = made(name), drawn()
    copies = [part.clone() for part in batch]
    scores = method.scores_with_texts(*batch)
    assert all(torch.equal(copy, part) for copy, part in zip(copies, batch, strict=True))
    few = method.scores_with_texts(*batch._replace(query=batch.query[:, 3:5]))
    torch.testing.assert_close(few, scores[:, 3:5])
    alone = [method.scores_with_texts(*(part[task : task + 1] for part in batch)) for task in range(4)]
    torch.testing.assert_close(torch.cat(alone), scores)


@every_method
def test_zeros_and_half_precision_give_numbers(name: str) -> None:
    method, batch = made(name), drawn()
    nothing = TextBatch(torch.zeros_like(batch.support), batch.labels, torch.zeros_like(batch.query), batch.texts * 0)
    assert method.scores_with_texts(*nothing).isfinite().all()
    half = TextBatch(batch.support.half(), batch.labels, batch.query.half(), batch.texts.half())
    assert method.scores_with_texts(*half).shape == (4, batch.query.shape[1], 4)


@every_method
def test_without_texts_there_are_no_scores(name: str) -> None:
    with pytest.raises(InputError, match=f"method '{name}' needs the texts"):
        make_method(name).scores(*draw())
