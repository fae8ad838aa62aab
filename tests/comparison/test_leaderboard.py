from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shotproof.comparison.card import Card, CardRemedy, CardTasks
from shotproof.comparison.leaderboard import Leaderboard, make_leaderboard
from shotproof.comparison.leaderboard_rows import Measurement, ResultsFile, measure_card, measure_results
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, Mismatch, UnknownName
from shotproof.core.records import FittedOn, Maker
from shotproof.tasks.taskset import TaskSet
from tests.drawn_cards import make_card, random_axis, stress_axis, with_estimates
from tests.drawn_results import draw_results, draw_tasks


def of_card(card: Card, file: str) -> list[Measurement]:
    return list(measure_card(card, file))


def card(method: str, accuracy: float = 80.0, lost: float = 10.0, error: float = 1.0) -> Card:
    return replace(make_card(random_axis(5, accuracy, error), stress_axis("fewstab", lost, error)), method=method)


def of_results(methods: dict[str, float], *tasks: TaskSet, encoder: str = "pixels") -> list[Measurement]:
    files = [ResultsFile(f"{task.record.sampler}.parquet", draw_results(task, methods, encoder)) for task in tasks]
    return list(measure_results(files, {}))


def ranks(board: Leaderboard, name: str, quantity: str = "accuracy", metric: str = "acc") -> list[str]:
    columns = [
        column
        for column in board.columns
        if (board.axes[column.axis].name, column.quantity, column.metric) == (name, quantity, metric)
    ]
    return [str(rank) for rank in columns[0].ranks]


def test_ranks_are_ranges_as_far_as_the_interval_tells() -> None:
    board = make_leaderboard([*of_card(card("a", 80), "a"), *of_card(card("b", 79), "b"), *of_card(card("c", 60), "c")])
    assert board.interval_name == "images"
    assert ranks(board, "random-5-shot") == ["1 to 2 of 3", "1 to 2 of 3", "3 of 3"]
    assert [axis.name for axis in board.axes] == ["random-5-shot", "fewstab"]


def test_of_skill_lost_the_least_is_best() -> None:
    board = make_leaderboard([*of_card(card("a", lost=30), "a"), *of_card(card("b", lost=5), "b")])
    assert ranks(board, "fewstab", "skill_lost") == ["2 of 2", "1 of 2"]


def test_beaten_are_those_than_whom_another_is_conclusively_better_in_both() -> None:
    given = {"good": (80, 5), "robust": (70, 4), "beaten": (69, 30), "near": (79.5, 5.5), "accurate": (90, 40)}
    board = make_leaderboard(
        [one for name, (acc, lost) in given.items() for one in of_card(card(name, acc, lost), name)]
    )
    names = [entry.classifier.method for entry in board.entries]
    places = {(column.axis, column.quantity, column.metric): place for place, column in enumerate(board.columns)}
    beaten = board.beaten[places[0, "accuracy", "acc"], places[1, "skill_lost", "acc"]]
    assert [name for name, is_beaten in zip(names, beaten, strict=True) if is_beaten] == ["beaten"]


def test_cards_of_other_tasks_are_refused_by_name_with_the_digest() -> None:
    other = stress_axis()
    other = replace(other, tasks=CardTasks("fewstab", "of my own", 600, 0))
    given = [*of_card(card("a"), "a.json"), *of_card(card("b"), "b.json")]
    with pytest.raises(
        Mismatch,
        match=r"mine\.json: mine on lite0 is on other fewstab tasks of birds, of my own; expected "
        r"digest of fewstab, as a\.json has",
    ):
        make_leaderboard([*given, *of_card(replace(make_card(random_axis(), other), method="mine"), "mine.json")])


def test_task_files_decide_whatever_most_are_on() -> None:
    given = [*of_card(card("a"), "a.json"), *of_card(card("b"), "b.json")]
    with pytest.raises(
        Mismatch, match=r"a\.json: a on lite0 is on other random-5-shot tasks of birds, digest of random 5, than"
    ):
        make_leaderboard(given, tasks=["another"])
    board = make_leaderboard(given, tasks=["digest of random 5", "digest of fewstab"])
    assert len(board.entries) == 2


def test_tasks_that_were_searched_in_other_features_are_left_out_with_a_note() -> None:
    def searched(method: str, features: str) -> list[Measurement]:
        tasks = CardTasks("hardest", f"searched in {features}", 600, 0, features)
        axis = replace(stress_axis("hardest"), tasks=tasks)
        return of_card(replace(make_card(random_axis(), axis), method=method), method)

    board = make_leaderboard([*searched("a", "x"), *searched("b", "x"), *searched("c", "y")])
    assert ranks(board, "hardest") == ["1 to 2 of 2", "1 to 2 of 2", "None"]
    (note,) = board.notes
    assert note.startswith("hardest: 1 of 3 classifiers")
    assert "searched in other features" in note


