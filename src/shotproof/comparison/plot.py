"""Matplotlib figures of a comparison, for papers and notebooks; pyplot neither shows nor keeps them.

The colors are Okabe and Ito's, which color-blind readers can distinguish; hatches and markers repeat what they encode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.stages import StageCurve, stage_curves
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import InputError, MissingExtra, UnknownName, WriteFailed
from shotproof.results.evaluated import METRICS, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import Block, Group
from shotproof.stats.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_MARKERS = "osD^vPX*"
_MEAN: dict[str, Any] = {"fmt": "D", "color": _COLORS[1], "markersize": 4, "capsize": 3}
_PER_ROW = 4  # panels side by side, at most
_NAMED = 12  # largest number of labeled points in a scatter; more labels would overlap
_NUMBERED = 20  # largest number of classifiers whose matrix of pairs shows numbers
# Dollar signs in names do not start formulas. Without random names, dates and versions, files are reproducible.
_SETTINGS: dict[Any, Any] = {"text.parse_math": False, "svg.hashsalt": "shotproof", "pdf.fonttype": 42}
_METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: the design and title, the function that draws it, and its size in inches."""

    design: str
    title: str
    draw: Callable[[Axes], None]
    height: float
    width: float = 4.2


@dataclass(frozen=True)
class TaskScatter:
    """Accuracies of the two best classifiers of a task set, by the comparison's metric.

    first, second: their names, the better one first
    x, y: their accuracies, in percent: [points]
    tasks: number of tasks with these two accuracies: [points]
    correlation: Pearson's correlation over tasks; NaN if one classifier has the same accuracy on all tasks
    """

    design: Design
    group: Group
    first: str
    second: str
    x: FloatArray
    y: FloatArray
    tasks: IntArray
    correlation: float

    @property
    def r(self) -> str:
        """Format the correlation."""
        return "n/a" if np.isnan(self.correlation) else f"{self.correlation:.2f}"


def task_scatters(comparison: Comparison) -> Iterator[TaskScatter]:
    """Compare the two best classifiers of every task set that has two, except placebos."""
    metric = comparison.metric
    for block in comparison.blocks:
        for group in block.measured:
            if len(group.rows) < 2:
                continue
            best = sorted(group.rows, key=lambda row: -row.means[metric])[:2]
            both = {row.classifier for row in best}
            pairs = next(pairs for (pair_metric, _), pairs in group.pairs.items() if pair_metric == metric)
            pair = next(pair for pair in pairs if {pair.a, pair.b} == both)
            values = np.stack([group.values[row.classifier][metric] for row in best])
            points, tasks = np.unique(values.round(9), axis=1, return_counts=True)
            first, second = (comparison.classifier_name(row.classifier) for row in best)
            yield TaskScatter(
                block.design, group, first, second, points[0], points[1], tasks, group.correlation(pair, metric)
            )


def plot(comparison: Comparison, figure: str | None = None) -> Figure:
    """Draw one figure, with one panel per design and task set.

    Args:
        comparison: comparison to draw
        figure: `gaps` (what classifiers lose on other tasks than the reference), `scatter` (Acc on the reference
            against wAcc on other tasks), `intervals` (accuracies under every interval), `pairs` (which differences
            are conclusive), `tasks` (the task accuracies of the two best against each other), `seeds` (the mean of each
            seed), `heat` (encoders by methods), `stages` (the gap over the stages of networks); by default `gaps`, or
            `intervals` if there are no gaps

    Returns:
        A matplotlib figure, which a notebook displays.

    Raises:
        UnknownName: if there is no such figure.
        InputError: if the comparison has nothing to show in the figure.
        MissingExtra: if matplotlib is not installed.
    """
    name = figure or ("gaps" if comparison.gaps else "intervals")
    if name not in _FIGURES:
        raise UnknownName("figure", name, _FIGURES)
    panels, needs = list(_FIGURES[name][0](comparison)), _FIGURES[name][1]
    if not panels:
        raise InputError(f"figure '{name}' has nothing to show: it needs {needs}")
    return _draw(panels)


def save_figures(comparison: Comparison, folder: str | Path) -> list[Path]:
    """Write every figure that has something to show as SVG, PDF and PNG.

    Args:
        comparison: comparison to draw
        folder: folder to write to; created if it does not exist

    Returns:
        The paths of the files.

    Raises:
        MissingExtra: if matplotlib is not installed.
        WriteFailed: if a file cannot be written.
    """
    written = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, (make_panels, _) in _FIGURES.items():
            panels = list(make_panels(comparison))
            if not panels:
                continue
            figure = _draw(panels)
            for suffix in FORMATS:
                path = Path(folder) / f"{name}.{suffix}"
                path.write_bytes(_render(figure, suffix))
                written.append(path)
    except OSError as error:
        raise WriteFailed(f"cannot write figures into {folder}: {error.strerror or error}") from error
    return written


