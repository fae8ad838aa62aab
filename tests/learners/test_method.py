from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import shotproof as sp
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import option
from shotproof.core.trust import NotTrusted, trusting
from shotproof.learners.method import Method, make_method, methods
from tests.drawn_tasks import Batch, as_maps, draw
from tests.fixture_rows import ROWS

ON_FEATURES = [name for name in methods.names() if methods.get(name).needs in ("vectors", "maps")]
EVERY = [*ON_FEATURES, "knn(k=4)", "logistic(C=30)"]
EVERY += sorted({row.spec for rows in ROWS.values() for row in rows} - set(EVERY))
EVERY += ["sklearn:sklearn.linear_model.RidgeClassifier(alpha=0.1)"]
every_method = pytest.mark.parametrize("spec", EVERY)
# Mini-batches are drawn by row and a random start by class, so that the order of either matters.
every_symmetric_method = pytest.mark.parametrize(
    "spec", [spec for spec in EVERY if spec not in ("linear", "baseline++")]
)

# A step is like the next: what holds of a few holds of all, and the fixture has all.
FEWER_STEPS = {name: f"{name}(steps=20)" for name in ("tim", "alpha-tim", "paddle")}
FEWER_STEPS |= {name: f"{name}(steps=3)" for name in ("pt-map", "proto-lp", "ecpe")}


def made(spec: str, **drawn: int) -> tuple[Method, Batch]:
    """A method, and tasks of the kind that it needs."""
    method = make_method(FEWER_STEPS.get(spec, spec))
    return method, as_maps(draw(**drawn)) if method.needs == "maps" else draw(**drawn)


def assert_close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first.double(), second.double(), rtol=1e-6, atol=1e-6)


@every_symmetric_method
def test_the_order_of_the_support_does_not_matter(spec: str) -> None:
    method, batch = made(spec)
    order = torch.from_numpy(np.random.default_rng(1).permutation(batch.labels.shape[1]))
    shuffled = batch._replace(support=batch.support[:, order], labels=batch.labels[:, order])
    assert_close(method.scores(*shuffled), method.scores(*batch))


@every_symmetric_method
def test_renaming_the_classes_permutes_the_scores(spec: str) -> None:
    method, batch = made(spec)
    renamed = torch.tensor([2, 0, 3, 1])
    assert_close(method.scores(*batch._replace(labels=renamed[batch.labels]))[..., renamed], method.scores(*batch))


@every_method
def test_the_order_of_the_queries_permutes_the_scores(spec: str) -> None:
    method, batch = made(spec)
    order = torch.from_numpy(np.random.default_rng(2).permutation(batch.query.shape[1]))
    assert_close(method.scores(*batch._replace(query=batch.query[:, order])), method.scores(*batch)[:, order])


@pytest.mark.parametrize("spec", [spec for spec in EVERY if make_method(spec).family == "inductive"])
def test_an_inductive_method_scores_each_query_by_itself(spec: str) -> None:
    method, batch = made(spec)
    assert_close(method.scores(*batch._replace(query=batch.query[:, 3:5])), method.scores(*batch)[:, 3:5])


@every_method
def test_a_task_does_not_depend_on_its_batch_mates(spec: str) -> None:
    method, batch = made(spec, tasks=8)
    alone = [
        method.scores(batch.support[t : t + 1], batch.labels[t : t + 1], batch.query[t : t + 1], batch.way)
        for t in range(8)
    ]
    assert_close(torch.cat(alone), method.scores(*batch))


@every_method
def test_the_inputs_are_left_as_they_were(spec: str) -> None:
    method, batch = made(spec)
    copies = [tensor.clone() for tensor in batch[:3]]
    method.scores(*batch)
    assert all(torch.equal(copy, tensor) for copy, tensor in zip(copies, batch[:3], strict=True))


@every_method
def test_zero_vectors_give_numbers(spec: str) -> None:
    method, batch = made(spec)
    batch.support[:, 0] = 0
    batch.query[:, 0] = 0
    assert method.scores(*batch).isfinite().all()
    nothing = batch._replace(support=torch.zeros_like(batch.support), query=torch.zeros_like(batch.query))
    assert method.scores(*nothing).isfinite().all()


@every_method
def test_half_and_single_precision_are_taken(spec: str) -> None:
    method, batch = made(spec, tasks=2)
    for dtype in (torch.float16, torch.float32):
        scores = method.scores(batch.support.to(dtype), batch.labels, batch.query.to(dtype), batch.way)
        assert scores.shape == (2, batch.query.shape[1], batch.way)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), shots=st.lists(st.integers(1, 4), min_size=2, max_size=6), d=st.integers(1, 40))
