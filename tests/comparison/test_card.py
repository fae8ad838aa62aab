"""The card's file: whole, typed, versioned, and refused where it is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shotproof.comparison.card import CARD_FILE, FORMAT, Card
from shotproof.comparison.card_schema import SHIPPED, card_schema, schema_text
from shotproof.comparison.sentences import axis_sentence, card_sentences
from shotproof.core.errors import InputError
from shotproof.stats.intervals import Needed
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis, with_estimates


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    card = make_card()
    card.write(tmp_path / CARD_FILE)
    assert Card.read(tmp_path / CARD_FILE) == card == Card.read(tmp_path)


def test_whole_numbers_of_other_tools_are_read_as_numbers() -> None:
    content = make_card().to_json()
    content["axes"][0]["estimates"]["accuracy"]["acc"]["mean"] = 80
    assert Card.from_json(content).axes[0].estimates["accuracy"]["acc"].mean == 80.0


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (["kind"], "results", 'expected .*card, with "kind": "card"'),
        (["format"], FORMAT + 1, f"format: expected {FORMAT}, found {FORMAT + 1}"),
        (["level"], "95%", "level: expected a number, found '95%'"),
        (["axes", 0, "shot"], 1.5, r"axes\[0\].shot: expected a whole number, found 1.5"),
        (["axes", 1, "conclusion"], "loses", r"axes\[1\].conclusion: expected \+ or 0 or -, found 'loses'"),
        (["axes", 0, "estimates", "accuracy", "acc", "low"], float("nan"), r"accuracy.acc.low: expected a number"),
        (["axes", 0, "tasks", "digest"], None, r"axes\[0\].tasks.digest: expected text, found None"),
        (["axes"], {}, "axes: expected a list"),
        (["methd"], "ncc", "methd: unknown key: did you mean 'method'"),
    ],
)
def test_what_is_no_card_is_refused_with_the_place(path: list[Any], value: Any, told: str) -> None:
    content = make_card().to_json()
    at: Any = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(InputError, match=told):
        Card.from_json(content)


def test_a_missing_number_is_refused() -> None:
    content = make_card().to_json()
    del content["axes"][0]["tasks"]["digest"]
    with pytest.raises(InputError, match=r"axes\[0\].tasks.digest: expected text, found nothing"):
        Card.from_json(content)


@pytest.mark.parametrize("text", ["", "[1, 2", "[" * 100_000, '{"kind": NaN}', "\ud800"])
def test_a_broken_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "card.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"card\.json"):
        Card.read(tmp_path / "card.json")


def test_the_shipped_schema_is_that_of_the_record_and_describes_every_key() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == schema_text(), "python -m shotproof.comparison.card_schema"
    content, schema = make_card().to_json(), card_schema()
    assert set(content) == set(schema["properties"])
    axis = schema["properties"]["axes"]["items"]
    assert set(content["axes"][0]) == set(axis["properties"])
    assert set(axis["required"]) <= set(axis["properties"])
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_sentences_claim_a_loss_only_where_it_is_conclusive() -> None:
    loses = axis_sentence(stress_axis(lost=10.0), "acc")
    assert loses.startswith("It relies on attributes. On fewstab tasks, it loses 10.0% [8.0, 12.0]")
    unclear = axis_sentence(stress_axis(lost=3.0, error=2.0), "acc", needed=Needed(300, None))
    assert unclear.startswith("The data does not show")
    corrected = axis_sentence(replace(stress_axis(lost=10.0), conclusion="0"), "acc")
    assert "correction for multiple testing" in corrected
    assert "whether it relies on attributes" in corrected
    assert "About 300 more tasks would settle it" in unclear
    assert "It relies on attributes" not in unclear


def test_that_little_is_lost_is_a_finding_and_a_gain_needs_no_more_tasks() -> None:
    little = axis_sentence(stress_axis(lost=1.0), "acc", needed=Needed(300, None))
    assert little.startswith("On fewstab tasks, it loses at most 4.0% of its accuracy above chance")
    assert "placebo" in little
    assert "more tasks" not in little
    gain = axis_sentence(stress_axis(lost=-3.0, error=4.0), "acc", needed=Needed(300, None))
    assert "more tasks" not in gain
    sentences = card_sentences(make_card(random_axis(), stress_axis(lost=1.0)))
    assert any(sentence.startswith("It loses at most 5%") for sentence in sentences)


def test_a_loss_without_shuffled_words_is_not_called_leaning() -> None:
    assert "relies" not in axis_sentence(replace(stress_axis(lost=10.0), is_shuffled=False), "acc")


def test_what_is_by_the_sampler_interval_is_about_these_items_only() -> None:
    axis = stress_axis(lost=10.0)
    lost = {"acc": replace(axis.estimates["gap"]["acc"], covers="sampler")}
    told = axis_sentence(with_estimates(axis, excess=lost), "acc", "sound")
    assert "sampler interval" in told
    assert "these recordings only" in told
    card = make_card(random_axis(), with_estimates(axis, excess=lost), stress_axis("hardest", lost=50.0))
    assert "95% sampler and images intervals, the former valid for these images only" in card_sentences(card)[2]


def test_an_axis_without_a_placebo_is_not_said_to_lean_on_anything() -> None:
    told = axis_sentence(with_estimates(stress_axis("hardest", lost=50.0), excess={}), "acc")
    assert told.startswith("On hardest tasks, it loses 50.0% [48.0, 52.0] of its accuracy above chance")
    assert "compared with random tasks" in told
    assert "relies" not in told


def test_the_verdict_names_losses_by_size_and_what_was_not_measured() -> None:
    card = make_card(
        random_axis(), stress_axis(), stress_axis("hardest", lost=50.0), stress_axis("hard-ood", lost=3.0, error=2.0)
    )
    told = card_sentences(card)
    assert "hardest (50.0% [48.0, 52.0]) and fewstab (10.0% [8.0, 12.0])" in told[2]
    assert "loses any accuracy on hard-ood" in told[3]
    assert "95% images intervals" in told[3]
    assert told[4].startswith("Not measured")
    assert "contexts" in told[4]


def test_a_number_without_an_interval_has_no_estimate() -> None:
    number = card_number(1.0, 1.0)
    assert number.estimate.interval("images").low == pytest.approx(number.low)
    assert Card.from_json(make_card().to_json()).axes[0].estimates["accuracy"]["acc"].task_variance is not None
