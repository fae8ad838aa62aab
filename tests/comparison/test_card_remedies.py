"""Remedies in plain words, from the records of features and task sets."""

from __future__ import annotations

from typing import Any

import pytest

from shotproof.comparison.card import CardRemedy
from shotproof.comparison.card_remedies import (
    UNKNOWN_MAP,
    feature_remedies,
    merge_remedies,
    remedy_sentence,
    support_remedies,
)
from shotproof.core.records import FeaturesRecord, FittedOn, Maker, Source, TasksRecord

DATA = {"base": "base.parquet@1f2e3d4c", "catalog": "catalog.parquet@5b6a7988", "split": "train"}
COLUMN = {"context_column": "context"}


@pytest.mark.parametrize(
    ("name", "options", "description"),
    [
        ("nap", {**DATA, **COLUMN, "by": "words", "directions": 15}, "nap(by='words', directions=15)"),
        (
            "nap",
            {"by": "contexts", "directions": 5, "context_column": "place"},
            "nap(context_column='place', by='contexts', directions=5)",
        ),
        ("leace", {**DATA, **COLUMN, "by": "words", "words": 20}, "leace(by='words')"),
        ("leace", {**DATA, **COLUMN, "by": "words", "words": 40}, "leace(by='words', words=40)"),
        ("wccn", {**DATA, "ridge": 10.0}, "wccn(ridge=10)"),
        ("center-contexts", {**DATA, **COLUMN}, "center-contexts"),
        ("of-another-version", {"by": "words"}, "of-another-version(all of its spelling)"),
    ],
)
def test_a_transform_is_described_by_its_settings_without_its_data(
    name: str, options: dict[str, Any], description: str
) -> None:
    made = Maker(name, f"{name}(all of its spelling)", options)
    (remedy,) = feature_remedies(FeaturesRecord(fitted=(FittedOn(made, 130),)))
    assert remedy == CardRemedy("features", description, 130)
    assert str(remedy) == f"{description}, fitted on 130 classes"


def test_a_map_that_states_nothing_is_of_unknown_origin() -> None:
    assert feature_remedies(FeaturesRecord(fitted=(FittedOn(),))) == (CardRemedy("features", UNKNOWN_MAP),)
    (remedy,) = feature_remedies(FeaturesRecord(fitted=(FittedOn(Maker("wccn"), -3),)))
    assert "classes" not in str(remedy)


def test_features_without_a_fitted_transform_have_no_remedy() -> None:
    record = FeaturesRecord(encoder=Maker("lite0"), transforms=(Maker("l2"), Maker("center")))
    assert feature_remedies(record) == ()
    assert remedy_sentence(()) == ""


def tasks_by(name: str, like: str = "", **options: Any) -> TasksRecord:
    """The record of tasks that a sampler draws, like another set if there is one."""
    sources = {"like": Source(like)} if like else {}
    return TasksRecord(sources=sources, sampler=Maker(name, name, options))


def test_supports_are_those_of_the_set_that_was_changed() -> None:
    tasks: dict[str | None, TasksRecord] = {
        "random": tasks_by("random"),
        "chosen": tasks_by("chosen", "random", choose="spread", candidates=32),
        "at random": tasks_by("chosen", "random", choose="random"),
        "copied": tasks_by("copied", "chosen", changes=["mixed-random"], copies=3),
        "blur": tasks_by("changed", "copied", change="blur"),
        "hardest": tasks_by("hardest", "chosen"),  # it has the queries of the other set, and other supports
    }
    names = {digest: [str(remedy) for remedy in support_remedies(digest, tasks)] for digest in (*tasks, "missing")}
    spread, copies = "supports by chosen(choose='spread')", "copied(changes=('mixed-random',), copies=3)"
    assert names == {
        "random": [],
        "chosen": [spread],
        "at random": [],
        "copied": [f"copies of supports by {copies}", spread],
        "blur": [f"copies of supports by {copies}", spread],
        "hardest": [],
        "missing": [],
    }


def test_sets_that_name_each_other_end() -> None:
    tasks: dict[str | None, TasksRecord] = {"a": tasks_by("changed", "b"), "b": tasks_by("changed", "a")}
    assert list(support_remedies("a", tasks)) == []


def test_a_remedy_of_several_axes_is_stated_once() -> None:
    spread = "chosen(choose='spread')"
    remedies = merge_remedies(
        [
            CardRemedy("features", "wccn(ridge=10)", 8),
            CardRemedy("supports", spread, axes=("blur",)),
            CardRemedy("supports", spread, axes=("noise",)),
            CardRemedy("features", "wccn(ridge=10)", 8),
        ]
    )
    assert remedies == (
        CardRemedy("features", "wccn(ridge=10)", 8),
        CardRemedy("supports", spread, axes=("blur", "noise")),
    )
    sentence = remedy_sentence(remedies)
    assert "remedies: wccn(ridge=10), fitted on 8 classes; " in sentence
    assert f"{spread} on blur and noise tasks" in sentence
