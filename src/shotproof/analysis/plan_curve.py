"""The plan that random results allow, as a pilot: the expected half-width against the number of queries."""

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
    """A plan for one design, from its random tasks, which had `query` queries per class.

    classifier: the most accurate one on them
    """

    design: Design
    classifier: Classifier
    query: int
    plan: Plan


def plan_curves(comparison: Comparison, inputs: Inputs) -> list[PlanCurve]:
    """For each design with random tasks of a catalog that is there; none where the results do not allow a plan."""
    catalogs = {catalog.digest: catalog for catalog in inputs.catalogs}
    curves = []
    for block in comparison.blocks:
        random = next((group for group in block.groups if group.is_random), None)
        catalog = catalogs.get(block.design.catalog or "")
        if random is None or catalog is None or block.design.shot is None:
            continue
        best = max(random.rows, key=lambda row: row.means["acc"]).classifier
        pilot = _random_results(inputs, block.design, best)
        try:
            made = _plan(pilot, best.method, block.design, block.design.shot, catalog)
        except ShotproofError:  # one query per class, an accuracy that never varies: nothing to plan from
            continue
        curves.append(PlanCurve(block.design, best, block.design.query or 0, made))
    return curves


def _random_results(inputs: Inputs, design: Design, classifier: Classifier) -> Results:
    """The first results of a classifier on the random tasks of a design."""
    for given in inputs.results:
        origin = Origin.of(given)
        same = (origin.design, origin.sampler, origin.encoder) == (design, RANDOM, classifier.encoder)
        if same and classifier.method in given.methods:
            return given
    raise AssertionError("the row was made from one of the results")


def _plan(results: Results, method: str, design: Design, shot: int, catalog: Catalog) -> Plan:
    pilot = Pilot.of(results)
    sizes = ItemPool.of(catalog.in_split(design.split)).sizes.tolist()
    return plan(pilot.moments(method), shot=shot, way=pilot.way, items=sizes, queries=QUERIES)
