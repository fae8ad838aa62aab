"""SpurAudio and MetaCoCo on mixed ESC-50: trained networks on iid, ood, hard-ood and clean tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from reproduction.markdown import MINUS, NOT_RUN, estimate, number, table
from reproduction.sections.sound_cells import (
    ALL_SHOTS,
    BACKBONES,
    CONTRASTIVE,
    CURVES,
    DIALS,
    METHODS,
    SETS,
    SHOTS,
    TRAINED_ON,
    Cell,
    Curve,
    cell_of,
    find_cells,
    read_sound_results,
    stage_gaps,
)
from reproduction.sections.sound_statements import statement_table
from shotproof.stats.intervals import Estimate


def sections() -> dict[str, str]:
    """Build each derived section, by name."""
    results = read_sound_results()
    return {
        "sounds-gaps": gap_table(results.cells, METHODS),
        "sounds": accuracy_table(results.cells, METHODS),
        "sounds-statements": statement_table(results),
        "sounds-dial": curve_table(results.dials, "dial"),
        "sounds-shots": curve_table(results.shots, "shots"),
        "sounds-stages": stage_table(),
        "sounds-geometry": geometry_table(results.geometry),
        "sounds-contrastive": accuracy_table(results.contrastive, CONTRASTIVE),
        "sounds-stress": stress_table(find_cells(TRAINED_ON, shots=(5,), seeds=(0,))),
    }


def accuracy_table(cells: Sequence[Cell], methods: Iterable[str]) -> str:
    """Write one row per backbone, number of shots and method; methods that have not been run share a row."""
    header = ["backbone", "shots", "method", "trainings", *(f"Acc, {name}" for name in SETS)]
    rows = []
    for (backbone, title), shot in itertools.product(BACKBONES.items(), SHOTS):
        missing = []
        for method in methods:
            cell = cell_of(cells, backbone, method, shot)
            if cell is None:
                missing.append(method)
                continue
            accuracies = [
                f"{number(cell.mean(name))}{cell.deviation(name)}" if name in cell.by_set else NOT_RUN for name in SETS
            ]
            gaps = [estimate(cell.gap(name)) if name in cell.by_set else NOT_RUN for name in SETS[1:]]
            rows.append([title, str(shot), method, str(cell.trainings), *accuracies, *gaps])
        rows += [[title, str(shot), ", ".join(missing), NOT_RUN, *[""] * 7]] if missing else []
    return table([*header, *(f"iid {MINUS} {name}" for name in SETS[1:])], rows)


def gap_table(cells: Sequence[Cell], methods: Iterable[str]) -> str:
    """Return the gap from iid to ood tasks, one row per method and one column per backbone and number of shots."""
    columns = list(itertools.product(BACKBONES.items(), SHOTS))
    rows = []
    for method in methods:
        row = [cell_of(cells, backbone, method, shot) for (backbone, _), shot in columns]
        rows.append([method, *(NOT_RUN if cell is None else estimate(cell.gap()) for cell in row)])
    header = [f"{title}, {shot} {'shot' if shot == 1 else 'shots'}" for (_, title), shot in columns]
    return table([f"iid {MINUS} ood", *header], rows)


def stress_table(cells: Sequence[Cell]) -> str:
    """Compare ProtoNet at 5 shots by the tasks that it was trained on: the change from iid tasks."""
    rows = []
    for backbone, title in BACKBONES.items():
        usual = cell_of(cells, backbone, "iid tasks", 5)
        for name in TRAINED_ON:
            cell = cell_of(cells, backbone, name, 5)
            if cell is None or usual is None:
                rows.append([title, name, NOT_RUN, *[""] * 7])
                continue
            row = [title, name]
            for of in ("iid", "hard-ood"):
                higher = Estimate.over_tasks(cell.by_set[of].mean(0) - usual.by_set[of].mean(0))
                row += [number(cell.mean(of)), "" if cell is usual else estimate(higher)]
            for to in ("ood", "hard-ood"):
                smaller = "" if cell is usual else estimate(Estimate.over_tasks(usual.gaps(to) - cell.gaps(to)))
                row += [estimate(cell.gap(to)), smaller]
            rows.append(row)
    sets = [text for of in ("iid", "hard-ood") for text in (f"Acc, {of}", "higher by")]
    gaps = [text for to in ("ood", "hard-ood") for text in (f"iid {MINUS} {to}", "smaller by")]
    return table(["backbone", "trained on", *sets, *gaps], rows)


def curve_table(curves: Sequence[Curve], quantity: str) -> str:
    """Write one row per network, one column per value, and the step from each value to the next."""
    values = list(DIALS) if quantity == "dial" else [float(shot) for shot in ALL_SHOTS]
    steps = list(itertools.pairwise(values))
    header = [
        f"iid {MINUS} ood by {quantity}",
        *(f"{value:g}" for value in values),
        *(f"{a:g} to {b:g}" for a, b in steps),
    ]
    rows = [
        [
            curve.name,
            *(estimate(Estimate.over_tasks(curve.gaps[value])) if value in curve.gaps else NOT_RUN for value in values),
            *(estimate(curve.step(a, b)) if a in curve.gaps and b in curve.gaps else NOT_RUN for a, b in steps),
        ]
        for curve in curves
    ]
    return table(header, rows or [[name, *[NOT_RUN] * (len(header) - 1)] for name in CURVES])


def stage_table() -> str:
    """Write Tables 9 and 10: the gap from iid to ood after each block, by class means."""
    gaps, rows = stage_gaps(), []
    for title in BACKBONES.values():
        of_backbone = [
            [title, model, *(estimate(by_shot[shot]) for shot in SHOTS)]
            for backbone, model, by_shot in gaps
            if backbone == title
        ]
        rows += of_backbone or [[title, NOT_RUN, "", ""]]
    return table(["backbone", "model and block", f"iid {MINUS} ood, 1 shot", "5 shots"], rows)


def geometry_table(geometry: dict[str, dict[str, Any]]) -> str:
    """Write Tables 7 and 8: how mixing changes the length and direction of features."""
    rows = [
        [
            model,
            number(change["length"]["clean"]["mean"]),
            _bounded(change["length"]["change"], 2),
            f"{change['length']['p_recordings']:.0e}",
            _bounded(change["ratio"], 3),
            _bounded(change["cosine"]["change"], 3),
            _bounded(change["others"]["clean"], 3),
            _bounded(change["turn"], 1),
        ]
        for model, change in geometry.items()
    ]
    length = ["length, clean", "change when mixed", "p", "mixed over clean, of the same item"]
    header = ["network", *length, "change of cosine", "to other classes", "turn in degrees"]
    return table(header, rows or [[NOT_RUN, *[""] * (len(header) - 1)]])


def _bounded(change: dict[str, float], digits: int) -> str:
    return f"{number(change['mean'], digits)} ±{(change['high'] - change['low']) / 2:.{digits}f}"
