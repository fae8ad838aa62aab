"""The plan that random results allow, as a pilot: the expected half-width against the number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.catalog.catalog import Catalog
from shotproof.errors import ShotproofError
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import RANDOM, Design, sources_of
from shotproof.report.comparison import Comparison
from shotproof.report.wording import classifier
from shotproof.stats.pilot import Pilot
from shotproof.stats.plan import Plan, plan
from shotproof.tasks.pool import Pool

QUERIES = range(1, 31)


@dataclass(frozen=True)
class PlanCurve:
    """A plan for one design: `classifier` is the most accurate one on its random tasks, which had `query` queries."""

    name: str
    classifier: str
    query: int
    plan: Plan


def plan_curves(comparison: Comparison, results: Sequence[Results], catalog: Catalog | None) -> list[PlanCurve]:
    """For each design with random tasks of this catalog; none where the results do not allow a plan."""
    if catalog is None:
        return []
    curves = []
    for design in comparison.designs:
        rows = [
            row for row in comparison.rows if row.design == design and row.reference and row.reference.sampler == RANDOM
        ]
        if rows and design.catalog == catalog.digest and design.shot is not None:
            best = max(rows, key=lambda row: row.reference.accuracy.mean if row.reference else 0.0)
            pilot = _random_results(results, design, best.encoder, best.method)
            try:
                made = _plan(pilot, best.method, design, catalog)
            except ShotproofError:  # one query a class, an accuracy that never varies: nothing to plan from
                continue
            name = comparison.design_name(design)
            curves.append(PlanCurve(name, classifier(best.encoder, best.method), design.query or 0, made))
    return curves


def _random_results(results: Sequence[Results], design: Design, encoder: str, method: str) -> Results:
    for source, given in zip(sources_of(results), results, strict=True):
        if (source.design, source.sampler, source.encoder) == (design, RANDOM, encoder) and method in given.methods:
            return given
    raise AssertionError("the row was made from one of the results")


def _plan(results: Results, method: str, design: Design, catalog: Catalog) -> Plan:
    pilot = Pilot.of(results)
    sizes = Pool.of(catalog.in_split(design.split)).sizes.tolist()
    assert design.shot is not None
    return plan(pilot.moments(method), shot=design.shot, way=pilot.way, items=sizes, queries=QUERIES)
