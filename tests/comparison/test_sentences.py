"""How the sentences name what was measured; what they conclude is tested with the verdicts."""

from __future__ import annotations

import re

import pytest

import shotproof as sp
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.sentences import OTHER_ENCODERS, headline, interval_sentences, next_steps
from shotproof.features.encoder import encoders
from shotproof.results.evaluated import evaluated_sets
from shotproof.results.results import Results
from tests.drawn_results import draw_results, draw_tasks


def compared(*results: Results) -> Comparison:
    return compare_sets(evaluated_sets(results), ("sampler",))


def on(sampler: str, shot: int = 1, data_set: str = "birds", encoder: str = "pixels", loss: float = 0.0) -> Results:
    tasks = draw_tasks(sampler, shot=shot, tasks=60, data_set=data_set)
    return draw_results(tasks, {"ncc": 0.9 - loss, "ridge": 0.8 - loss}, encoder, seed=shot + len(sampler))


def test_the_designs_share_their_task_sets_or_have_their_own() -> None:
    shared = compared(*(on(sampler, shot) for shot in (1, 2) for sampler in ("random", "fewstab")))
    assert headline(shared)[0] == (
        "2 classifiers (1 encoder × 2 methods) were tested on 3-way 1-shot and 3-way 2-shot tasks: "
        "60 random tasks and 60 fewstab tasks each."
    )
    apart = compared(on("random", 1), on("random", 2), on("fewstab", 2))
    assert headline(apart)[0] == (
        "2 classifiers (1 encoder × 2 methods) were tested on 3-way 1-shot tasks (60 random tasks) and 3-way 2-shot "
        "tasks (60 random tasks and 60 fewstab tasks)."
    )


def test_placebos_are_no_task_sets_of_their_own() -> None:
    stressed = draw_tasks("fewstab", tasks=60)
    sham = draw_results(draw_tasks("placebo", like=stressed), {"ncc": 0.9}, seed=5)
    given = compared(on("random"), draw_results(stressed, {"ncc": 0.5}), sham)
    assert headline(given)[0].endswith("60 random tasks and 60 fewstab tasks.")
    assert given.verdict() == headline(given)


def test_data_sets_and_encoders_are_named_where_there_are_several() -> None:
    results = [
        on(sampler, data_set=data_set, encoder=encoder, loss=loss)
        for data_set in ("birds", "pets")
        for encoder in ("pixels", "other encoder")
        for sampler, loss in (("random", 0.0), ("fewstab", 0.3))
    ]
    measured, birds, pets = headline(compared(*results))
    assert measured.startswith(
        "4 classifiers (2 encoders × 2 methods) were tested on birds, 3-way 1-shot and pets, 3-way 1-shot tasks"
    )
    assert birds.startswith("On fewstab tasks (birds, 3-way 1-shot), all 4 classifiers lose ")
    assert pets.startswith("On fewstab tasks (pets, 3-way 1-shot), all 4 classifiers lose ")


def test_all_methods_of_an_encoder_are_named_by_it() -> None:
    given = compared(
        *(on("random", encoder=encoder) for encoder in ("pixels", "other encoder")),
        on("fewstab", encoder="pixels", loss=0.4),
        on("fewstab", encoder="other encoder", loss=0.0),
    )
    told = headline(given)[1]
    assert told.startswith("On fewstab tasks")
    assert "2 of 4 classifiers (all methods on pixels) lose " in told


def losing(**losses: tuple[float, float]) -> list[str]:
    """The headline of ncc on two encoders, each of which loses so much on the tasks of these samplers."""
    encoders = ("model:nets/first.model", "model:nets/second.model")
    sets = {"random": (0.0, 0.0), **losses}
    results = [
        draw_results(draw_tasks(sampler, tasks=200), {"ncc": 0.9 - loss}, encoder, seed=place)
        for place, (sampler, both) in enumerate(sets.items())
        for encoder, loss in zip(encoders, both, strict=True)
    ]
    return headline(compared(*results))


def test_task_sets_that_show_the_same_share_a_sentence() -> None:
    _, told = losing(fewstab=(0.5, 0.2), hardest=(0.4, 0.1))
    share = r"-?[\d.]+%"
    interval = rf"{share} \[[\d.]+, [\d.]+\]"
    assert re.fullmatch(
        rf"On 3-way 1-shot tasks, both classifiers lose .*random tasks.* accuracy above chance.* {share} to {share} on "
        rf"fewstab tasks and {share} to {share} on hardest tasks.* ncc on first loses the most "
        rf"\({interval} and {interval}\),? and ncc on second the least \({interval} and {interval}\).*"
        r"95% sampler intervals.*",
        told,
    )


def test_task_sets_that_show_something_else_have_a_sentence_each() -> None:
    _, fewstab, hardest = losing(fewstab=(0.5, 0.2), hardest=(0.1, 0.4))  # who loses most differs
    assert "ncc on first loses the most" in fewstab
    assert "ncc on second loses the most" in hardest
    _, fewstab, hardest = losing(fewstab=(0.5, 0.2), hardest=(0.4, 0.0))  # of one of them nothing is shown
    assert re.match(r"On fewstab tasks .*, both classifiers lose ", fewstab)
    assert re.match(r"On hardest tasks .*, ncc on first loses ", hardest)
    assert hardest.count("does not show") == 1


