"""Report: one HTML file that opens offline and loads nothing from outside."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from shotproof.analysis.plan_curve import PlanCurve
from shotproof.comparison.changed_sets import AXIS as CHANGES
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.sentences import next_steps
from shotproof.comparison.summary import terms
from shotproof.comparison.thinned import thinned
from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.charts import attribute_dots, interval_rows, plan_figure, task_scatter_panels
from shotproof.report.figures.heat_maps import heat_maps
from shotproof.report.figures.loss_curves import stage_panels
from shotproof.report.figures.projection_figure import projection_part
from shotproof.report.figures.similarity_figure import similarity_part
from shotproof.report.pages.agreement_tables import detector_tables, seed_rows
from shotproof.report.pages.album import Album
from shotproof.report.pages.axis_tables import alone_rows, axis_sections
from shotproof.report.pages.content import PageContent, SetCosts
from shotproof.report.pages.cure_page import cure_part
from shotproof.report.pages.gallery import fooled_part, make_gallery
from shotproof.report.pages.matrix import group_name, matrices, triple_matrices
from shotproof.report.pages.mismatch_examples import explanation_part
from shotproof.report.pages.provenance import encoder_notes, notes_of, provenance
from shotproof.report.pages.render import render, with_terms
from shotproof.results.evaluated import METRICS, Metric
from shotproof.results.metrics import FEWEST_RANKED
from shotproof.stats.block import Group
from shotproof.stats.costs import MIN_TASKS

SHOWN_ATTRIBUTES = 10


def write_page(path: Path, content: PageContent) -> None:
    """Write the report; a section whose inputs are missing says what it needs."""
    comparison, inputs, album = thinned(content.comparison), content.inputs, Album()
    fooled = None if content.fooled is None else fooled_part(content.fooled, comparison, album)
    # Build the gallery before the explanations: it may fill the album, and their examples need little room.
    gallery = make_gallery(content.gallery, album, comparison.classifiers) if content.gallery else None
    in_short, *headline = with_terms(
        [" ".join(content.comparison.summary()), *content.comparison.verdict()], terms(content.comparison)
    )
    context = {
        "title": content.title,
        "comparison": comparison,
        "medium": comparison.medium,
        "summary": in_short,
        "headline": headline,
        "left_out": _left_out(comparison, content.comparison),
        "fooled": fooled,
        "steps": next_steps(content.comparison, content.experiment),
        "data_sets": [
            data_task_set
            for data_task_set in comparison.data_sets
            if data_task_set.mean.quantity in ("accuracy", "gap", "skill_lost")
        ],
        "seeds": seed_rows(comparison),
        "detectors": detector_tables(comparison),
        "axes": axis_sections(comparison),
        "alone": alone_rows(comparison),
        "heat_maps": heat_maps(comparison),
        "stages": stage_panels(comparison),
        "projections": [projection_part(projection) for projection in content.projections],
        "agreements": [agreement for agreement in comparison.agreements if agreement.classifiers >= FEWEST_RANKED],
        "matrices": matrices(comparison),
        "triples": triple_matrices(comparison),
        "task_scatters": task_scatter_panels(comparison),
        "intervals": _interval_panels(comparison),
        "plans": [_plan(comparison, plan) for plan in content.plans],
        "has_catalog": bool(inputs.catalogs),
        "costs": [_costs(cost) for cost in content.costs],
        "min_tasks": MIN_TASKS,
        "has_tasks": bool(inputs.tasks),
        "why": [explanation_part(tasks, album) for tasks in content.explained],
        "has_attributes": bool(inputs.attributes),
        "similarity": None if content.similarity is None else similarity_part(content.similarity),
        "standalone": False,
        "cured": None if content.cure is None else cure_part(content.cure),
        "gallery": gallery,
        "album": album,
        "notes": [*encoder_notes(comparison), *notes_of(inputs)],
        "provenance": provenance(inputs),
    }
    write_text(path, render("page.html", context))


def _left_out(thinned_comparison: Comparison, comparison: Comparison) -> str:
    """Say which classifiers the page leaves out; empty if it shows all of them."""
    count, total = (len(each.classifiers) for each in (thinned_comparison, comparison))
    if count == total:
        return ""
    return (
        f"This page shows {count:,} of the {total:,} classifiers, evenly spaced from the best to the worst, because "
        "more would make it too large. Ranks and intervals take all classifiers into account; shotproof compare --json "
        "lists all of them."
    )


def _interval_panels(comparison: Comparison) -> dict[str, Any]:
    """Draw all intervals, if there are several: one panel per metric and task set or gap."""
    panels = [
        _interval_panel(comparison, group, metric, group_name(comparison, block.design, group))
        for block in (comparison.blocks if len(comparison.interval_names) > 1 else [])
        for group in [*block.measured, *(group for loss in block.losses for group in (loss.lost, loss.skill))]
        for metric in METRICS
        if metric == comparison.metric or not group.against
    ]
    several = len(comparison.blocks) > 1
    refused = [
        (f"{name} interval{f' for {comparison.design_name(block.design)} tasks' if several else ''}", reason)
        for block in comparison.blocks
        for name, reason in block.refused.items()
    ]
    return {"names": list(comparison.interval_names), "panels": panels, "refused": refused, "notes": comparison.notes}


def _interval_panel(comparison: Comparison, group: Group, metric: Metric, name: str) -> dict[str, Any]:
    label = METRIC_NAMES[metric]
    units = {"accuracy": f"{label} (%)", "skill_lost": f"skill lost in {label} (%)"}
    unit = units.get(group.quantity, f"{label} lost (percentage points)")
    rows = [
        (comparison.classifier_name(row.classifier), row)
        for row in sorted(group.rows, key=lambda row: (math.isnan(row.means[metric]), -row.means[metric]))
    ]
    by_classifier = [(classifier, list(row.intervals[metric].values())) for classifier, row in rows]
    figure = None
    if any(not interval.refused for _, intervals in by_classifier for interval in intervals):
        figure = interval_rows(
            by_classifier, unit, f"Intervals of {len(rows)} methods, {name}, {label}. The table has the values."
        )
    is_changed = group.axis == CHANGES
    return {"name": f"{name}: {label}", "metric": metric, "rows": rows, "figure": figure, "is_changed": is_changed}


def _plan(comparison: Comparison, curve: PlanCurve) -> dict[str, Any]:
    name = comparison.design_name(curve.design)
    classifier = comparison.classifier_title(curve.classifier)
    description = f"Half-width against queries for {classifier} on {name} tasks."
    return {"name": f"{name}: {classifier}", "figure": plan_figure(curve.plan, curve.query, description)}


def _costs(set_costs: SetCosts) -> dict[str, Any]:
    """Draw the costliest attributes of a task set with planted attributes."""
    costs = set_costs.costs
    rows = costs.costs[:SHOWN_ATTRIBUTES]
    description = f"Cost of each of {len(rows)} planted attributes. The table has the values."
    figure = attribute_dots(rows, description) if rows else None
    return {"name": set_costs.name, "classifier": set_costs.classifier, "costs": costs, "rows": rows, "figure": figure}
