"""How far one detector finds the words of another (FewSTAB, Eq. 9)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from shotproof.analysis.inputs import Inputs
from shotproof.attributes.statistics import detection_accuracy
from shotproof.comparison.compare_sets import Detection
from shotproof.core.errors import InsufficientData
from shotproof.results.evaluated import Evaluated
from shotproof.results.origin import Design
from shotproof.stats.evidence import by_design


def detection_accuracies(sets: Sequence[Evaluated], inputs: Inputs) -> dict[Design, Detection]:
    """Of all pairs of attributes that tasks of one design were drawn with, where the inputs has them.

    They are of the items of the tasks' split where the inputs has the catalog, else of all.
    """
    accuracies: dict[Design, Detection] = {}
    for design, of_design in by_design(sets).items():
        digests = {one.origin.attributes for one in of_design}
        catalog = next((one for one in inputs.catalogs if one.digest == design.catalog), None)
        items = None if catalog is None else catalog.in_split(design.split).items
        given = {one.digest: one for one in inputs.attributes if one.digest in digests}
        found: dict[tuple[str, str], tuple[float, float]] = {}
        for a, b in combinations(given, 2):
            try:
                first, second = (detection_accuracy(given[x], given[y], items).accuracy for x, y in ((a, b), (b, a)))
            except InsufficientData:
                continue
            found |= {(a, b): (first, second), (b, a): (second, first)}
        accuracies[design] = found
    return accuracies
