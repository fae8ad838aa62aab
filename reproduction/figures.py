"""The papers' figures as small SVG files, drawn from the kept results like the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from reproduction.geometry import read_plane
from reproduction.kept import read_kept
from reproduction.sections import fewstab, oops, sound_cells
from shotproof.report.figures.charts import Bar, Point, gap_bars, gap_domain, scatter, task_scatter_panels
from shotproof.report.figures.loss_curves import lines_figure
from shotproof.report.figures.projection_figure import SIDE, projection_part
from shotproof.report.figures.svg import element, picture, text, write_svg
from shotproof.stats.intervals import Estimate

FOLDER = Path(__file__).parents[1] / "docs" / "figures" / "reproduction"
MARKS = ("circles", "squares", "triangles", "diamonds")


def write_figures(folder: Path = FOLDER) -> list[Path]:
    """Write every figure that has results; the same results give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (title, figure) in all_figures().items():
        write_svg(folder / f"{name}.svg", figure, title)
        written.append(folder / f"{name}.svg")
    return written


def all_figures() -> dict[str, tuple[str, Markup]]:
    """Draw each figure, and return it with its title, by name."""
    figures = {
        "fewstab-gaps": fewstab_gaps(),
        "fewstab-scatter": fewstab_scatter(),
        "oops-tasks": oops_tasks(),
        "sounds-dial": curves(sound_cells.dial_curves(), "share of the background, a"),
        "sounds-shots": curves(sound_cells.shot_curves(), "shots per class"),
        "sounds-plane": sounds_plane(),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def fewstab_gaps() -> tuple[str, Markup] | None:
    """Draw Figure 4 of FewSTAB: the wAcc that each method loses, at 1 and 5 shots."""
    table = read_kept("fewstab-cub")
    groups: dict[str, list[Bar]] = {}
    for series, shot in enumerate(fewstab.SHOTS):
        for name, (random, biased) in fewstab.both_sides(table, shot).items():
            gap = random.wacc.minus(biased.wacc).interval()
            groups.setdefault(name, []).append(Bar(series, f"{shot} {'shot' if shot == 1 else 'shots'}", gap))
    if not groups:
        return None
    domain = gap_domain([bar.gap for bars in groups.values() for bar in bars])
    title = "What is lost from random to FewSTAB tasks, CUB: 1 shot above 5 shots"
    return title, gap_bars(list(groups.items()), domain, "wAcc-R − wAcc-A (points)", title)


def fewstab_scatter() -> tuple[str, Markup] | None:
    """Draw Figure 5 of FewSTAB: Acc against wAcc-A at 5 shots."""
    results = fewstab.both_sides(read_kept("fewstab-cub"), 5)
    points = [
        Point(name, name, 0, random.acc.interval(), biased.wacc.interval())
        for name, (random, biased) in results.items()
    ]
    title = "Acc and wAcc-A, CUB, 5 shots"
    return (title, scatter(points, "Acc (%)", "wAcc-A (%)", title)) if points else None


def oops_tasks() -> tuple[str, Markup] | None:
    """Draw Figure 1 of Oops: accuracies of the two best classifiers on the same tasks of birds, at 5 shots."""
    for design in oops.designs():
        if (design.data, design.shot) == ("oops-birds", 5):
            title, figure = task_scatter_panels(design.comparison)[0]
            return f"Birds, 5 shots, 600 tasks: {title.rpartition(': ')[2]}", figure
    return None


def curves(gap_curves: Sequence[sound_cells.Curve], x_label: str) -> tuple[str, Markup] | None:
    """Draw Figures 2 and 15 of SpurAudio: the gap against the dial or the shots."""
    if not gap_curves:
        return None
    intervals = {
        curve_.name: {x: Estimate.over_tasks(gaps).interval() for x, gaps in curve_.gaps.items()}
        for curve_ in gap_curves
    }
    points = [point for curve in intervals.values() for point in curve.items()]
    key = "; ".join(f"{mark}: {curve_.name}" for mark, curve_ in zip(MARKS, gap_curves, strict=False))
    title = "The gap from iid to ood tasks"
    return title, lines_figure(intervals, points, x_label, f"{title}. {key}.", "iid − ood (points)")


def sounds_plane() -> tuple[str, Markup] | None:
    """Draw Figures 4 to 6 of SpurAudio: one task on a plane, iid beside ood."""
    projection = read_plane(f"sounds-{sound_cells.SECOND}-s0")
    if projection is None:
        return None
    parts: list[Markup] = []
    for column, (name, panel) in enumerate(projection_part(projection)["panels"]):
        content = Markup(panel[panel.index(">") + 1 :].removesuffix("</svg>"))
        shift = f"translate({column * (SIDE + 10):g} 14)"
        parts.append(element("g", text(6, 0, name, class_="axis-label"), content, transform=shift))
    title = f"t-SNE of one task, {projection.encoder}; large marks are supports, one color and shape per class"
    return title, picture(2 * SIDE + 10, SIDE + 14, title, parts)
