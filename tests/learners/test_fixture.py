from __future__ import annotations

import importlib

import pytest

from shotproof.learners.method import make_method, methods
from tests.fixture_rows import EASY, PROPERTY_TESTS, ROWS, Row, fixture

EVERY = [row for rows in ROWS.values() for row in rows]
every_row = pytest.mark.parametrize("row", EVERY, ids=[f"{row.spec} on FIX-{row.fixture}" for row in EVERY])


@every_row
def test_the_numbers_of_the_fixture(row: Row) -> None:
    batch, truth = fixture(row.fixture)
    scores = make_method(row.spec).scores(*batch)
    if row.scores is not None:
        first = scores[0, 0].softmax(-1) if row.softmax else scores[0, 0]
        assert first.tolist() == pytest.approx(row.scores, abs=1e-5)
    assert int((scores.argmax(-1) == truth).sum()) == row.correct


@every_row
def test_the_easy_fixture(row: Row) -> None:
    batch, truth = fixture(row.fixture, EASY)
    assert int((make_method(row.spec).scores(*batch).argmax(-1) == truth).sum()) == row.easy


def test_the_fixture_is_the_published_one() -> None:
    batch, _ = fixture("S")
    first = [-0.572105, 0.476679, -0.648316, -1.941449, 0.925552, 0.165141, 0.489213, 1.758365]
    query = [0.853868, -1.259876, 0.239761, -1.388302, -0.699622, 1.777622, -0.034328, 0.843530]
    assert batch.support[0, 0].tolist() == pytest.approx(first, abs=1e-6)
    assert batch.query[0, 0].tolist() == pytest.approx(query, abs=1e-6)
    maps, _ = fixture("M")
    assert maps.support[0, 0, :, 1, 0].tolist() == batch.support[0, 0, 4:].tolist()
    assert fixture("P")[0].support.min() > 0.37


@pytest.mark.parametrize("name", methods.names())
def test_no_method_goes_without_a_fixture_or_a_test_of_a_property(name: str) -> None:
    if name in ROWS:
        assert all(row.spec.partition("(")[0] == name for row in ROWS[name])
        assert ROWS[name]
    else:
        module, _, test = PROPERTY_TESTS[name].partition(":")
        assert callable(getattr(importlib.import_module(f"tests.learners.{module}"), test))
