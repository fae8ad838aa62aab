"""Remedies at hand: other heads and encoders than the classifier's own, each once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shotproof.core.errors import InputError
from shotproof.cures.classifier_remedies import EncoderRemedy, HeadRemedy
from shotproof.cures.remedy import RemedyData
from shotproof.learners.method import DEFAULT_METHODS, make_method
from tests.cures.remedy_data import remedy_data


@pytest.fixture
def data() -> RemedyData:
    return remedy_data()


def test_heads_are_those_of_the_run_and_the_default_ones_without_the_own(data: RemedyData) -> None:
    further = [make_method("knn(k=3)"), make_method(DEFAULT_METHODS[-1])]
    data = replace(data, method=make_method(DEFAULT_METHODS[0]), further_methods=further)
    treatments = HeadRemedy().treatments(data)
    spellings = [treatment.method.spelling for treatment in treatments if treatment.method]
    assert spellings == ["knn(k=3)", DEFAULT_METHODS[-1], *DEFAULT_METHODS[1:-1]]
    assert [treatment.name for treatment in treatments] == [f"head {spelling}" for spelling in spellings]
    assert [treatment.apply for treatment in treatments] == [(f"--method {spelling}",) for spelling in spellings]
    assert all(not treatment.steps and treatment.features is None for treatment in treatments)


def test_heads_to_try_are_an_option(data: RemedyData) -> None:
    (treatment,) = HeadRemedy(methods=("ridge(penalty=2)", "ncc")).treatments(data)  # ncc is its own
    assert treatment.method == make_method("ridge(penalty=2)")


def test_encoders_are_those_of_the_run(data: RemedyData) -> None:
    (treatment,) = EncoderRemedy().treatments(data)
    assert treatment.features is data.further_features[0]
    assert treatment.apply == ("--encoder dial(share=0.2, dimensions=24)",)
    with pytest.raises(InputError, match="encoders"):
        EncoderRemedy().treatments(replace(data, further_features=()))
