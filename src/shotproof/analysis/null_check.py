"""Null check: how often would a report claim an effect if the words or contexts of the data meant nothing?

Items, features and tasks stay unchanged; words are shuffled between the items of each class, again for each page, and
every page is read like that of the real data. Pages use the `sampler` interval, widened to the variation under shuffled
words: no other interval is narrower, so a page with another one would not claim more. The check is fast, since it needs
no halvings of the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.placebo_sets import with_placebos
from shotproof.analysis.reevaluation.reevaluate import classifiers_of, missing_inputs, reevaluate
from shotproof.analysis.reevaluation.shuffled_words import evaluate_shuffled
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.core import draws
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError
from shotproof.core.limits import COUNT
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.results.evaluated import METRICS, Evaluated, check_metric, evaluated_sets
from shotproof.stats.evidence import by_design
from shotproof.stats.intervals import IntervalName

RISK = 0.05  # share of pages that may claim something
_INTERVAL_NAMES: tuple[IntervalName, ...] = ("sampler",)
_PAGES = 2  # key of the random numbers; halvings and shuffles have their own
_RARE = 0.01  # smallest probability of so many claims by chance that is still sound


@dataclass(frozen=True)
class NullCheck:
    """Claims of report pages made from data with shuffled words.

    pages: number of pages
    claims: conclusive sentences of each page that claims something
    """

    pages: int
    claims: tuple[tuple[str, ...], ...]

    @property
    def is_sound(self) -> bool:
        """Return whether this many claims are plausible by chance if one page in twenty may claim something."""
        from scipy import stats

        return bool(stats.binom.sf(len(self.claims) - 1, self.pages, RISK) >= _RARE)


def check_null(
    inputs: Inputs, pages: int = 20, *, metric: str = "acc", seed: int = 0, runtime: Runtime | None = None
) -> NullCheck:
    """Shuffle the words or contexts of items within classes, and collect what a report page would claim.

    Args:
        inputs: run's folder, read by `shotproof.read`: results, task sets, catalog, features and attributes
        pages: number of shuffles
        metric: metric of the statements, `acc` or `wacc`
        seed: seed of the shuffles
        runtime: runtime for the evaluation

    Returns:
        The claims, all of them false; about one page in twenty may have one.

    Raises:
        InputError: no task set depends on words or contexts, or an input for re-evaluation is missing.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=12, items=40)
        >>> catalog, attributes = world.catalog(), world.attributes()
        >>> features = sp.encode(catalog, "dial(share=0.5)")
        >>> random = sp.sample(catalog, "random", tasks=60)
        >>> biased = sp.sample(catalog, "fewstab", attributes=attributes, tasks=60)
        >>> results = [sp.evaluate(tasks, features, "ncc") for tasks in (random, biased)]
        >>> inputs = Inputs(results, [random, biased], [catalog], [features], [attributes], halvings=4)
        >>> check_null(inputs, 4).pages
        4
    """
    COUNT.check("pages", pages)
    with resolve(runtime):
        inputs = with_placebos(inputs).inputs
        sets = evaluated_sets(inputs.results)
        missing_reason = missing_inputs(sets, inputs)
        if missing_reason:
            raise InputError(f"words cannot be shuffled: {missing_reason}")
        shuffled_values = _evaluate_pages(sets, inputs, pages, seed)
        if not shuffled_values:
            raise InputError(
                "no words to shuffle: expected tasks drawn by attributes or contexts, such as fewstab or hard-ood"
            )
        reevaluated = reevaluate(sets, _INTERVAL_NAMES, inputs)
    claims = []
    for page in range(pages):
        comparison = compare_sets(
            [_replace_values(evaluated, shuffled_values, page) for evaluated in sets],
            _INTERVAL_NAMES,
            metric=check_metric(metric),
            reevaluated=reevaluated,
        )
        page_claims = tuple(claim for verdict in verdicts(comparison) for claim in _claims(comparison, verdict))
        if page_claims:
            claims.append(page_claims)
    return NullCheck(pages, tuple(claims))


def _evaluate_pages(sets: Sequence[Evaluated], inputs: Inputs, pages: int, seed: int) -> dict[Hashable, FloatArray]:
    """Evaluate all task sets that have placebos with shuffled words: [pages, tasks], as in `ShuffledTasks.by_task`."""
    values: dict[Hashable, FloatArray] = {}
    page_seed = int(draws.bits(seed, _PAGES) >> np.uint64(1))  # shuffles other than those of the intervals
    for design_sets in by_design(sets).values():
        origins = {evaluated.label: evaluated.origin for evaluated in design_sets}
        for evaluated in design_sets:
            if evaluated.origin.placebo(origins):
                tasks = inputs.task_set(evaluated.origin.tasks_digest, evaluated.origin.design.catalog)
                catalog = inputs.catalog(evaluated.origin.design.catalog)
                # Matched sets share the shuffles, through the seed.
                values |= evaluate_shuffled(
                    [tasks],
                    catalog,
                    classifiers_of([evaluated], inputs),
                    shuffles=pages,
                    tasks=len(tasks),
                    seed=page_seed,
                ).by_task
    return values


def _replace_values(evaluated: Evaluated, shuffled: Mapping[Hashable, FloatArray], page: int) -> Evaluated:
    """Replace a task set's values by those with shuffled words; a set without words keeps its values."""
    digest = evaluated.origin.tasks_digest
    values = {
        classifier: {
            metric: own_values[metric] if (key := (digest, classifier, metric)) not in shuffled else shuffled[key][page]
            for metric in METRICS
        }
        for classifier, own_values in evaluated.values.items()
    }
    return replace(evaluated, values=values)


def _claims(comparison: Comparison, verdict: Verdict) -> Iterator[str]:
    """Yield the conclusive statements about a task set that depends on words or contexts."""
    if not verdict.loss.is_shuffled:
        return
    location = f"on {verdict.loss.label} tasks ({comparison.design_name(verdict.block.design)})"
    for classifiers, verb in ((verdict.losing, "loses accuracy"), (verdict.gaining, "does better")):
        for classifier in classifiers:
            yield f"{comparison.classifier_title(classifier)} {verb} {location}"
    largest_loser = verdict.most[0] if verdict.most else verdict.more
    if largest_loser is not None:
        yield f"{comparison.classifier_title(largest_loser)} loses more than the others {location}"
