"""The report: one HTML file that opens offline and asks for nothing outside itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.evaluated import METRICS, Metric
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, Design, lookup, sources_of
from shotproof.features.features import Features
from shotproof.report import wording
from shotproof.report.album import Album
from shotproof.report.answers import answers_on, places_on
from shotproof.report.attribute_costs import MIN_TASKS, attribute_costs
from shotproof.report.comparison import Comparison, compare_results
from shotproof.report.context_figures import context_panels
from shotproof.report.explanation import explained_groups
from shotproof.report.figures import (
    Bar,
    Point,
    attribute_dots,
    gap_bars,
    gap_domain,
    interval_rows,
    plan_figure,
    scatter,
)
from shotproof.report.gallery import AnsweredTasks, make_gallery
from shotproof.report.heat_maps import heat_maps
from shotproof.report.matrix import METRIC, group_name, matrices, method_tables
from shotproof.report.plan_curve import PlanCurve, plan_curves
from shotproof.report.provenance import notes_of, provenance
from shotproof.report.render import render
from shotproof.report.similarity_scatter import similarity_part
from shotproof.report.svg import marker
from shotproof.similarity.similarity import Similarity
from shotproof.stats.compare import MethodGroup, MethodTable
from shotproof.stats.material import Material
from shotproof.tables import write_text
from shotproof.tasks.taskset import TaskSet

SHOWN_ATTRIBUTES = 10


def write_report(
    path: str | Path,
    results: Sequence[Results],
    *,
    tasks: Sequence[TaskSet] = (),
    catalog: Catalog | None = None,
    title: str | None = None,
    intervals: Sequence[str] | None = None,
    features: Sequence[Features] = (),
    attributes: Attributes | None = None,
    similarity: Similarity | None = None,
    workers: int = 1,
) -> Comparison:
    """Write the page and return the numbers on it.

    The task sets, matched to the results by their digests, and the catalog are needed for the gallery; the task sets
    alone for the attributes that cost most, and with the attributes for why the tasks are hard; the catalog alone for
    the plan. Without them the page says what is missing.
    `intervals` other than `sampler` re-evaluate the methods and need the features too, and the attributes where a
    sampler does. `similarity` adds how near the images are to their concepts and contexts.
    """
    comparison = compare_results(results)
    material = Material(tasks, catalog, features, attributes, workers=workers)
    tables = method_tables(results, intervals, material)
    answered = _answered(comparison, results, tasks)
    album = Album(catalog) if catalog is not None and answered else None
    context = {
        "title": title or "How much do these classifiers lean on shortcuts?",
        "comparison": comparison,
        "headline": [wording.typeset(sentence) for sentence in wording.headline(comparison)],
        "scatters": _scatters(comparison),
        "gaps": _gap_panels(comparison),
        "contexts": context_panels(comparison),
        "heat_maps": heat_maps(comparison),
        "matrices": matrices(comparison, tables),
        "method_tables": [table.to_json() for _, table in tables],
        "intervals": _interval_panels(comparison, tables),
        "plans": _plans(plan_curves(comparison, results, catalog)),
        "has_catalog": catalog is not None,
        "costs": _costs(answered),
        "min_tasks": MIN_TASKS,
        "has_tasks": bool(tasks),
        "why": explained_groups(tasks, results, attributes, features, album),
        "has_attributes": attributes is not None,
        "similarity": None if similarity is None else similarity_part(similarity),
        "gallery": make_gallery(answered, album.catalog, album=album) if album else None,
        "notes": notes_of(results, tasks, catalog),
        "provenance": provenance(results, tasks, catalog),
    }
    write_text(Path(path), render("page.html", context))
    return comparison


def _answered(comparison: Comparison, results: Sequence[Results], tasks: Sequence[TaskSet]) -> list[AnsweredTasks]:
    """The task sets with their answers, smallest design first; the reference only where there is no other."""
    sources = sources_of(results)
    sets = []
    for given in {(one.digest, lookup(one.meta, "from", "catalog")): one for one in tasks}.values():
        answers = answers_on(given, results)
        source = sources[places_on(given, sources)[0]]
        name = f"{source.sampler}, {comparison.design_name(source.design)}"
        order = (source.sampler in comparison.references, comparison.designs.index(source.design), source.sampler)
        sets.append((order, AnsweredTasks(name, given, answers)))
    sets.sort(key=lambda entry: entry[0])
    biased = [answered for (is_reference, *_), answered in sets if not is_reference]
    return biased or [answered for _, answered in sets]


def _scatters(comparison: Comparison) -> dict[str, Any]:
    """The reference's Acc against the biased wAcc, a panel a design and sampler, with the encoders' legend."""
    panels, accuracy = [], wording.reference_metric("Acc", comparison)
    for agreement in comparison.agreements:
        worst = wording.metric("wAcc", agreement.sampler)
        points = [
            Point(
                row.method,
                wording.classifier(row.encoder, row.method),
                comparison.encoders.index(row.encoder),
                row.reference.accuracy,
                row.biased.worst,
            )
            for row in comparison.rows
            if row.reference
            and row.biased
            and (row.design, row.biased.sampler) == (agreement.design, agreement.sampler)
        ]
        name = _set_name(comparison, agreement.sampler, comparison.design_name(agreement.design))
        described = f"Scatter plot of {len(points)} classifiers on {name} tasks: {accuracy} against {worst}."
        panels.append(
            (name, scatter(points, f"{accuracy} (%)", f"{worst} (%)", f"{described} The table has the values."))
        )
    keys = [(marker(5, 5, index), name) for index, name in enumerate(comparison.encoders)]
    return {"panels": panels, "keys": keys}


def _gap_panels(comparison: Comparison) -> dict[str, Any]:
    """Gaps as bars, a panel an encoder, a bar a design and sampler, all on one scale."""
    rows = [row for row in comparison.rows if row.gap]
    series = {
        (one.design, one.sampler): _set_name(comparison, one.sampler, comparison.design_name(one.design))
        for one in comparison.agreements
    }
    tints = {key: index + (len(series) == 1) for index, key in enumerate(series)}  # the first is pale beside others
    domain = gap_domain([row.gap for row in rows if row.gap])
    panels = []
    for encoder in dict.fromkeys(row.encoder for row in rows):
        groups: dict[str, list[Bar]] = {}
        for row in rows:
            if row.encoder == encoder and row.gap and row.biased:
                key = (row.design, row.biased.sampler)
                groups.setdefault(row.method, []).append(Bar(tints[key], series[key], row.gap))
        described = f"Bars of the gap of {len(groups)} methods on encoder {encoder}. The table has the values."
        panels.append((encoder, gap_bars(list(groups.items()), domain, "gap (percentage points)", described)))
    keys = [(f"t{tints[key] % 6}", name) for key, name in series.items()]
    return {"panels": panels, "keys": keys, "named": comparison.encoders != [UNKNOWN]}


def _interval_panels(comparison: Comparison, tables: Sequence[tuple[Design, MethodTable]]) -> dict[str, Any]:
    """Where there is more than one interval: all of them, a panel a metric and task set, or gap."""
    covers = list(dict.fromkeys(name for _, table in tables for name in table.covers))
    panels = []
    for design, table in tables if len(covers) > 1 else []:
        for group in [*table.groups, *table.gaps]:
            name = group_name(comparison, design, group)
            panels += [
                _interval_panel(group, metric, name) for metric in METRICS if metric == METRIC or not group.biased
            ]
    refused = {name: reason for _, table in tables for name, reason in table.refused.items()}
    notes = dict.fromkeys(note for _, table in tables for note in table.notes)
    return {"covers": covers, "panels": panels, "refused": refused, "notes": list(notes)}


def _interval_panel(group: MethodGroup, metric: Metric, name: str) -> dict[str, Any]:
    label = {"acc": "Acc", "wacc": "wAcc"}[metric]
    unit = f"gap in {label} (percentage points)" if group.biased else f"{label} (%)"
    rows = sorted(group.methods, key=lambda row: -row.means[metric])
    drawn = [(row.method, list(row.intervals[metric].values())) for row in rows]
    figure = None
    if any(not one.refused for _, intervals in drawn for one in intervals):
        figure = interval_rows(
            drawn, unit, f"Intervals of {len(rows)} methods, {name}, {label}. The table has the values."
        )
    return {"name": f"{name}: {label}", "metric": metric, "rows": rows, "figure": figure}


def _plans(curves: Sequence[PlanCurve]) -> list[dict[str, Any]]:
    return [
        {
            "curve": one,
            "figure": plan_figure(one, f"Half-width against queries for {one.classifier} on {one.name} tasks."),
        }
        for one in curves
    ]


def _costs(answered: Sequence[AnsweredTasks]) -> list[dict[str, Any]]:
    """The costliest attributes of each task set that has planted ones."""
    shown = []
    for given in answered:
        costs = attribute_costs(given.tasks, given.answers)
        rows = costs.costs[:SHOWN_ATTRIBUTES]
        if costs.planted:
            described = (
                f"Class accuracy with each of {len(rows)} attributes planted. The table beside it has the values."
            )
            figure = attribute_dots(costs, SHOWN_ATTRIBUTES, described) if rows else None
            shown.append({"name": given.name, "costs": costs, "rows": rows, "figure": figure})
    return shown


def _set_name(comparison: Comparison, sampler: str, design_name: str) -> str:
    """A design's name, with the sampler's where there is more than one to tell apart."""
    return design_name if len(comparison.biased_samplers) == 1 else f"{sampler}, {design_name}"