def test_skill_beyond_no_placebo_is_another_number() -> None:
    placebo = CardTasks("placebo of fewstab", "digest of the placebo", 600, 0)
    with_placebo = replace(make_card(random_axis(), replace(stress_axis(), placebo=placebo)), method="with")
    board = make_leaderboard([*of_card(with_placebo, "with"), *of_card(card("without"), "without")])
    assert ranks(board, "fewstab") == ["1 to 2 of 2", "1 to 2 of 2"]
    assert ranks(board, "fewstab", "skill_lost") == ["1 of 1", "None"]


def test_two_files_of_one_classifier_are_refused_unless_one_is_its_card() -> None:
    with pytest.raises(
        Mismatch, match=r"x\.json and y\.json are both of a on lite0 on random-5-shot \(80\.0% and 70\.0%\)"
    ):
        make_leaderboard([*of_card(card("a", 80), "x.json"), *of_card(card("a", 70), "y.json")])
    tasks = draw_tasks("random", shot=5)
    results = of_results({"a": 0.7}, tasks, encoder="lite0")
    mean = results[0].numbers["accuracy", "acc"]["sampler"].estimate.mean
    worst = results[0].numbers["accuracy", "wacc"]["sampler"].estimate.mean

    def beside(acc: float) -> list[Measurement]:
        axis = random_axis(5, acc)
        numbers = {"wacc": replace(axis.estimates["accuracy"]["wacc"], mean=worst)}
        axis = replace(with_estimates(axis, accuracy=numbers), tasks=CardTasks("random", tasks.digest, 20, 0))
        return of_card(replace(make_card(axis), method="a"), "a.json")

    board = make_leaderboard([*results, *beside(mean)])
    assert board.entries[0].files == ("a.json", "random.parquet")
    with pytest.raises(Mismatch, match=r"random\.parquet and a\.json|a\.json and random\.parquet"):
        make_leaderboard([*results, *beside(mean + 1)])


def test_results_are_ranked_by_new_tasks_alone() -> None:
    random, fewstab = draw_tasks("random", tasks=40), draw_tasks("fewstab", detector="words", tasks=40)
    given = of_results({"ncc": 0.5, "knn": 0.9}, random, fewstab)
    board = make_leaderboard(given)
    assert board.interval_name == "sampler"
    assert ranks(board, "random-1-shot") == ["1 of 2", "2 of 2"]
    assert [axis.data_set for axis in board.axes] == ["birds (test)"] * 2
    with pytest.raises(InputError, match=r"no images interval .*only sampler"):
        make_leaderboard(given, interval="images")
    with pytest.raises(UnknownName, match=r"image.*did you mean 'images'"):
        make_leaderboard(given, interval="image")


def test_an_interval_that_some_lack_ranks_the_others() -> None:
    tasks = draw_tasks("random", shot=5)
    axis = replace(random_axis(), tasks=CardTasks("random", tasks.digest, 20, 0))
    cards = [of_card(replace(make_card(axis), method=name, split="test"), name)[0] for name in ("a", "b")]
    given = [*cards, *of_results({"ncc": 0.7}, tasks)]
    assert "None" not in ranks(make_leaderboard(given), "random-5-shot")
    assert ranks(make_leaderboard(given, interval="images"), "random-5-shot")[2] == "None"


def test_a_classifier_without_all_task_sets_leaves_the_others_as_they_are() -> None:
    random, fewstab = draw_tasks("random", tasks=40), draw_tasks("fewstab", detector="words", tasks=40)
    placebo = draw_tasks("placebo", like=fewstab)
    whole = of_results({"ncc": 0.5, "knn": 0.9}, random, fewstab, placebo)
    files = [
        ResultsFile(f"{one.record.sampler}.parquet", draw_results(one, {"ncc": 0.5, "knn": 0.9}))
        for one in (random, fewstab, placebo)
    ]
    files.append(ResultsFile("ridge.parquet", draw_results(fewstab, {"ridge": 0.8})))
    board = make_leaderboard(list(measure_results(files, {})))
    assert make_leaderboard(whole).axes[1].sets == board.axes[1].sets
    assert ranks(board, "fewstab", "skill_lost")[2] == "None"
    assert ranks(board, "fewstab")[2] != "None"


def test_correlations_are_between_columns_of_one_metric() -> None:
    board = make_leaderboard([one for n in range(5) for one in of_card(card(f"m{n}", 60 + 4 * n, 30 - 3 * n), f"{n}")])
    assert {(board.columns[a].metric, board.columns[b].metric) for a, b in board.correlations} == {
        ("acc",) * 2,
        ("wacc",) * 2,
    }
    first = next(iter(board.correlations.values()))
    assert np.isclose(first, 1.0)


