"""The report's section on why tasks are hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shotproof.analysis.explanation.explain import explain, mismatch_examples
from shotproof.analysis.explanation.hardness import Hardness, Ways
from shotproof.report.figures.hardness_figures import MAX_POINTS, hardness_scatter, ways_curves
from shotproof.report.pages.album import Album
from shotproof.report.pages.content import ExplainedTasks
from shotproof.report.pages.mismatch_examples import explanation_part
from shotproof.stats.intervals import sampler_interval
from tests.hard_tasks import WORLD, leaning_features, pictured, random_tasks, with_other_supports


def test_a_part_shows_what_the_explanation_has(tmp_path: Path) -> None:
    catalog, random = pictured(tmp_path), random_tasks(20)
    explanation = explain(
        with_other_supports(random, "one"), WORLD.attributes(), against=[random], features=leaning_features(0.5)
    )
    examples = mismatch_examples(explanation, WORLD.attributes())
    part = explanation_part(ExplainedTasks("a name", explanation, examples, catalog), Album())
    assert part["name"] == "a name"
    assert [name for _, name in part["keys"]] == ["one", "random"]
    assert [one["classifier"].split(" on ")[0] for one in part["scatters"]] == ["ncc"]
    assert part["ways"] is None  # all tasks have five classes
    assert part["rows"] == explanation.attributes[: len(part["rows"])]
    for shown, example in zip(part["examples"], examples, strict=True):
        assert [(one.item, holds) for one, holds in shown.support] == example.support
        assert [(one.item, holds) for one, holds in shown.query] == example.query


def test_without_a_catalog_there_are_no_examples() -> None:
    explanation = explain(random_tasks(5), WORLD.attributes())
    examples = mismatch_examples(explanation, WORLD.attributes())
    album = Album()
    assert explanation_part(ExplainedTasks("random", explanation, examples), album)["examples"] == []
    assert album.images == []


def test_a_large_set_is_thinned_out_and_a_loss_of_zero_has_a_place() -> None:
    loss = np.linspace(0, 3, 1000)
    figure = hardness_scatter([Hardness("e", "m", 100 - 25 * loss, loss)], "described")
    assert figure.count('class="mark') == MAX_POINTS
    assert "inf" not in figure
    assert "nan" not in figure


def test_ways_are_drawn_as_percentages_of_tasks() -> None:
    few, many = (Ways(tasks, sampler_interval([1, 2])) for tasks in ({5: 1, 7: 3}, {40: 2}))
    figure = ways_curves([few, many], "described")
    assert figure.count('class="curve') == 2
    assert "7 classes: 75.0% of the tasks" in figure
    assert "40 classes: 100.0% of the tasks" in figure
