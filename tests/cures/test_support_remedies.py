"""Remedies of the support set: samplers that choose or copy supports, and leave classes and queries as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from shotproof.analysis.inputs import Inputs
from shotproof.core.errors import InputError
from shotproof.cures.class_parts import CONFIRM
from shotproof.cures.remedy import RemedyData
from shotproof.cures.search import random_supports
from shotproof.cures.stage import Stage
from shotproof.cures.support_remedies import CopiesRemedy, SupportsRemedy, choose_supports
from shotproof.tasks.sampler import sample, samplers
from tests.cured_worlds import QUERY, SHOT, WAY
from tests.cures.remedy_data import CHANGE, remedy_data

QUERIES = ["task", "slot", "label", "query"]
REMEDIES = [SupportsRemedy("spread"), SupportsRemedy("typical"), SupportsRemedy("easy"), CopiesRemedy(copies=2)]


@pytest.fixture(scope="module")
def data() -> RemedyData:
    return remedy_data()


@pytest.fixture(scope="module")
def stage(data: RemedyData) -> Stage:
    """Random and FewSTAB tasks of the classes to confirm on."""
    assert data.attributes is not None
    design: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY, "tasks": 8, "split": CONFIRM}
    tasks = [
        sample(data.catalog, "random", **design),
        sample(data.catalog, "fewstab", attributes=data.attributes, **design),
    ]
    return Stage(Inputs((), tasks, [data.catalog], [data.features], [data.attributes]))


@pytest.mark.parametrize("remedy", REMEDIES, ids=str)
def test_classes_and_queries_stay(remedy: SupportsRemedy | CopiesRemedy, data: RemedyData, stage: Stage) -> None:
    for treatment in (random_supports(), *remedy.treatments(data)):
        assert treatment.sampler is not None
        assert not treatment.steps
        for tasks in stage.tasks:
            chosen = stage.chosen(treatment.sampler, tasks, data.features)
            assert chosen.table.select(QUERIES).equals(tasks.table.select(QUERIES))
            assert chosen.changes("query") is None
            assert chosen.record.match == tasks.digest


def test_supports_that_are_chosen_are_as_many_others(data: RemedyData, stage: Stage) -> None:
    random, fewstab = stage.tasks
    for choose in ("spread", "typical", "easy"):
        (treatment,) = SupportsRemedy(choose).treatments(data)
        assert treatment.name == f"{choose} supports"
        for tasks in (random, fewstab):
            chosen = stage.chosen(str(treatment.sampler), tasks, data.features)
            counts = pc.list_value_length(chosen.table.column("support")).to_pylist()
            assert set(counts) == {SHOT}
            assert not chosen.table.column("support").equals(tasks.table.column("support"))


def test_spread_covers_contexts_or_else_words(data: RemedyData, stage: Stage) -> None:
    by_contexts = samplers.make(choose_supports("spread", data))
    assert by_contexts.parameters() == {**by_contexts.parameters(), "context_column": "background"}
    by_words = choose_supports("spread", replace(data, context_column=None))
    assert samplers.make(by_words).takes == ("like", "attributes")
    assert samplers.make(choose_supports("easy", data)).takes == ("like", "features")
    random = stage.tasks[0]
    contexts = dict(zip(data.catalog.items, data.catalog.table.column("background").to_pylist(), strict=True))
    covered = [
        len({contexts[item] for item in support})
        for support in stage.chosen(choose_supports("spread", data), random, data.features)
        .table.column("support")
        .to_pylist()
    ]
    assert np.mean(np.array(covered) == SHOT) > 0.9


def test_nothing_to_spread_over_is_refused(data: RemedyData) -> None:
    bare = replace(data, context_column=None, attributes=None)
    with pytest.raises(InputError, match="no contexts and no attributes"):
        SupportsRemedy("spread").treatments(bare)
    assert SupportsRemedy("easy").treatments(bare)


def test_other_numbers_of_copies_are_other_treatments(data: RemedyData) -> None:
    """They are confirmed under their names."""
    data = replace(data, copies=["mixed-random", CHANGE])
    one, several = (
        {treatment.name: treatment.sampler for treatment in CopiesRemedy(copies=copies).treatments(data)}
        for copies in (1, 3)
    )
    assert list(one) == ["1 copy by mixed-random", f"1 copy by {CHANGE}"]
    assert list(several) == ["3 copies by mixed-random", f"1 copy by {CHANGE}"]  # which gives one copy in any case
    for sampler, change, copies in (
        (several["3 copies by mixed-random"], "mixed-random", 3),
        (one[f"1 copy by {CHANGE}"], CHANGE, 1),
    ):
        options = samplers.make(str(sampler)).parameters()
        assert (options["changes"], options["copies"]) == ((change,), copies)
