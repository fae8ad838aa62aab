from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shotproof.evaluation.sources import Design
from shotproof.report.comparison import Comparison, Measurement, Row
from shotproof.report.context_figures import context_panels
from shotproof.stats.intervals import Interval

DESIGN = Design("catalog-1", "test", 5, 5, 10, 1.0)


def around(mean: float) -> Interval:
    return Interval(mean, mean - 0.01, mean + 0.01, "sampler", 0.95)


def rows(design: Design, losses: dict[str, float], reference: str = "iid") -> list[Row]:
    """A method at 80% on the reference and lower by its losses elsewhere."""

    def measured(sampler: str, loss: float) -> Measurement:
        return Measurement(sampler, "digest", 600, around(0.8 - loss), around(0.4 - loss))

    return [
        Row("logmel", "ncc", design, measured(reference, 0), measured(sampler, loss), around(loss), around(loss))
        for sampler, loss in losses.items()
    ]


def test_each_set_is_marked_and_named() -> None:
    (panel,) = context_panels(Comparison(rows(DESIGN, {"hard_ood": 0.3, "ood": 0.2, "clean": 0.1}), []))
    assert [name for _, name in panel.keys] == ["iid", "clean", "ood", "hard_ood"]
    told = re.findall(r"<title>ncc, (\w+): ([\d.]+)", panel.figure)
    assert dict(told) == {"iid": "80.0", "clean": "70.0", "ood": "60.0", "hard_ood": "50.0"}


@pytest.mark.parametrize(
    ("designs", "name"),
    [
        ([replace(DESIGN, catalog=f"catalog-{a}", dial=a) for a in (0.0, 1.0, 2.0)], "5-way 5-shot"),
        ([replace(DESIGN, shot=shot) for shot in (1, 5, 10)], "5-way, a = 1"),
    ],
)
def test_the_loss_is_drawn_against_the_dial_and_the_shots(designs: list[Design], name: str) -> None:
    given = [row for n, design in enumerate(designs) for row in rows(design, {"ood": 0.1 * n})]
    *accuracies, curve = context_panels(Comparison(given, []))
    assert len(accuracies) == 3
    assert curve.name == f"Loss of Acc, iid - ood, {name}"
    assert re.findall(r"ncc at [\d.]+: ([\d.]+)", curve.figure) == ["0.0", "10.0", "20.0"]


def test_many_curves_are_drawn_in_parts_on_the_same_axes() -> None:
    given = [
        replace(row, method=f"method{m:02d}")
        for m in range(18)
        for shot in (1, 5)
        for row in rows(replace(DESIGN, shot=shot), {"ood": 0.01 * m})
    ]
    curves = [panel for panel in context_panels(Comparison(given, [])) if panel.name.startswith("Loss")]
    assert [panel.name[-8:] for panel in curves] == [f"({n} of 3)" for n in (1, 2, 3)]
    named = [[name for _, name in panel.keys] for panel in curves]
    assert [name for names in named for name in names] == [f"method{m:02d}" for m in reversed(range(18))]
    assert [len(names) for names in named] == [6, 6, 6]
    ticks = [re.findall(r'class="tick">([^<]*)<', panel.figure) for panel in curves]
    assert ticks[0] == ticks[1] == ticks[2]


def test_there_is_nothing_to_show_of_random_tasks() -> None:
    assert context_panels(Comparison(rows(DESIGN, {"fewstab": 0.2}, "random"), [])) == []
