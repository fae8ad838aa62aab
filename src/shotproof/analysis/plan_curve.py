"""Plans from random results as a pilot: expected half-width of the interval against the number of queries."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import ShotproofError
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import Plan, plan
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import RANDOM, Design, Origin
from shotproof.results.results import Results
from shotproof.tasks.pool import ItemPool

QUERIES = range(1, 31)


@dataclass(frozen=True)
class PlanCurve:
    """Plan for one design, from its random tasks with `query` queries per class.

    classifier: the most accurate classifier on them
    """

    design: Design
    classifier: Classifier
    query: int
    plan: Plan


def plan_curves(comparison: Comparison, inputs: Inputs) -> list[PlanCurve]:
    """Plan each design with random tasks of an available catalog; skip those whose results do not allow a plan."""
    catalogs = {catalog.digest: catalog for catalog in inputs.catalogs}
    curves = []
    for block in comparison.blocks:
        random_group = next((group for group in block.groups if group.is_random), None)
        catalog = catalogs.get(block.design.catalog or "")
        if random_group is None or catalog is None or block.design.shot is None:
            continue
        best = max(random_group.rows, key=lambda row: row.means["acc"]).classifier
        pilot = _random_results(inputs, block.design, best)
        try:
            curve_plan = _plan(pilot, best.method, block.design, block.design.shot, catalog)
        except ShotproofError:  # one query per class or constant accuracy: no basis for a plan
            continue
        curves.append(PlanCurve(block.design, best, block.design.query or 0, curve_plan))
    return curves


def _random_results(inputs: Inputs, design: Design, classifier: Classifier) -> Results:
    """Return the first results of a classifier on the random tasks of a design."""
    for results in inputs.results:
        origin = Origin.of(results)
        is_same_origin = (origin.design, origin.sampler, origin.encoder) == (design, RANDOM, classifier.encoder)
        if is_same_origin and classifier.method in results.methods:
            return results
    raise AssertionError("no results for the classifier of this row")


def _plan(results: Results, method: str, design: Design, shot: int, catalog: Catalog) -> Plan:
    """Plan the number of queries from a method's results."""
    pilot = Pilot.of(results)
    sizes = ItemPool.of(catalog.in_split(design.split)).sizes.tolist()
    return plan(pilot.moments(method), shot=shot, way=pilot.way, items=sizes, queries=QUERIES)
