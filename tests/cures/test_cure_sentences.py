"""Sentences of a cure: at most five, with the numbers that they state."""

from __future__ import annotations

from dataclasses import replace

from shotproof.cures.cure import SupportPoint, ToCollect
from shotproof.cures.cure_sentences import MOST_SENTENCES, apply_lines, condition, cure_sentences
from tests.drawn_cards import card_number
from tests.drawn_cures import chance_number, full_cure, make_cure, make_effect, make_row


def test_the_remedy_to_take_is_stated_with_what_it_changes_and_costs() -> None:
    first, second, *_ = cure_sentences(full_cure())
    for text in ("l2 > wccn", "ncc on lite0", "40.0%", "15.0%", "on fewstab tasks", "-25.0 points [-27.0, -23.0]"):
        assert text.lower() in first.replace("\N{MINUS SIGN}", "-").lower()
    assert "ood" not in first  # where it is not conclusive
    for text in ("random tasks", "80.0%", "81.0%", "+1.0 points"):
        assert text in second


def test_chosen_supports_are_compared_with_random_ones() -> None:
    row = make_row(
        "supports", make_effect(40.0, 15.0, "helps"), treatment="spread supports", baseline="random supports"
    )
    assert "compared with random supports" in cure_sentences(make_cure([row]))[0]


def test_there_are_at_most_five_and_the_last_says_what_they_are_based_on_if_there_is_room() -> None:
    cure = full_cure()
    assert len(cure_sentences(cure)) == MOST_SENTENCES == 5
    basis = cure_sentences(cure)[-1]
    for text in ("5-way 5-shot", "fitted on 6", "chosen on 7", "confirmed on 8", "95%", "3 remedies"):
        assert text in basis
    assert cure.sentences() == cure_sentences(cure)


def test_nothing_is_lost() -> None:
    cure = make_cure([make_row("wccn", make_effect(1.0, 0.5), make_effect(-1.0, 0.0, axis="mixed-rival"))])
    sentence, basis = cure_sentences(cure)
    assert "nothing to cure" in sentence
    assert "on fewstab tasks or when the background changes to that of another class" in sentence
    assert basis.startswith("Basis")


def test_a_classifier_at_chance_has_nothing_to_cure() -> None:
    effect = replace(make_effect(1.0, 0.5), before=chance_number())
    assert "nothing to cure" in cure_sentences(make_cure([make_row("wccn", effect)]))[0]


def test_nothing_conclusive_is_stated_with_the_tasks_that_would_settle_it() -> None:
    rows = [
        make_row("wccn", make_effect(40.0, 39.0, more_tasks=90)),
        make_row("nap", make_effect(40.0, 30.0, more_tasks=1234)),
        make_row("head", make_effect(40.0, 60.0, more_tasks=10)),
    ]
    sentence = cure_sentences(make_cure(rows))[0]
    assert "3 remedies" in sentence
    assert "none conclusively lowers" in sentence
    assert "About 1,200 more tasks would settle it for l2 > nap" in sentence  # which seems to help most
    settled = cure_sentences(make_cure([make_row("wccn", make_effect(40.0, 39.0))]))[0]
    assert "1 remedy" in settled
    assert "more tasks" not in settled


def test_supports_alone_do_not_tell_whether_anything_is_lost() -> None:
    row = make_row("supports", make_effect(1.0, 0.5), baseline="random supports")
    assert "none conclusively lowers" in cure_sentences(make_cure([row]))[0]


def test_supports_from_more_contexts_are_stated_if_their_intervals_are_apart() -> None:
    first, second = (SupportPoint("ood", 5, contexts, card_number(30.0, 1.0)) for contexts in (1, 3))
    apart = replace(second, lost=card_number(20.0, 1.0))
    assert any("3 contexts" in text and "20.0%" in text for text in cure_sentences(make_cure(supports=(first, apart))))
    assert not any("contexts" in text for text in cure_sentences(make_cure(supports=(first, second))))
    refused = replace(second, lost=chance_number())
    assert not any("contexts" in text for text in cure_sentences(make_cure(supports=(first, refused))))


def test_what_to_collect_is_what_would_balance_it() -> None:
    rows = tuple(ToCollect(label, "water", 30, 4, 12.5, 20) for label in ("duck", "gull", "swan"))
    (sentence,) = (text for text in cure_sentences(make_cure(collect=rows)) if "collect" in text)
    assert "26 more images of duck without 'water' (30 have it, 4 do not)" in sentence
    assert "gull" in sentence
    assert "swan" not in sentence  # the first two are enough
    sounds = cure_sentences(make_cure(collect=rows[:1], medium="sound"))
    assert any("more recordings of duck" in text or "more sounds of duck" in text for text in sounds)


def test_conditions_are_said_in_words() -> None:
    assert condition("fewstab") == "on fewstab tasks"
    assert "any item" in condition("mixed-random")


def test_lines_apply_the_remedy_on_the_command_line_in_python_and_in_a_file() -> None:
    row = make_row("wccn", make_effect(40.0, 15.0, "helps"))
    command, python, file = apply_lines(make_cure([row]), row)
    assert command.endswith('--transform "l2" --transform "fitted(file=\'cure/wccn.parquet\')"')
    assert 'sp.transform(features, ["l2", "fitted(file=\'cure/wccn.parquet\')"])' in python
    assert 'transforms = ["l2", "fitted(file=\'cure/wccn.parquet\')"]' in file
    head = replace(row, family="heads", apply=("--method cosine",))
    assert apply_lines(make_cure([head]), head) == ["--method cosine"]