def _draw(panels: list[Panel]) -> Figure:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("a figure", "plot") from error

    class NotebookFigure(Figure):
        """Figure that a notebook displays without pyplot."""

        def _repr_png_(self) -> bytes:
            return _render(self, "png")

    with rc_context(_SETTINGS):
        figure = NotebookFigure(layout="constrained")
        _fill(figure, panels)
    return figure


def _fill(figure: Figure, panels: list[Panel]) -> None:
    columns, rows = _grid(panels)
    heights = [max(panel.height for panel in row) for row in rows]
    figure.set_size_inches(columns * max(panel.width for panel in panels), sum(heights))
    grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    legend: dict[str, Any] = {}
    for axes_row, row in zip(grid, rows, strict=True):
        for axes in axes_row[len(row) :]:
            axes.set_axis_off()
        for axes, panel in zip(axes_row, row, strict=False):
            axes.set_title("\n".join(filter(None, (panel.design, panel.title))), fontsize=9)
            axes.tick_params(labelsize=8)
            panel.draw(axes)
            legend |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if legend:
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=min(4, len(legend)), fontsize=8)


def _grid(panels: list[Panel]) -> tuple[int, list[list[Panel]]]:
    """Return the number of columns and the panels of each row; every design starts a new row."""
    designs = [list(group) for _, group in groupby(panels, key=lambda panel: panel.design)]
    most = max(map(len, designs))
    columns = most if most <= _PER_ROW else math.ceil(most / math.ceil(most / _PER_ROW))
    return columns, [row[start : start + columns] for row in designs for start in range(0, len(row), columns)]


def _render(figure: Figure, suffix: str) -> bytes:
    from matplotlib import rc_context

    content = BytesIO()
    with rc_context(_SETTINGS):
        figure.savefig(content, format=suffix, dpi=200, metadata=_METADATA[suffix])
    return content.getvalue()


def _gap_panels(comparison: Comparison) -> Iterator[Panel]:
    for block in comparison.blocks:
        for metric in METRICS if block.gaps else ():

            def draw(axes: Axes, block: Block = block, metric: Metric = metric) -> None:
                names = [comparison.classifier_name(classifier) for classifier in block.classifiers]
                thickness = 0.8 / len(block.gaps)
                for index, gap in enumerate(block.gaps):
                    style: dict[str, Any] = {"color": _COLORS[index % 8], "hatch": _HATCHES[index % 8]}
                    for number, row in enumerate(gap.rows):
                        interval = row.first(metric)
                        y = names.index(comparison.classifier_name(row.classifier)) + (index + 0.5) * thickness - 0.4
                        label = None if number else gap.name
                        axes.barh(y, interval.mean, thickness, label=label, edgecolor="white", **style)
                        _draw_interval(axes, interval, y, "#333333")
                _list_names(axes, names)
                axes.axvline(0, color="black", linewidth=0.8)
                axes.set_xlabel(f"gap in {METRIC_NAMES[metric]}, points", fontsize=8)

            height = 1.2 + 0.22 * len(block.classifiers) * len(block.gaps)
            yield Panel(comparison.design_name(block.design), METRIC_NAMES[metric], draw, height)


def _scatter_panels(comparison: Comparison) -> Iterator[Panel]:
    for block in (block for block in comparison.blocks if block.gaps):

        def draw(axes: Axes, block: Block = block) -> None:
            for index, loss in enumerate(block.losses):
                color = _COLORS[index % 8]
                for number, (first, second) in enumerate(block.sides(loss)):
                    x, y = first.first("acc"), second.first("wacc")
                    _draw_interval(axes, y, x.mean, color, vertical=True)
                    _draw_interval(axes, x, y.mean, color)
                    label = None if number else loss.label
                    axes.plot(x.mean, y.mean, _MARKERS[index % 8], color=color, markersize=5, label=label)
                    if len(loss.gap.rows) <= _NAMED:
                        name = comparison.classifier_name(first.classifier)
                        axes.annotate(name, (x.mean, y.mean), (4, 3), textcoords="offset points", fontsize=6)
            references = " or ".join(dict.fromkeys(loss.reference for loss in block.losses))
            axes.set_xlabel(f"Acc on {references} tasks, percent", fontsize=8)
            axes.set_ylabel("wAcc on other tasks, percent", fontsize=8)
            axes.margins(0.25, 0.15)  # room for the names

        yield Panel(comparison.design_name(block.design), "", draw, 3.6)


