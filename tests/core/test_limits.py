"""Whole numbers that are too large are rejected at once, in files and in Python. Flags: tests/cli."""

from __future__ import annotations

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.core.limits import SEED, TASKS
from shotproof.core.options import Component, Option
from shotproof.pipeline.components import all_registries
from shotproof.planning.task_plan import ScoreMoments, plan
from shotproof.training.settings import TrainingSettings
from tests.experiment_files import assert_refused, write_experiment

HUGE = 10**23
EXPERIMENT = """
[catalog]
root = "images"
[features]
encoders = ["pixels"]
[tasks]
way = 2
shots = [1]
query = 2
tasks = 3
seeds = [0]
samplers = ["random"]
[evaluate]
methods = ["ncc"]
seed = 0
[runtime]
workers = 1
[output]
folder = "out"
"""


@pytest.mark.parametrize("value", [0, -1, TASKS.most + 1, 2**63 - 1, HUGE, True, 1.0, "5", None])
def test_what_lies_outside_is_refused_with_both_bounds(value: Any) -> None:
    with pytest.raises(InputError, match=r"^tasks: expected a whole number from 1 to 10,000,000, found "):
        TASKS.check("tasks", value)


def test_both_bounds_are_allowed() -> None:
    assert [SEED.check("seed", value) for value in (0, 2**63 - 1)] == [0, 2**63 - 1]


def whole_number_options() -> list[tuple[type[Component], Option]]:
    """Yield every option of every component that may be a whole number."""
    components = [registry.get(name) for registry in all_registries().values() for name in registry]
    return [
        (component, option)
        for component in components
        for option in component.options()
        if not option.choices and int in (option.kind, *typing.get_args(option.kind))
    ]


def test_no_option_takes_a_whole_number_beyond_64_bits() -> None:
    options = whole_number_options()
    assert len(options) > 100
    for component, each in options:
        assert each.most is not None
        assert each.most < 2**63, f"{component.__name__}, {each.name}"
        with pytest.raises(InputError, match=f"^{each.name}: expected "):
            each.check(HUGE)


def test_a_whole_number_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match="lr: expected a number above 0, found"):
        TrainingSettings(lr=10**400)


MOMENTS = ScoreMoments(m1=0.85, m2=0.74, m3=0.578)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda catalog: sp.sample(catalog, "random", tasks=HUGE),
            "tasks: expected a whole number from 1 to 10,000,000",
        ),
        (lambda catalog: sp.sample(catalog, "random", seed=HUGE), "seed: expected a whole number from 0 to 9,223,372"),
        (lambda catalog: sp.sample(catalog, "random", way=HUGE), "way: expected a whole number from 2 to 10,000, "),
        (lambda catalog: sp.sample(catalog, "random", shot=HUGE), "shot: expected a whole number from 1 to 1,000,000"),
        (lambda catalog: sp.train(catalog, "protonet", epochs=HUGE), "epochs: expected a whole number from 1 to 1,000"),
        (lambda catalog: sp.train(catalog, "protonet", seed=HUGE), "seed: expected a whole number from 0 to 9,223"),
        (lambda _: sp.Runtime(workers=HUGE), "workers: expected a whole number from 1 to 10,000 or None"),
        (lambda _: sp.Study.of([], halvings=HUGE), "halvings: expected a whole number from 2 to 100,000"),
        (lambda _: plan(MOMENTS, shot=1, way=5, classes=HUGE, items=9), "classes: expected a whole number from 1 to"),
        (lambda _: plan(MOMENTS, shot=1, way=5, classes=9, items=HUGE), "items: expected at most 10,000,000"),
    ],
)
def test_in_python(call: Callable[[sp.Catalog], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(sp.worlds.ShapesWorld(classes=6, items=30).catalog())


@pytest.mark.parametrize(
    ("line", "value", "place"),
    [
        ("tasks = 3", f"tasks = {2**63 - 1}", "[tasks], tasks: expected a whole number from 1 to 10,000,000, found 9"),
        ("way = 2", f"way = {HUGE}", "[tasks], way: expected a whole number from 2 to 10,000, found 1"),
        (
            "shots = [1]",
            f"shots = [{HUGE}]",
            "[tasks], shots: expected a list of whole numbers from 1 to 1,000,000, at least one, found",
        ),
        (
            "seeds = [0]",
            f"seeds = [{HUGE}]",
            "[tasks], seeds: expected a list of whole numbers from 0 to 9,223,372,036,854",
        ),
        ("seed = 0", f"seed = {HUGE}", "[evaluate], seed: expected a whole number from 0 to 9,223,372,036,854"),
        ("workers = 1", f"workers = {HUGE}", "[runtime], workers: expected a whole number from 1 to 10,000, found"),
    ],
)
def test_in_an_experiment_file(tmp_path: Path, line: str, value: str, place: str) -> None:
    assert_refused(write_experiment(tmp_path, EXPERIMENT, (line, value)), place)
