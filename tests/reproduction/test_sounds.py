"""What is said of sounds follows from the accuracies on the matched sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from reproduction.kept import Table
from reproduction.sections.sound_cells import BACKBONES, METHODS, SETS, Cell, Curve, SoundResults, find_cell
from reproduction.sections.sound_statements import FAILS, HOLDS, OPEN, STATEMENTS, statement_table
from reproduction.sections.sounds import accuracy_table, curve_table, stress_table

from shotproof.core.arrays import FloatArray
from tests.reproduction.test_kept import evaluated


def cell(method: str, shot: int, *means: float, backbone: str = "conv64f") -> Cell:
    """Two seeds, one point apart, and eight tasks around the mean of each set."""
    by_set = {}
    for place, (name, mean) in enumerate(zip(SETS, means, strict=True)):
        noise = np.random.default_rng([len(method), shot, place]).normal(size=(2, 8))
        by_set[name] = mean + noise - noise.mean(1, keepdims=True) + np.array([[0.0], [1.0]])
    return Cell(backbone, method, shot, by_set)


def judged(statement: str, *cells: Cell) -> list[str]:
    return STATEMENTS[statement](SoundResults(cells=cells))


def test_seeds_are_the_rows_of_a_cell() -> None:
    results = [
        evaluated(f"{name}-5way-5shot", f"conv64f-protonet-5-s{seed}", "model", [[8 - place, 9], [7, 9 - seed]])
        for place, name in enumerate(SETS)
        for seed in (0, 2)
    ]
    found = find_cell(Table(tuple(results)), "conv64f", "ProtoNet", 5)
    assert found is not None
    assert found.by_set["ood"].tolist() == [[80.0, 80.0], [80.0, 70.0]]
    assert found.gap("ood").mean == 2.5
    first = find_cell(Table(tuple(results)), "conv64f", "ProtoNet", 5, seeds=(0,))
    assert first is not None
    assert first.by_set["ood"].tolist() == [[80.0, 80.0]]
    assert find_cell(Table(tuple(results)), "conv64f", "ProtoNet", 1) is None
    assert find_cell(Table(tuple(results[4:])), "conv64f", "ProtoNet", 5) is None  # neither iid nor ood
    for missing, expected in ((3, (1, [*SETS])), (-1, (2, [*SETS[:3]]))):  # ood, and clean, of the second seed
        less = find_cell(
            Table(tuple(result for result in results if result is not results[missing])), "conv64f", "ProtoNet", 5
        )
        assert less is not None
        assert (less.trainings, [*less.by_set]) == expected


def test_a_row_says_which_sets_were_not_run() -> None:
    whole = cell("MAML", 5, 70, 60, 50, 65)
    found = Cell("conv64f", "MAML", 5, {name: whole.by_set[name] for name in ("iid", "ood")})
    (row,) = [line for line in accuracy_table([found], METHODS).splitlines()[2:] if "70.50" in line]
    assert row.split(" | ")[5:8] == ["60.50 ±0.71", "not run yet", "not run yet"]
    assert judged("every method loses from iid to ood", found)[1] == "holds"
    for statement in ("iid above ood above hard-ood", "clean between ood and iid"):
        assert judged(statement, found) == ["not run yet", "cannot be judged"]
        assert judged(statement, found, cell("DN4", 5, 70, 60, 50, 65)) == ["1 of 1", "holds"]


def test_a_row_has_the_deviation_over_seeds() -> None:
    rows = accuracy_table([cell("ProtoNet", 5, 70, 60, 55, 65)], METHODS).splitlines()[2:]
    (row,) = [row for row in rows if "not run yet" not in row]
    assert row.startswith("| Conv64F | 5 | ProtoNet | 2 | 70.50 ±0.71 | 60.50 ±0.71 |")
    told = [one.split(" | ") for one in rows if one != row]
    assert [len(one[2].split(", ")) for one in told] == [len(METHODS) - (one[:2] == ["| Conv64F", "5"]) for one in told]
    assert len(told) == len(BACKBONES) * 2


def test_statements_about_every_method() -> None:
    right = cell("ProtoNet", 5, 70, 60, 50, 65)
    wrong = cell("DN4", 5, 70, 90, 55, 95)
    level = cell("R2D2", 5, 70, 69.9, 55, 69.9)
    for statement in (
        "every method loses from iid to ood",
        "iid above ood above hard-ood",
        "clean between ood and iid",
    ):
        assert judged(statement) == ["not run yet", OPEN]
        assert judged(statement, right) == ["1 of 1", HOLDS]
        assert judged(statement, right, wrong) == ["1 of 2; 1 to the contrary", FAILS]
        assert judged(statement, right, level) == ["1 of 2", OPEN]  # neither can be told


def test_statements_about_the_order_of_gaps() -> None:
    protonet, dn4 = cell("ProtoNet", 5, 70, 50, 55, 65), cell("DN4", 5, 70, 66, 60, 68)
    below, grows = "gap of DN4 below that of ProtoNet", "the gap grows from 1 to 5 shots"
    assert judged(below, protonet, dn4) == ["Conv64F, 5: 20.0, 4.0", HOLDS]
    assert judged(below, protonet, cell("DN4", 5, 70, 30, 40, 60))[1] == FAILS
    assert judged(below, protonet) == ["not run yet", OPEN]
    assert judged(grows, protonet, cell("ProtoNet", 1, 50, 45, 44, 46))[1] == HOLDS
    assert judged(grows, protonet, cell("ProtoNet", 1, 50, 5, 4, 46))[1] == FAILS
    assert judged(grows, protonet, cell("ProtoNet", 1, 50, 30.5, 4, 46))[1] == OPEN
    assert judged("the gap of the final embedding", protonet, dn4)[0] == "Conv64F: 4.0 to 20.0"


def test_a_method_that_was_tested_on_fewer_tasks_is_compared_without_pairing() -> None:
    anil, maml = cell("ANIL", 5, 70, 60, 55, 65), cell("MAML", 5, 70, 66, 60, 65)
    fewer = Cell("conv64f", "MAML", 5, {name: values[:, :6] for name, values in maml.by_set.items()})
    assert judged("gap of MAML below that of ANIL", anil, fewer)[1] == "holds"


def rising(*means: float) -> dict[float, FloatArray]:
    """Gaps on five tasks around these means, at 1, 5 and 10."""
    spread = np.array([-1.0, 0.5, 0.0, -0.5, 1.0])
    return {
        x: mean + np.roll(spread, place) for place, (x, mean) in enumerate(zip((1.0, 5.0, 10.0), means, strict=True))
    }


def test_statements_about_curves() -> None:
    dial, level = STATEMENTS["the gap grows with the dial"], STATEMENTS["the gap levels off after 5 shots"]
    assert dial(SoundResults(dials=[Curve("a", rising(2, 9, 20), paired=True)])) == ["1 of 1", HOLDS]
    assert dial(SoundResults(dials=[Curve("a", rising(2, 20, 9), paired=True)]))[1] == FAILS
    assert level(SoundResults(shots=[Curve("a", rising(2, 14, 17), paired=False)]))[1] == HOLDS
    assert level(SoundResults(shots=[Curve("a", rising(2, 5, 17), paired=False)]))[1] == FAILS
    steps = curve_table([Curve("a", rising(2, 14, 17), paired=True)], "shots").splitlines()[2].split(" | ")
    assert steps[1].startswith("2.00 ±")
    assert steps[2] == "not run yet"  # at 3 shots


def test_statements_about_features() -> None:
    def told(longer: float, fall: float) -> dict[str, Any]:
        return {
            "length": {"change": {"low": longer - 0.1, "high": longer + 0.1}},
            "cosine": {"change": {"low": -fall - 0.001, "high": -fall + 0.001}},
        }

    shorter = STATEMENTS["mixing shortens features"]
    turned = STATEMENTS["the cosine to the clean mean falls by less than 0.025"]
    assert shorter(SoundResults()) == ["not run yet", OPEN]
    assert shorter(SoundResults(geometry={"a": told(-0.8, 0.02)})) == ["1 of 1", HOLDS]
    assert shorter(SoundResults(geometry={"a": told(-0.8, 0.02), "b": told(0.2, 0.02)})) == [
        "1 of 2; 1 to the contrary",
        FAILS,
    ]
    assert shorter(SoundResults(geometry={"a": told(-0.05, 0.02)})) == ["0 of 1", OPEN]
    assert turned(SoundResults(geometry={"a": told(-0.8, 0.02)}))[1] == HOLDS
    assert turned(SoundResults(geometry={"a": told(-0.8, 0.03)}))[1] == FAILS


def test_stress_training_is_held_against_iid_training() -> None:
    cells = [cell("iid tasks", 5, 70, 50, 40, 65), cell("ood tasks", 5, 68, 60, 55, 65)]
    usual, missing, ood = stress_table(cells).splitlines()[2:5]
    assert usual.split(" | ")[7] == ""
    assert "not run yet" in missing
    changes = [cell.split(" ")[0] for cell in ood.split(" | ")[3:8:2]]
    assert changes == ["−2.00", "15.00", "12.00"]


def test_every_statement_of_the_paper_has_its_row() -> None:
    assert len(statement_table(SoundResults()).splitlines()) == 2 + len(STATEMENTS)


def test_what_trainings_of_unequal_length_say_of_capacity_is_not_judged() -> None:
    ood = {"conv64f": 60, "resnet12": 50}
    cells = [cell("SimCLR", 5, 70, mean, 50, 65, backbone=backbone) for backbone, mean in ood.items()]
    told, verdict = STATEMENTS["SimCLR gets worse with capacity"](SoundResults(contrastive=cells))
    assert ", ResNet-12 after " in told
    assert verdict == "cannot be judged"
    assert STATEMENTS["SimCLR gets worse with capacity"](SoundResults()) == ["not run yet", "cannot be judged"]