def test_an_axis_that_some_lack_images_on_is_by_tasks_and_the_others_stay() -> None:
    axis = stress_axis()
    on_few = {metric: replace(number, covers="sampler") for metric, number in axis.estimates["accuracy"].items()}
    lacking = replace(make_card(random_axis(), with_estimates(axis, accuracy=on_few)), method="b")
    board = make_leaderboard([*of_card(card("a"), "a"), *of_card(lacking, "b")])
    assert {(board.axes[column.axis].name, column.interval_name) for column in board.columns} == {
        ("random-5-shot", "images"),
        ("fewstab", "sampler"),
    }


def card_by_task(method: str, values: FloatArray) -> Card:
    axis = random_axis(5, float(values.mean()), 1.0)
    axis = replace(axis, by_task={"acc": tuple(values.tolist())})
    # Of the variance, all but a little is over tasks.
    number = replace(axis.estimates["accuracy"]["acc"], variance=0.2, uncertainty=0.000125, task_variance=0.19)
    return replace(make_card(with_estimates(axis, accuracy={"acc": number})), method=method)


def test_who_is_better_than_a_better_one_is_better_though_no_interval_tells_them_apart() -> None:
    random = np.random.default_rng(0)
    hard = random.normal(70, 5, 600).clip(10, 80)
    values = {"a": hard + 4, "b": hard + random.normal(0, 0.5, 600), "c": hard - 4}  # a and c: the same in every task
    measured = [one for name, of in values.items() for one in of_card(card_by_task(name, of), name)]
    assert ranks(make_leaderboard(measured, interval="sampler"), "random-5-shot") == ["1 of 3", "2 of 3", "3 of 3"]


def test_accuracies_of_cards_that_have_their_tasks_are_compared_task_by_task() -> None:
    random = np.random.default_rng(0)
    hard = random.normal(70, 10, 600).clip(0, 90)
    cards = [card_by_task(name, hard + more + random.normal(0, 0.5, 600)) for name, more in (("a", 0.0), ("b", 1.0))]
    bare = [replace(card, axes=(replace(card.axes[0], by_task={}),)) for card in cards]
    for given, expected in ((cards, ["2 of 2", "1 of 2"]), (bare, ["1 to 2 of 2"] * 2)):
        for interval in ("images", "sampler"):
            board = make_leaderboard([one for each in given for one in of_card(each, each.method)], interval=interval)
            assert ranks(board, "random-5-shot") == expected


def test_cards_with_impossible_variances_are_refused() -> None:
    axis = random_axis()
    broken = with_estimates(axis, accuracy={"acc": replace(axis.estimates["accuracy"]["acc"], variance=-1.0)})
    with pytest.raises(
        InputError,
        match=r"x\.json: random-5-shot, accuracy, acc: variance: expected a number from 1e-20 to 1e\+20, found -1",
    ):
        of_card(make_card(broken), "x.json")


def test_nothing_is_no_leaderboard() -> None:
    with pytest.raises(InputError, match="no classifier"):
        make_leaderboard([])


def test_remedies_of_a_card_and_of_results_are_those_of_the_classifier() -> None:
    features = CardRemedy("features", "wccn(ridge=10)", 8)
    supports = CardRemedy("supports", "chosen(choose='spread')", axes=("fewstab", "not on the board"))
    board = make_leaderboard(
        [*of_card(replace(card("a"), remedies=(features, supports)), "a"), *of_card(card("b"), "b")]
    )
    remedies = {entry.classifier.method: entry.remedies for entry in board.entries}
    assert remedies == {"a": (features, replace(supports, axes=("fewstab",))), "b": ()}

    random = draw_tasks("random")
    chosen = draw_tasks("chosen(choose='typical')", like=random)
    results = [draw_results(tasks, {"ncc": 0.7}, encoder) for tasks in (random, chosen) for encoder in ("a", "b")]
    made = Maker("nap", options={"by": "words", "directions": 5})
    treated = [
        replace(each, record=replace(each.record, features=replace(each.record.features, fitted=(FittedOn(made, 9),))))
        if each.record.features.classifier == "a"
        else each
        for each in results
    ]
    files = [ResultsFile(f"{number}.parquet", each) for number, each in enumerate(treated)]
    board = make_leaderboard(list(measure_results(files, {})))
    stated = {entry.classifier.encoder: [str(remedy) for remedy in entry.remedies] for entry in board.entries}
    spread = "supports by chosen(choose='typical') on chosen tasks"
    assert stated == {"a": ["nap(by='words', directions=5), fitted on 9 classes", spread], "b": [spread]}
