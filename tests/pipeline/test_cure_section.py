"""The section [cure] of an experiment: which remedies it names, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError, UnknownName
from shotproof.cures.remedy import DEFAULT_REMEDIES
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.experiment import Experiment
from tests.cured_run import EXPERIMENT
from tests.experiment_files import assert_refused, write_experiment


def chosen(*names: str) -> list[str]:
    return [str(remedy) for remedy in CureSection(remedies=names).chosen_remedies()]


def test_remedies_are_named_by_spelling_name_or_family() -> None:
    assert chosen() == list(DEFAULT_REMEDIES)
    assert chosen("wccn(ridges=(2.0,))") == ["wccn(ridges=(2,))"]
    assert chosen("nap") == ["nap(by='changes')", "nap(by='contexts')", "nap(by='words')"]
    assert chosen("supports") == [f"supports(choose='{choose}')" for choose in ("spread", "typical", "easy")]
    assert set(chosen("features", "heads")) == {
        spelling for spelling in DEFAULT_REMEDIES if not spelling.startswith(("supports", "copies", "encoder"))
    }


def test_a_remedy_that_is_named_twice_is_tried_once() -> None:
    assert chosen("supports", "supports(choose='easy')", "supports( choose = 'easy' )") == chosen("supports")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("wcnn", "'wccn'"),
        ("suports", "'supports'"),
        ("feature", "'features'"),
        ("napp(by='words')", "'nap'"),
        ("nap(by='word')", "'words'"),
        ("supports(choose='hard')", "known: easy, spread, typical"),
    ],
)
def test_an_unknown_remedy_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        CureSection(remedies=(name,))
    assert hint in str(refused.value)


def test_a_word_that_is_no_remedy_and_no_family_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match="remedy or family"):
        CureSection(remedies=("bogus",))


def test_an_experiment_has_the_section_only_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "catalog.parquet").touch()
    section = Experiment.read(write_experiment(tmp_path, EXPERIMENT)).cure
    assert section is not None
    assert section.tasks == 20
    assert section.remedies[1] == "preprocess"
    without = EXPERIMENT.partition("[cure]")
    rest = without[2].partition("[runtime]")
    assert Experiment.read(write_experiment(tmp_path, without[0] + "[runtime]" + rest[2])).cure is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('"preproces"', "[cure]: unknown remedy or family 'preproces'"),
        ('"preprocess"]\nlevel = 1.0 #', "[cure]: level: expected a share above 0 and below 1"),
        ('"preprocess"]\nshot = 0 #', "[cure], shot: expected a whole number from 1"),
        ('"preprocess"]\nlevels = 0.9 #', "[cure]: unknown key 'levels': did you mean 'level'"),
        ('"preprocess"]\nseed = -1 #', "[cure], seed: expected a whole number from 0"),
    ],
)
def test_a_bad_section_is_refused_before_anything_is_made(change: str, message: str, tmp_path: Path) -> None:
    file = write_experiment(tmp_path, EXPERIMENT, ('"preprocess"', change))
    assert_refused(file, message)
