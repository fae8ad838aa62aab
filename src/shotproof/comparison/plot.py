"""Figures of a comparison by matplotlib, for papers and notebooks: figure objects, nothing is shown or kept.

Colors are Okabe and Ito's, which color-blind readers tell apart; hatches and markers say the same again.
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
_NAMED = 12  # points that a scatter names; more would lie on top of each other
_NUMBERED = 20  # classifiers whose matrix of pairs shows numbers
# Names with dollars are no formulas; and without random names, dates and versions, the same bytes come out again.
_SETTINGS: dict[Any, Any] = {"text.parse_math": False, "svg.hashsalt": "shotproof", "pdf.fonttype": 42}
_METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its design, what it shows of it, how it is drawn, and its size in inches."""

    design: str
    title: str
    draw: Callable[[Axes], None]
    height: float
    width: float = 4.2


@dataclass(frozen=True)
class TaskScatter:
    """The two best classifiers of a task set by the comparison's metric.

    first, second: their names, the better one first
    x, y: the accuracies, in percent: [points]
    tasks: how many tasks have both: [points]
    correlation: Pearson's, over tasks; NaN where one never varies
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
        """The correlation as text."""
        return "n/a" if np.isnan(self.correlation) else f"{self.correlation:.2f}"


def task_scatters(comparison: Comparison) -> Iterator[TaskScatter]:
    """One for every task set that two classifiers were evaluated on, but placebos."""
    metric = comparison.metric
    for block in comparison.blocks:
        for group in block.measured:
            if len(group.rows) < 2:
                continue
            best = sorted(group.rows, key=lambda row: -row.means[metric])[:2]
            both = {row.classifier for row in best}
            pairs = next(of for (of_metric, _), of in group.pairs.items() if of_metric == metric)
            pair = next(one for one in pairs if {one.a, one.b} == both)
            values = np.stack([group.values[row.classifier][metric] for row in best])
            points, tasks = np.unique(values.round(9), axis=1, return_counts=True)
            first, second = (comparison.classifier_name(row.classifier) for row in best)
            yield TaskScatter(
                block.design, group, first, second, points[0], points[1], tasks, group.correlation(pair, metric)
            )


def plot(comparison: Comparison, figure: str | None = None) -> Figure:
    """One figure, with one panel per design and task set.

    Args:
        comparison: what to draw
        figure: `gaps` (what classifiers lose on other tasks than the reference), `scatter` (Acc on the reference
            against wAcc on other tasks), `intervals` (accuracies under every interval), `pairs` (which differences
            are conclusive), `tasks` (the task accuracies of the two best against each other), `seeds` (the mean on each
            seed), `heat` (encoders by methods), `stages` (the gap over the stages of networks); by default `gaps`, or
            `intervals` where there are none

    Returns:
        A matplotlib figure, which a notebook shows.

    Raises:
        UnknownName: there is no such figure.
        InputError: the comparison has nothing that the figure shows.
        MissingExtra: matplotlib is not installed.
    """
    name = figure or ("gaps" if comparison.gaps else "intervals")
    if name not in _FIGURES:
        raise UnknownName("figure", name, _FIGURES)
    panels, needs = list(_FIGURES[name][0](comparison)), _FIGURES[name][1]
    if not panels:
        raise InputError(f"figure '{name}': there is nothing to show, it needs {needs}")
    return _drawn(panels)


def save_figures(comparison: Comparison, folder: str | Path) -> list[Path]:
    """Write every figure that has something to show as SVG, PDF and PNG.

    Args:
        comparison: what to draw
        folder: made if it is not there

    Returns:
        The files.

    Raises:
        MissingExtra: matplotlib is not installed.
        WriteFailed: a file cannot be written.
    """
    written = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, (panels_of, _) in _FIGURES.items():
            panels = list(panels_of(comparison))
            if not panels:
                continue
            figure = _drawn(panels)
            for suffix in FORMATS:
                path = Path(folder) / f"{name}.{suffix}"
                path.write_bytes(_bytes(figure, suffix))
                written.append(path)
    except OSError as error:
        raise WriteFailed(f"cannot write figures into {folder}: {error.strerror or error}") from error
    return written


def _drawn(panels: list[Panel]) -> Figure:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("a figure", "plot") from error

    class Shown(Figure):
        """A figure that a notebook shows, though pyplot knows nothing of it."""

        def _repr_png_(self) -> bytes:
            return _bytes(self, "png")

    with rc_context(_SETTINGS):
        figure = Shown(layout="constrained")
        _fill(figure, panels)
    return figure


def _fill(figure: Figure, panels: list[Panel]) -> None:
    columns, rows = _grid(panels)
    heights = [max(panel.height for panel in row) for row in rows]
    figure.set_size_inches(columns * max(panel.width for panel in panels), sum(heights))
    axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    keys: dict[str, Any] = {}
    for of_row, row in zip(axes, rows, strict=True):
        for one in of_row[len(row) :]:
            one.set_axis_off()
        for one, panel in zip(of_row, row, strict=False):
            one.set_title("\n".join(filter(None, (panel.design, panel.title))), fontsize=9)
            one.tick_params(labelsize=8)
            panel.draw(one)
            keys |= {label: handle for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}
    if keys:
        figure.legend(keys.values(), keys, loc="outside lower center", ncols=min(4, len(keys)), fontsize=8)


def _grid(panels: list[Panel]) -> tuple[int, list[list[Panel]]]:
    """The number of columns and the panels of each row; a design starts a row of its own."""
    by_design = [list(group) for _, group in groupby(panels, key=lambda panel: panel.design)]
    most = max(map(len, by_design))
    columns = most if most <= _PER_ROW else math.ceil(most / math.ceil(most / _PER_ROW))
    return columns, [of[start : start + columns] for of in by_design for start in range(0, len(of), columns)]


def _bytes(figure: Figure, suffix: str) -> bytes:
    from matplotlib import rc_context

    content = BytesIO()
    with rc_context(_SETTINGS):
        figure.savefig(content, format=suffix, dpi=200, metadata=_METADATA[suffix])
    return content.getvalue()


def _gap_panels(comparison: Comparison) -> Iterator[Panel]:
    for block in comparison.blocks:
        for metric in METRICS if block.gaps else ():

            def draw(axes: Axes, block: Block = block, metric: Metric = metric) -> None:
                names = [comparison.classifier_name(one) for one in block.classifiers]
                thick = 0.8 / len(block.gaps)
                for place, gap in enumerate(block.gaps):
                    style: dict[str, Any] = {"color": _COLORS[place % 8], "hatch": _HATCHES[place % 8]}
                    for number, row in enumerate(gap.rows):
                        interval = row.first(metric)
                        at = names.index(comparison.classifier_name(row.classifier)) + (place + 0.5) * thick - 0.4
                        label = None if number else gap.name
                        axes.barh(at, interval.mean, thick, label=label, edgecolor="white", **style)
                        _whisker(axes, interval, at, "#333333")
                _list_names(axes, names)
                axes.axvline(0, color="black", linewidth=0.8)
                axes.set_xlabel(f"gap in {METRIC_NAMES[metric]}, points", fontsize=8)

            height = 1.2 + 0.22 * len(block.classifiers) * len(block.gaps)
            yield Panel(comparison.design_name(block.design), METRIC_NAMES[metric], draw, height)


def _scatter_panels(comparison: Comparison) -> Iterator[Panel]:
    for block in (one for one in comparison.blocks if one.gaps):

        def draw(axes: Axes, block: Block = block) -> None:
            for place, loss in enumerate(block.losses):
                color = _COLORS[place % 8]
                for at, (first, second) in enumerate(block.sides(loss)):
                    x, y = first.first("acc"), second.first("wacc")
                    _whisker(axes, y, x.mean, color, vertical=True)
                    _whisker(axes, x, y.mean, color)
                    label = None if at else loss.label
                    axes.plot(x.mean, y.mean, _MARKERS[place % 8], color=color, markersize=5, label=label)
                    if len(loss.gap.rows) <= _NAMED:
                        name = comparison.classifier_name(first.classifier)
                        axes.annotate(name, (x.mean, y.mean), (4, 3), textcoords="offset points", fontsize=6)
            references = " or ".join(dict.fromkeys(loss.reference for loss in block.losses))
            axes.set_xlabel(f"Acc on {references} tasks, percent", fontsize=8)
            axes.set_ylabel("wAcc on other tasks, percent", fontsize=8)
            axes.margins(0.25, 0.15)  # for the names

        yield Panel(comparison.design_name(block.design), "", draw, 3.6)


def _interval_panels(comparison: Comparison) -> Iterator[Panel]:
    metric = comparison.metric
    for block, group in _groups(comparison):

        def draw(axes: Axes, group: Group = group) -> None:
            for place, covers in enumerate(comparison.covers):
                color = _COLORS[place % 8]
                for at, row in enumerate(group.rows):
                    interval, label = row.intervals[metric][covers], None if at else covers
                    y = at + (place + 0.5) * 0.6 / len(comparison.covers) - 0.3
                    _whisker(axes, interval, y, color)
                    axes.plot(interval.mean, y, _MARKERS[place % 8], color=color, markersize=4, label=label)
            _list_names(axes, [comparison.classifier_name(row.classifier) for row in group.rows])
            axes.set_xlabel(f"{METRIC_NAMES[metric]}, percent, {100 * comparison.level:.4g}% intervals", fontsize=8)

        height = 1.2 + 0.16 * len(group.rows) * (1 + len(comparison.covers))
        yield Panel(comparison.design_name(block.design), group.name, draw, height)


def _pair_panels(comparison: Comparison) -> Iterator[Panel]:
    metric, covers = comparison.metric, comparison.first_covers
    for block, group in _groups(comparison, gaps=True):
        if len(group.rows) < 2:
            continue
        few = len(group.rows) <= _NUMBERED

        def draw(axes: Axes, group: Group = group, few: bool = few) -> None:
            keys = [row.classifier for row in group.rows]
            difference = np.full((len(keys), len(keys)), np.nan)
            for pair in group.pairs[metric, covers]:
                weight = "normal" if pair.conclusion == "0" else "bold"
                for one in (pair, pair.turned()):
                    row, column, mean = keys.index(one.a), keys.index(one.b), one.interval.mean
                    difference[row, column] = mean
                    if few:
                        axes.text(column, row, f"{mean:+.1f}", ha="center", va="center", fontsize=7, fontweight=weight)
            most = float(np.nanmax(np.abs(difference))) or 1.0
            # Twice the range keeps the colors light enough for the numbers.
            axes.imshow(np.ma.masked_invalid(difference), cmap="PuOr", vmin=-2 * most, vmax=2 * most)
            names = [comparison.classifier_name(row.classifier) for row in group.rows]
            _name_cells(axes, names, names)
            axes.set_xlabel(f"row minus column, {METRIC_NAMES[metric]}, points; bold: conclusive", fontsize=8)

        size = 1.8 + (0.42 if few else 0.2) * len(group.rows)
        yield Panel(comparison.design_name(block.design), group.name, draw, size, max(3.6, size))


def _task_panels(comparison: Comparison) -> Iterator[Panel]:
    for one in task_scatters(comparison):

        def draw(axes: Axes, one: TaskScatter = one) -> None:
            axes.scatter(one.x, one.y, s=6.0 * one.tasks, color=_COLORS[0], alpha=0.6, linewidths=0)
            ends = [min(one.x.min(), one.y.min()), max(one.x.max(), one.y.max())]
            axes.plot(ends, ends, "--", color="#777777", linewidth=0.8)
            axes.set_aspect("equal")
            metric = METRIC_NAMES[comparison.metric]
            axes.set_xlabel(f"{metric} of {one.first} on a task, percent", fontsize=8)
            axes.set_ylabel(f"{metric} of {one.second}, percent", fontsize=8)

        yield Panel(comparison.design_name(one.design), f"{one.group.name}, r = {one.r}", draw, 4.0)


def _seed_panels(comparison: Comparison) -> Iterator[Panel]:
    metric = comparison.metric
    for block, group in _groups(comparison, gaps=True):
        if len(group.seeds) < 2:
            continue

        def draw(axes: Axes, group: Group = group) -> None:
            for at, row in enumerate(group.rows):
                means = list(row.seeds[metric].values())
                axes.plot(means, [at] * len(means), "o", color=_COLORS[0], alpha=0.7, label=None if at else "one seed")
                label = None if at else "mean and standard deviation"
                axes.errorbar(float(np.mean(means)), at + 0.25, xerr=row.spread(metric), label=label, **_MEAN)
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
        own = [one for one in curves if (one.encoder, one.reference, one.label, one.design) == key]

        def draw(axes: Axes, own: list[StageCurve] = own) -> None:
            for one in own:
                place = comparison.methods.index(one.method)
                means = [gap.mean for gap in one.gaps.values()]
                style = f"{_MARKERS[place % 8]}-"
                axes.plot(list(one.gaps), means, style, color=_COLORS[place % 8], markersize=4, label=one.method)
                for stage, gap in one.gaps.items():
                    _whisker(axes, gap, stage, _COLORS[place % 8], vertical=True)
            axes.axhline(0, color="black", linewidth=0.8)
            axes.set_xlabel("stage", fontsize=8)
            axes.set_ylabel(f"gap in {METRIC_NAMES[comparison.metric]}, points", fontsize=8)

        yield Panel(comparison.design_name(design), f"{encoder}: {reference} - {label}", draw, 3.2)


# Each figure's panels, and what a comparison needs to have any.
_FIGURES: dict[str, tuple[Callable[[Comparison], Iterator[Panel]], str]] = {
    "gaps": (_gap_panels, "results on random or iid tasks and on others of the same design"),
    "scatter": (_scatter_panels, "results on random or iid tasks and on others of the same design"),
    "intervals": (_interval_panels, "results"),
    "pairs": (_pair_panels, "two classifiers or more"),
    "tasks": (_task_panels, "two classifiers or more"),
    "seeds": (_seed_panels, "task sets that differ in their seed"),
    "heat": (_heat_panels, "two encoders and two methods or more"),
    "stages": (_stage_panels, "gaps on the features of two stages of a network or more, such as lite0(stage=3)"),
}


def _groups(comparison: Comparison, gaps: bool = False) -> Iterator[tuple[Block, Group]]:
    for block in comparison.blocks:
        yield from ((block, group) for group in [*block.groups, *(block.gaps if gaps else [])])


def _name_cells(axes: Axes, columns: list[str], rows: list[str]) -> None:
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)


def _list_names(axes: Axes, names: list[str]) -> None:
    """The classifiers from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def _whisker(axes: Axes, interval: Interval, at: float, color: str, *, vertical: bool = False) -> None:
    """The interval as a line with caps; nothing where it is refused."""
    if interval.refused is None:
        ends = [[max(interval.mean - interval.low, 0.0)], [max(interval.high - interval.mean, 0.0)]]
        x, y = (at, interval.mean) if vertical else (interval.mean, at)
        error: dict[str, Any] = {"yerr" if vertical else "xerr": ends}
        axes.errorbar(x, y, **error, fmt="none", color=color, capsize=2, linewidth=1)
