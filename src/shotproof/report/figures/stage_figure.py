"""The loss of accuracy over the stages of a network, one line per head, one panel per number of shots."""

from __future__ import annotations

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.stages import stage_curves
from shotproof.report.figures.context_figures import ContextPanel, Curve, in_parts, lines_figure
from shotproof.report.figures.svg import marker
from shotproof.results.origin import Design


def stage_panels(comparison: Comparison) -> list[ContextPanel]:
    """For each encoder, task set and design: the loss against the stage, one line per method."""
    groups: dict[tuple[str, str, str, Design], dict[str, Curve]] = {}
    for one in stage_curves(comparison):
        key = (one.encoder, one.reference, one.label, one.design)
        groups.setdefault(key, {})[one.method] = {float(stage): gap for stage, gap in one.gaps.items()}
    panels, metric = [], METRIC_NAMES[comparison.metric]
    for (encoder, reference, label, design), curves in groups.items():
        points = [point for of_one in curves.values() for point in of_one.items()]
        parts = in_parts(curves)
        for number, part in enumerate(parts, 1):
            what = f"loss of {metric}, {reference} minus {label}, at each stage of {encoder}"
            described = f"{len(part)} methods on {comparison.design_name(design)} tasks: {what}."
            figure = lines_figure(part, points, "stage", described, f"loss of {metric} (points)")
            of_several = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            name = f"{encoder}: {reference} - {label}, {comparison.design_name(design)}{of_several}"
            panels.append(ContextPanel(name, figure, [(marker(5, 5, series), of) for series, of in enumerate(part)]))
    return panels
