"""Direct and paired comparisons, against SciPy's intervals and tests by hand."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.comparison.sentences import fates_sentence
from shotproof.core.errors import UnknownName
from shotproof.evaluation.evaluate import evaluate
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import plan
from shotproof.report.pages.matrix import triple_matrices
from shotproof.results.results import Results
from shotproof.stats.triples import Fates, Triple, Triples
from shotproof.tasks.sampler import sample
from tests.analysis.test_compare import SHAPE, make_world
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.7, "ridge": 0.62, "knn": 0.6, "svm": 0.45}


@pytest.fixture(scope="module")
def both() -> tuple[Results, Results]:
    """Many tasks with replacement, and few without."""
    random = draw_results(draw_tasks(tasks=400), METHODS, seed=1)
    return random, draw_results(draw_tasks("depletion", tasks=12), METHODS, seed=2)


def direct(first: np.ndarray, second: np.ndarray) -> str:
    """Whether the two 95% intervals meet, by SciPy."""
    (a, b), (c, d) = (stats.t.interval(0.95, len(one) - 1, one.mean(), stats.sem(one)) for one in (first, second))
    return "+" if a > d else "-" if b < c else "0"


def paired(first: np.ndarray, second: np.ndarray) -> str:
    test = stats.ttest_rel(first, second)
    return "0" if test.pvalue > 0.05 else "+" if test.statistic > 0 else "-"


@pytest.mark.parametrize("metric", ["acc", "wacc"])
def test_triples_are_those_of_the_paper(both: tuple[Results, Results], metric: str) -> None:
    random, _ = both
    comparison = compare(list(both), metric=metric)
    triples = comparison.groups[0].triples[metric]  # type: ignore[index]
    expected = []
    for a, b in combinations(METHODS, 2):
        closed, opened = ([values_of(given, name, metric) for name in (a, b)] for given in both)
        expected.append((f"{a} on pixels", f"{b} on pixels", direct(*closed), direct(*opened), paired(*opened), None))
    assert [(str(o.a), str(o.b), o.closed, o.open, o.paired, o.at_best) for o in triples.pairs] == expected
    counts = [sum(row[place] != "0" for row in expected) for place in (2, 3, 4)]
    assert list(triples.conclusive.values()) == counts
    assert counts[0] > counts[1]
    assert triples.tasks == 12
    assert not comparison.groups[1].triples  # of tasks without replacement there is nothing closed
    # The column `direct` of any interval says the same.
    table = comparison.to_pandas("pairs").query(
        f"metric == '{metric}' and tasks == 'random' and quantity == 'accuracy'"
    )
    assert table.query("interval == 'sampler'")["direct"].tolist() == [row[2] for row in expected]
    assert table.query("interval == 'depletion'")["direct"].tolist() == [row[3] for row in expected]
    correlations = [
        np.corrcoef(*(values_of(random, name, metric) for name in pair))[0, 1] for pair in combinations(METHODS, 2)
    ]
    assert table.query("interval == 'sampler'")["correlation"].tolist() == pytest.approx(correlations)


def test_triples_are_exported(both: tuple[Results, Results], tmp_path: Path) -> None:
    comparison = compare(list(both))
    (triples,) = [group.triples["acc"] for group in comparison.groups if group.triples]
    rows = [row for row in comparison.to_json()["triples"] if row["metric"] == "acc"]
    assert [[row["closed"], row["open"], row["paired"]] for row in rows] == [pair.signs for pair in triples.pairs]
    assert "closed,open,paired,at_best_query,inverted,correlation" in comparison.to_csv()
    (matrix,) = triple_matrices(comparison)
    assert matrix.conclusive == triples.conclusive
    signs = {(row[0], other[0]): row[2][place] for row in matrix.rows for place, other in enumerate(matrix.rows)}
    for one in triples.pairs:
        a, b = one.a.method, one.b.method
        typeset = [sign.replace("-", "−") for sign in one.signs]
        turned = [{"+": "−", "-": "+", "0": "0"}[sign] for sign in one.signs]
        assert (signs[a, b].signs, signs[b, a].signs) == (typeset, turned)  # type: ignore[union-attr]
    assert not compare(both[0]).groups[0].triples
    with pytest.raises(UnknownName):
        comparison.to_pandas("triple")


def test_the_fates_of_comparisons_are_counted() -> None:
    signs = ["+++", "+0+", "-0-", "-00", "+0-", "+-0", "0+-", "000"]
    triples = Triples([Triple("a", "b", *sign) for sign in signs], 10)  # type: ignore[arg-type]
    assert [pair.inverted for pair in triples.pairs] == [False] * 4 + [True, True, False, False]
    assert triples.inverted == triples.pairs[4:6]
    assert Fates.of([triples]) == Fates(8, 6, 3, 2, 2)
    assert Fates.of([triples, triples]) == Fates(16, 12, 6, 4, 4)
    told = fates_sentence([triples])
    assert "closed, direct: 6; open, direct: 3; open, paired: 5." in told
    assert re.search(r"\b6 of these pairs .*\b3 are inconclusive .*does not confirm 2, and 2 are inverted", told)


def test_the_best_number_of_queries_is_drawn_and_evaluated() -> None:
    catalog, features = make_world()
    tasks = sample(catalog, "random", **SHAPE, tasks=60)
    methods = ["ncc", "knn", "ridge"]
    results = evaluate(tasks, features, methods)
    comparison = compare(
        Inputs([results], [tasks], [catalog], [features]), intervals=["sampler", "depletion"], placebo=False
    )
    triples = comparison.groups[0].triples["acc"]
    sizes = [plan(Pilot.of(results).moments(name), shot=2, way=3, classes=8, items=30).query for name in methods]
    assert triples.best_query == sorted(sizes)[1]  # type: ignore[type-var]
    drawn = sample(catalog, "depletion", way=3, shot=2, query=triples.best_query or 0)
    assert triples.best_tasks == len(drawn)
    best = evaluate(drawn, features, methods)
    expected = [paired(*(values_of(best, name, "acc") for name in pair)) for pair in combinations(methods, 2)]
    assert [pair.at_best for pair in triples.pairs] == expected
    assert list(triples.conclusive)[-1] == f"open, paired, {triples.best_query} queries"
