"""What is said of sounds follows from the accuracies on the matched sets."""

from __future__ import annotations

import numpy as np
from reproduction.kept import Table
from reproduction.sections.sounds import (
    FAILS,
    HOLDS,
    METHODS,
    OPEN,
    SETS,
    STATEMENTS,
    Cell,
    accuracy_table,
    find_cell,
    statement_table,
)

from tests.reproduction.test_kept import evaluated


def cell(method: str, shot: int, *means: float, backbone: str = "conv64f") -> Cell:
    """Two seeds and four tasks around the mean of each set."""
    spread = np.array([[-2.0, -1.0, 1.0, 2.0], [-1.0, 0.0, 2.0, 3.0]])
    by_set = {
        name: mean + np.roll(spread, place, axis=1) for place, (name, mean) in enumerate(zip(SETS, means, strict=True))
    }
    return Cell(backbone, method, shot, by_set)


def judged(statement: str, *cells: Cell) -> list[str]:
    return STATEMENTS[statement](list(cells))


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
    assert find_cell(Table(tuple(results)), "conv64f", "ProtoNet", 1) is None
    assert find_cell(Table(tuple(results[:-2])), "conv64f", "ProtoNet", 5) is None  # nothing on clean tasks


def test_a_row_has_the_deviation_over_seeds() -> None:
    rows = accuracy_table([cell("ProtoNet", 5, 70, 60, 55, 65)]).splitlines()[2:]
    assert len(rows) == 2 * 2 * len(METHODS)
    (row,) = [one for one in rows if "not run yet" not in one]
    assert row.startswith("| Conv64F | 5 | ProtoNet | 70.50 ±0.71 | 60.50 ±0.71 |")


def test_statements_about_every_method() -> None:
    right = cell("ProtoNet", 5, 70, 60, 55, 65)
    wrong = cell("DN4", 5, 70, 72, 55, 75)
    for statement in (
        "every method loses from iid to ood",
        "iid above ood above hard-ood",
        "clean between ood and iid",
    ):
        assert judged(statement) == ["not run yet", OPEN]
        assert judged(statement, right)[1] == HOLDS
        assert judged(statement, right, wrong) == ["1 of 2", FAILS]


def test_statements_about_the_order_of_gaps() -> None:
    protonet, dn4 = cell("ProtoNet", 5, 70, 60, 55, 65), cell("DN4", 5, 70, 66, 60, 68)
    assert judged("gap of DN4 below that of ProtoNet", protonet, dn4) == ["Conv64F, 5: 10.0, 4.0", HOLDS]
    assert judged("gap of DN4 below that of ProtoNet", protonet, cell("DN4", 5, 70, 50, 40, 60))[1] == FAILS
    assert judged("gap of DN4 below that of ProtoNet", protonet) == ["not run yet", OPEN]
    assert judged("the gap grows from 1 to 5 shots", protonet, cell("ProtoNet", 1, 50, 45, 44, 46))[1] == HOLDS
    assert judged("the gap grows from 1 to 5 shots", protonet, cell("ProtoNet", 1, 50, 30, 20, 46))[1] == FAILS
    assert judged("the gap of the final embedding", protonet, dn4)[0] == "Conv64F: 4.0 to 10.0"


def test_every_statement_of_the_paper_has_its_row() -> None:
    assert len(statement_table([]).splitlines()) == 2 + len(STATEMENTS)