def test_a_single_classifier_that_loses_has_its_share_on_each_set() -> None:
    told = losing(fewstab=(0.5, 0.0), hardest=(0.4, 0.0))[1]
    assert re.search(r"ncc on first loses accuracy, compared with random tasks\..* accuracy above chance", told)
    assert re.search(r" [\d.]+% \[[^]]*\] on fewstab tasks and [\d.]+% \[[^]]*\] on hardest tasks", told)
    assert "For the other, " in told


def test_one_method_is_named_once_for_its_encoders() -> None:
    tasks = {sampler: draw_tasks(sampler, tasks=200) for sampler in ("random", "fewstab")}
    results = [
        draw_results(one, {"ncc": 0.9 - (0.3 if sampler == "fewstab" and encoder != "c" else 0.0)}, encoder, place)
        for place, (sampler, one) in enumerate(tasks.items())
        for encoder in "abc"
    ]
    told = headline(compared(*results))[1]
    assert re.search(r"On fewstab tasks .*2 of 3 classifiers \(ncc on (a and b|b and a)\) lose ", told)


def test_what_to_do_next_is_a_command_or_a_setting() -> None:
    given = compared(on("random"), on("fewstab", loss=0.4))
    images, placebo, encoder = next_steps(given)
    assert images.command.startswith("shotproof compare RESULTS ")
    assert "--interval images" in images.command
    assert placebo.why.startswith("Without shuffled attributes")
    assert "fewstab tasks" in placebo.why
    assert encoder.command.startswith('shotproof encode CATALOG --encoder "')
    of_a_run = next_steps(given, "birds.toml")
    assert of_a_run[0].command == "shotproof run birds.toml, with images among the intervals of [output]"
    assert of_a_run[2].command.startswith("shotproof run birds.toml, with ")


def test_commands_to_do_next_have_only_flags_that_there_are() -> None:
    from typer.main import get_command

    from shotproof.cli.app import app

    known = get_command(app).commands  # type: ignore[attr-defined]
    for step in next_steps(compared(on("random"), on("fewstab", loss=0.4))):
        _, name, *words = step.command.split()
        command = known[name].commands[words[0]] if name in ("explain", "share") else known[name]
        flags = {flag for param in command.params for flag in param.opts}
        assert {word for word in words if word.startswith("-")} <= flags


@pytest.mark.parametrize("medium", ["image", "sound"])
def test_the_encoder_that_is_advised_may_be_downloaded(medium: str) -> None:
    assert encoders.make(OTHER_ENCODERS[medium]).hub  # type: ignore[attr-defined]


def compared_worlds(items: int, query: int = 4) -> sp.Comparison:
    world = sp.worlds.ShapesWorld(classes=6, items=items)
    features = sp.encode(world.catalog(), "dial(share=0.5)")
    small, large = (sp.sample(world.catalog(), "random", tasks=10, shot=shot, query=query) for shot in (1, 6))
    results = [sp.evaluate(tasks, features, "ncc") for tasks in (small, large)]
    parts = [*results, small, large, world.catalog(), features]
    runtime = sp.runtime(workers=1, cache=None)
    return sp.compare(parts, intervals=["images", "sampler"], halvings=4, runtime=runtime)


def test_the_reason_is_told_with_the_tasks_that_it_holds_for() -> None:
    (sentence,) = interval_sentences(compared_worlds(items=12))
    assert "no images interval for random (5-way 6-shot) tasks: halves of the images need 20 of each" in sentence
    assert "The sampler interval is used instead" in sentence
    assert "these images only" in sentence


def test_many_sets_of_tasks_without_an_interval_are_counted() -> None:
    world = sp.worlds.ShapesWorld(classes=6, items=12)
    features = sp.encode(world.catalog(), "dial(share=0.5)")
    ways = [(3, 1), *((way, 6) for way in range(2, 7))]
    sets = [sp.sample(world.catalog(), "random", tasks=10, way=way, shot=shot, query=4) for way, shot in ways]
    parts = [*(sp.evaluate(tasks, features, "ncc") for tasks in sets), *sets, world.catalog(), features]
    runtime = sp.runtime(workers=1, cache=None)
    compared = sp.compare(parts, intervals=["images", "sampler"], halvings=4, runtime=runtime)
    (sentence,) = interval_sentences(compared)
    assert (
        "for random (2-way 6-shot), random (3-way 6-shot), random (4-way 6-shot) and 2 other sets of tasks:" in sentence
    )


def test_nothing_is_told_where_the_interval_is_everywhere() -> None:
    assert interval_sentences(compared_worlds(items=20)) == []


def test_where_there_is_none_at_all_each_reason_is_told() -> None:
    told = interval_sentences(compared_worlds(items=12, query=6))
    assert ["need 14 of each" in told[0], "need 24 of each" in told[1]] == [True, True]
