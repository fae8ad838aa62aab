"""The best number of queries for tasks without replacement, from random results as a pilot."""

from __future__ import annotations

import statistics

from shotproof.analysis.inputs import Inputs
from shotproof.core.errors import ShotproofError
from shotproof.planning.pilot import Pilot
from shotproof.planning.plan import plan
from shotproof.results.evaluated import Evaluated
from shotproof.results.origin import Origin
from shotproof.tasks.pool import ItemPool


def best_query(random: Evaluated, inputs: Inputs) -> int | None:
    """The number with the narrowest interval, in the middle of the classifiers'; None where results do not tell."""
    design = random.origin.design
    if design.shot is None:
        return None
    sizes = ItemPool.of(inputs.catalog(design.catalog).in_split(design.split)).sizes.tolist()
    found = []
    for given in inputs.results:
        if Origin.of(given).tasks_digest != random.origin.tasks_digest:
            continue
        for method in given.methods:
            try:
                pilot = Pilot.of(given)
                made = plan(pilot.moments(method), shot=design.shot, way=pilot.way, items=sizes)
            except ShotproofError:  # one query per class, or an accuracy that never varies: nothing to plan from
                continue
            found += [] if made.query is None else [made.query]
    return statistics.median_low(found) if found else None
