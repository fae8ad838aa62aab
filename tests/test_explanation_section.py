"""The report's section on why tasks are hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shotproof.evaluation.evaluate import evaluate
from shotproof.explanation.hardness import Hardness, Ways
from shotproof.report.explanation import explained_groups
from shotproof.report.explanation_figures import MAX_POINTS, hardness_scatter, ways_curves
from shotproof.report.gallery import Album
from shotproof.report.page import write_report
from shotproof.stats.intervals import sampler_interval
from tests.hard_tasks import WORLD, leaning_features, pictured, random_tasks, with_other_supports


def test_the_hardest_of_matched_sets_is_held_against_the_others(tmp_path: Path) -> None:
    catalog = pictured(tmp_path)
    random = random_tasks(20)
    sets = [random, *(with_other_supports(random, name, seed) for seed, name in enumerate(("one", "two"), start=1))]
    features = leaning_features(0.5)
    results = [evaluate(given, features, ["ncc"]) for given in sets]
    accuracy = {given.meta["tasks"]["made_by"]["sampler"]: given.counts("ncc").accuracy_by_task() for given in results}
    album = Album(catalog)
    (part,) = explained_groups(sets, results, WORLD.attributes(), [features], album)
    explanation = part["explanation"]
    hardest = min(("one", "two"), key=lambda name: accuracy[name].mean())
    assert [one.name for one in explanation.sets][:2] == [hardest, "random"]
    assert len(explanation.sets) == 3
    assert len(part["scatters"]) == 1
    assert part["ways"] is None  # all tasks have five classes
    for example in part["examples"]:
        words = WORLD.attributes().to_words()
        assert all(holds == (example.attribute in (words[shown.item] or [])) for shown, holds in example.support)
        shares = [np.mean([holds for _, holds in side]) for side in (example.support, example.query)]
        assert abs(shares[0] - shares[1]) > explanation.attributes[0].sets[0].mismatch.mean
    write_report(
        tmp_path / "r.html", results, tasks=sets, catalog=catalog, features=[features], attributes=WORLD.attributes()
    )
    page = (tmp_path / "r.html").read_text()
    assert page.count('class="holds"') == sum(
        holds for example in part["examples"] for _, holds in example.support + example.query
    )


def test_random_tasks_alone_and_no_attributes_give_no_part() -> None:
    random = random_tasks(5)
    results = [evaluate(random, leaning_features(0.5), ["ncc"])]
    assert explained_groups([random], results, WORLD.attributes(), [], None) == []
    assert explained_groups([random], results, None, [], None) == []


def test_a_large_set_is_thinned_out_and_a_loss_of_zero_has_a_place() -> None:
    loss = np.linspace(0, 3, 1000)
    figure = hardness_scatter([Hardness("e", "m", 1 - loss / 4, loss)], "described")
    assert figure.count('class="mark') == MAX_POINTS
    assert "inf" not in figure
    assert "nan" not in figure


def test_ways_are_drawn_as_shares_of_tasks() -> None:
    few, many = (Ways(tasks, sampler_interval([1, 2])) for tasks in ({5: 1, 7: 3}, {40: 2}))
    figure = ways_curves([few, many], "described")
    assert figure.count('class="curve') == 2
    assert "7 classes: 75.0% of the tasks" in figure
    assert "40 classes: 100.0% of the tasks" in figure