def _interval_panels(comparison: Comparison) -> Iterator[Panel]:
    metric = comparison.metric
    for block, group in _groups(comparison):

        def draw(axes: Axes, group: Group = group) -> None:
            for index, interval_name in enumerate(comparison.interval_names):
                color = _COLORS[index % 8]
                for number, row in enumerate(group.rows):
                    interval, label = row.intervals[metric][interval_name], None if number else interval_name
                    y = number + (index + 0.5) * 0.6 / len(comparison.interval_names) - 0.3
                    _draw_interval(axes, interval, y, color)
                    axes.plot(interval.mean, y, _MARKERS[index % 8], color=color, markersize=4, label=label)
            _list_names(axes, [comparison.classifier_name(row.classifier) for row in group.rows])
            axes.set_xlabel(f"{METRIC_NAMES[metric]}, percent, {100 * comparison.level:.4g}% intervals", fontsize=8)

        height = 1.2 + 0.16 * len(group.rows) * (1 + len(comparison.interval_names))
        yield Panel(comparison.design_name(block.design), group.name, draw, height)


def _pair_panels(comparison: Comparison) -> Iterator[Panel]:
    metric, interval_name = comparison.metric, comparison.first_interval_name
    for block, group in _groups(comparison, gaps=True):
        if len(group.rows) < 2:
            continue
        few = len(group.rows) <= _NUMBERED

        def draw(axes: Axes, group: Group = group, few: bool = few) -> None:
            classifiers = [row.classifier for row in group.rows]
            differences = np.full((len(classifiers), len(classifiers)), np.nan)
            for pair in group.pairs[metric, interval_name]:
                weight = "normal" if pair.conclusion == "0" else "bold"
                for turned in (pair, pair.turned()):
                    row, column = classifiers.index(turned.a), classifiers.index(turned.b)
                    mean = differences[row, column] = turned.interval.mean
                    if few:
                        axes.text(column, row, f"{mean:+.1f}", ha="center", va="center", fontsize=7, fontweight=weight)
            largest = float(np.nanmax(np.abs(differences))) or 1.0
            # Twice the range keeps the colors light enough for the numbers.
            axes.imshow(np.ma.masked_invalid(differences), cmap="PuOr", vmin=-2 * largest, vmax=2 * largest)
            names = [comparison.classifier_name(row.classifier) for row in group.rows]
            _name_cells(axes, names, names)
            axes.set_xlabel(f"row minus column, {METRIC_NAMES[metric]}, points; bold: conclusive", fontsize=8)

        size = 1.8 + (0.42 if few else 0.2) * len(group.rows)
        yield Panel(comparison.design_name(block.design), group.name, draw, size, max(3.6, size))


def _task_panels(comparison: Comparison) -> Iterator[Panel]:
    for scatter in task_scatters(comparison):

        def draw(axes: Axes, scatter: TaskScatter = scatter) -> None:
            axes.scatter(scatter.x, scatter.y, s=6.0 * scatter.tasks, color=_COLORS[0], alpha=0.6, linewidths=0)
            ends = [min(scatter.x.min(), scatter.y.min()), max(scatter.x.max(), scatter.y.max())]
            axes.plot(ends, ends, "--", color="#777777", linewidth=0.8)
            axes.set_aspect("equal")
            metric = METRIC_NAMES[comparison.metric]
            axes.set_xlabel(f"{metric} of {scatter.first} on a task, percent", fontsize=8)
            axes.set_ylabel(f"{metric} of {scatter.second}, percent", fontsize=8)

        yield Panel(comparison.design_name(scatter.design), f"{scatter.group.name}, r = {scatter.r}", draw, 4.0)


def _seed_panels(comparison: Comparison) -> Iterator[Panel]:
    metric = comparison.metric
    for block, group in _groups(comparison, gaps=True):
        if len(group.seeds) < 2:
            continue

        def draw(axes: Axes, group: Group = group) -> None:
            for y, row in enumerate(group.rows):
                means = list(row.seeds[metric].values())
                axes.plot(means, [y] * len(means), "o", color=_COLORS[0], alpha=0.7, label=None if y else "one seed")
                label = None if y else "mean and standard deviation"
                axes.errorbar(float(np.mean(means)), y + 0.25, xerr=row.spread(metric), label=label, **_MEAN)
            _list_names(axes, [comparison.classifier_name(row.classifier) for row in group.rows])
            unit = "points" if group.against else "percent"
            axes.set_xlabel(f"{METRIC_NAMES[metric]}, {unit}, {len(group.seeds)} seeds", fontsize=8)

        yield Panel(comparison.design_name(block.design), group.name, draw, 1.2 + 0.4 * len(group.rows))


