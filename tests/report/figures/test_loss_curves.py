from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from shotproof.comparison.comparison import Comparison
from shotproof.report.figures.loss_curves import context_panels
from shotproof.results.evaluated import METRICS, Classifier
from shotproof.results.origin import Design
from shotproof.stats.block import Block, ClassifierRow, Group, Loss, Quantity
from shotproof.stats.intervals import Interval

DESIGN = Design("sounds", "catalog-1", "test", 5, 5, 10, 1.0)


def group(label: str, means: Mapping[str, float], against: str | None = None, quantity: Quantity = "accuracy") -> Group:
    """Methods with these means of both metrics, on one task set or lost between two."""
    rows = [
        ClassifierRow(
            Classifier("logmel", method),
            dict.fromkeys(METRICS, mean),
            {metric: {"sampler": Interval(mean, mean - 1, mean + 1)} for metric in METRICS},
            {metric: {"sampler": None} for metric in METRICS},
            {metric: {0: mean} for metric in METRICS},
        )
        for method, mean in means.items()
    ]
    return Group(label, against or label, None, 600, ["digest"], [0], against, True, rows, {}, quantity)


def block(design: Design, losses: Mapping[str, Mapping[str, float]], reference: str = "iid") -> Block:
    """Methods at 80% on the reference and lower by their losses elsewhere."""
    methods = next(iter(losses.values()))
    first = group(reference, dict.fromkeys(methods, 80.0))
    others = [group(label, {name: 80 - loss for name, loss in lost.items()}) for label, lost in losses.items()]
    lost = [
        Loss(
            "contexts" if reference == "iid" else "attributes",
            group(reference, of, label, "gap"),
            None,
            None,
            group(reference, of, label, "skill_lost"),
            {},
            {},
        )
        for label, of in losses.items()
    ]
    return Block(design, [first, *others], lost)


def comparison(*blocks: Block) -> Comparison:
    return Comparison(0.95, "acc", True, ("sampler",), list(blocks))


def test_each_set_is_marked_and_named() -> None:
    losses = {"hard-ood": {"ncc": 30.0}, "ood": {"ncc": 20.0}, "clean": {"ncc": 10.0}}
    (panel,) = context_panels(comparison(block(DESIGN, losses)))
    assert [name for _, name in panel.keys] == ["iid", "clean", "ood", "hard-ood"]
    told = re.findall(r"<title>ncc, ([\w-]+): ([\d.]+)", panel.figure)
    assert dict(told) == {"iid": "80.0", "clean": "70.0", "ood": "60.0", "hard-ood": "50.0"}


@pytest.mark.parametrize(
    ("designs", "name"),
    [
        ([replace(DESIGN, catalog=f"catalog-{a}", dial=a) for a in (0.0, 1.0, 2.0)], "5-way 5-shot"),
        ([replace(DESIGN, shot=shot) for shot in (1, 5, 10)], "5-way, a = 1"),
    ],
)
def test_the_loss_is_drawn_against_the_dial_and_the_shots(designs: list[Design], name: str) -> None:
    given = [block(design, {"ood": {"ncc": 10.0 * n}}) for n, design in enumerate(designs)]
    *accuracies, curve = context_panels(comparison(*given))
    assert len(accuracies) == 3
    assert curve.name == f"Loss of Acc, iid - ood, {name}"
    assert re.findall(r"ncc at [\d.]+: ([\d.]+)", curve.figure) == ["0.0", "10.0", "20.0"]


def test_each_data_set_has_curves_of_its_own() -> None:
    given = [
        block(replace(DESIGN, data_set=name, catalog=f"{name} {dial}", dial=dial), {"ood": {"ncc": loss + dial}})
        for name, loss in (("birds", 5.0), ("frogs", 15.0))
        for dial in (0.0, 1.0)
    ]
    curves = [panel for panel in context_panels(comparison(*given)) if panel.name.startswith("Loss")]
    assert [panel.name for panel in curves] == [
        f"Loss of Acc, iid - ood, {name}, 5-way 5-shot" for name in ("birds", "frogs")
    ]
    told = [re.findall(r"ncc at [\d.]+: ([\d.]+)", panel.figure) for panel in curves]
    assert told == [["5.0", "6.0"], ["15.0", "16.0"]]


def test_many_curves_are_drawn_in_parts_on_the_same_axes() -> None:
    lost = {f"method{m:02d}": 1.0 * m for m in range(18)}
    given = [block(replace(DESIGN, shot=shot), {"ood": lost}) for shot in (1, 5)]
    curves = [panel for panel in context_panels(comparison(*given)) if panel.name.startswith("Loss")]
    assert [panel.name[-8:] for panel in curves] == [f"({n} of 3)" for n in (1, 2, 3)]
    named = [[name for _, name in panel.keys] for panel in curves]
    assert [name for names in named for name in names] == [f"method{m:02d}" for m in reversed(range(18))]
    assert [len(names) for names in named] == [6, 6, 6]
    ticks = [re.findall(r'class="tick">([^<]*)<', panel.figure) for panel in curves]
    assert ticks[0] == ticks[1] == ticks[2]


def test_there_is_nothing_to_show_of_random_tasks() -> None:
    assert context_panels(comparison(block(DESIGN, {"fewstab": {"ncc": 20.0}}, "random"))) == []