def test_every_registered_method_meets_any_shape(seed: int, shots: list[int], d: int) -> None:
    batch = draw(seed, tasks=2, shots=tuple(shots), queries=3, d=2 * d)
    for name in ON_FEATURES:
        method = make_method(FEWER_STEPS.get(name, name))
        scores = method.scores(*(as_maps(batch, 2, 1) if method.needs == "maps" else batch))
        assert scores.shape == (2, 3, len(shots))
        assert scores.isfinite().all()


def test_names_are_normalized() -> None:
    assert make_method(" ridge( penalty = 1 ) ").spelling == "ridge(penalty=1)"
    assert make_method("hela_vfa").spelling == "hela-vfa"
    assert make_method("sklearn: sklearn.svm.SVC( C=10 )").spelling == "sklearn:sklearn.svm.SVC(C=10)"
    assert make_method("sklearn:sklearn.svm.SVC()").spelling == "sklearn:sklearn.svm.SVC"
    assert make_method(methods.RidgeRegression(penalty=2)).spelling == "ridge(penalty=2)"


def test_a_table_a_class_and_an_object_are_as_good_as_a_spelling() -> None:
    made = make_method("ridge(penalty=2)")
    assert make_method({"name": "ridge", "penalty": 2}) == made
    assert make_method(made) is made
    assert make_method(methods.RidgeRegression) == make_method("ridge")
    assert make_method({"name": "sklearn:sklearn.svm.SVC", "C": 10}) == make_method("sklearn:sklearn.svm.SVC(C=10)")


def test_parameters_are_those_it_was_made_with() -> None:
    assert make_method("ridge").parameters() == {"penalty": 50.0}
    assert make_method("knn(k=3)").parameters() == {"k": 3}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nccc", "unknown method 'nccc': did you mean 'ncc'"),
        ("ridge(penality=1)", "no option 'penality': did you mean 'penalty'"),
        ("ridge(penalty=0)", "method 'ridge': penalty: expected a number above 0, found 0"),
        ("ridge(penalty='1')", "penalty: expected a number above 0, found '1'"),
        ("ridge(penalty=1e999)", "penalty: expected a number above 0, found inf"),
        ("logistic(C=1e10)", "C: expected a number above 0, at most 1e.09, found 10000000000.0"),
        ("knn(k=1.5)", "k: expected a whole number from 1 to 10,000,000, found 1.5"),
        ("knn(k=True)", "k: expected a whole number from 1 to 10,000,000, found True"),
        ("cosine(rows='rwa')", "rows: expected unit or raw, found 'rwa': did you mean 'raw'"),
        ("knn:3", "'knn' takes no argument"),
        ("ridge(penalty=__import__('os'))", "not a literal"),
    ],
)
def test_bad_specifications_are_explained(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        make_method(spec)


def test_what_is_no_method_is_refused() -> None:
    with pytest.raises(InputError, match="found the class int"):
        make_method(int)
    with pytest.raises(InputError, match="found an object of int"):
        make_method(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a table with a name"):
        make_method({"penalty": 3})


def test_a_method_can_be_registered() -> None:
    @dataclass(frozen=True)
    class First(Method):
        about = "the first class, always"

        scale: float = option(1.0, "what the first class gets", above=0)

        def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
            return self.scale * torch.eye(way)[torch.zeros(query.shape[:2], dtype=torch.long)]

    methods.register("first", First)
    try:
        assert make_method("first(scale=2)").scores(*draw(tasks=1)).amax(-1).unique().tolist() == [2]
        assert First(scale=2).spelling == "first(scale=2)"
    finally:
        methods.unregister("first")
    with pytest.raises(UnknownName):
        make_method("first")


@pytest.mark.strangers
def test_users_make_by_the_registry_all_that_an_evaluation_takes(tmp_path: Path) -> None:
    file = tmp_path / "own_heads.py"
    file.write_text("def first(support, labels, query, bonus=0):\n    return labels[:1].expand(len(query)) + bonus\n")
    for spelling in ("ridge(penalty=2)", "sklearn:sklearn.svm.SVC(C=10)", f"{file}:first(bonus=1)"):
        made = sp.methods.make(spelling)
        assert made.spelling == spelling
        with trusting(True):
            assert make_method(spelling) == made
    assert sp.methods.make("sklearn:sklearn.svm.SVC", C=10).spelling == "sklearn:sklearn.svm.SVC(C=10)"
    with pytest.raises(NotTrusted, match="runs the code of"):
        make_method(f"{file}:first(bonus=1)")