def _heat_panels(comparison: Comparison) -> Iterator[Panel]:
    if len(comparison.encoders) < 2 or len(comparison.methods) < 2:
        return
    for block, group in _groups(comparison, gaps=True):

        def draw(axes: Axes, group: Group = group) -> None:
            means = np.full((len(comparison.encoders), len(comparison.methods)), np.nan)
            for row in group.rows:
                encoder, method = row.classifier
                means[comparison.encoders.index(encoder), comparison.methods.index(method)] = row.means["wacc"]
            axes.imshow(np.ma.masked_invalid(means), cmap="cividis", aspect="auto")
            middle = (np.nanmin(means) + np.nanmax(means)) / 2
            for (y, x), mean in np.ndenumerate(means):
                if not math.isnan(mean):
                    color = "white" if mean < middle else "black"
                    axes.text(x, y, f"{mean:.1f}", ha="center", va="center", fontsize=7, color=color)
            _name_cells(axes, comparison.methods, list(comparison.encoder_names.values()))
            axes.set_xlabel("gap in wAcc, points" if group.against else "wAcc, percent", fontsize=8)

        yield Panel(comparison.design_name(block.design), group.name, draw, 1.8 + 0.35 * len(comparison.encoders))


def _stage_panels(comparison: Comparison) -> Iterator[Panel]:
    curves = stage_curves(comparison)
    for encoder, reference, label, design in dict.fromkeys((c.encoder, c.reference, c.label, c.design) for c in curves):
        key = (encoder, reference, label, design)
        same_panel = [curve for curve in curves if (curve.encoder, curve.reference, curve.label, curve.design) == key]

        def draw(axes: Axes, same_panel: list[StageCurve] = same_panel) -> None:
            for curve in same_panel:
                index = comparison.methods.index(curve.method)
                means = [gap.mean for gap in curve.gaps.values()]
                style, color = f"{_MARKERS[index % 8]}-", _COLORS[index % 8]
                axes.plot(list(curve.gaps), means, style, color=color, markersize=4, label=curve.method)
                for stage, gap in curve.gaps.items():
                    _draw_interval(axes, gap, stage, color, vertical=True)
            axes.axhline(0, color="black", linewidth=0.8)
            axes.set_xlabel("stage", fontsize=8)
            axes.set_ylabel(f"gap in {METRIC_NAMES[comparison.metric]}, points", fontsize=8)

        yield Panel(comparison.design_name(design), f"{encoder}: {reference} - {label}", draw, 3.2)


# Function that makes the panels of each figure, and what a comparison needs so that there are any.
_FIGURES: dict[str, tuple[Callable[[Comparison], Iterator[Panel]], str]] = {
    "gaps": (_gap_panels, "results on random or iid tasks and on others of the same design"),
    "scatter": (_scatter_panels, "results on random or iid tasks and on others of the same design"),
    "intervals": (_interval_panels, "results"),
    "pairs": (_pair_panels, "at least two classifiers"),
    "tasks": (_task_panels, "at least two classifiers"),
    "seeds": (_seed_panels, "task sets that differ in their seed"),
    "heat": (_heat_panels, "at least two encoders and two methods"),
    "stages": (_stage_panels, "gaps on the features of at least two stages of a network, such as lite0(stage=3)"),
}


def _groups(comparison: Comparison, gaps: bool = False) -> Iterator[tuple[Block, Group]]:
    for block in comparison.blocks:
        yield from ((block, group) for group in [*block.groups, *(block.gaps if gaps else [])])


def _name_cells(axes: Axes, columns: list[str], rows: list[str]) -> None:
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)


def _list_names(axes: Axes, names: list[str]) -> None:
    """List the names from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def _draw_interval(axes: Axes, interval: Interval, at: float, color: str, *, vertical: bool = False) -> None:
    """Draw the interval as a line with caps; nothing if there is no interval."""
    if interval.refused is None:
        ends = [[max(interval.mean - interval.low, 0.0)], [max(interval.high - interval.mean, 0.0)]]
        x, y = (at, interval.mean) if vertical else (interval.mean, at)
        error: dict[str, Any] = {"yerr" if vertical else "xerr": ends}
        axes.errorbar(x, y, **error, fmt="none", color=color, capsize=2, linewidth=1)
