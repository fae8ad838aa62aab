"""How often would a page claim something if the words, or contexts, of one's own data meant nothing?

The items, their features and the tasks stay as they are; words are shuffled between the items of each class, anew for
each page, and the pages are read as that of the data itself is. They are by the `sampler` interval, widened to what
shuffled words make: no other is narrower, so a page by another would not claim more. It needs no halves of the data, so
it is quick.
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
from shotproof.stats.intervals import Covers

RISK = 0.05  # the share of pages that may claim something
_COVERS: tuple[Covers, ...] = ("sampler",)
_PAGES = 2  # what random numbers are drawn for; halves and shuffles have others
_RARE = 0.01  # so many claims, or more, would be by chance


@dataclass(frozen=True)
class NullCheck:
    """Pages of the data with shuffled words.

    pages: how many were made
    claims: of each page that claims something, its conclusive sentences
    """

    pages: int
    claims: tuple[tuple[str, ...], ...]

    @property
    def is_sound(self) -> bool:
        """Return whether so many claims are to be expected by chance if one page in twenty may claim something."""
        from scipy import stats

        return bool(stats.binom.sf(len(self.claims) - 1, self.pages, RISK) >= _RARE)


def check_null(
    inputs: Inputs, pages: int = 20, *, metric: str = "acc", seed: int = 0, runtime: Runtime | None = None
) -> NullCheck:
    """Shuffle the words, or contexts, of the items within classes, and read what a page would claim.

    Args:
        inputs: a run's folder, read by `shotproof.read`: results, task sets, catalog, features and attributes
        pages: how many shuffles
        metric: what statements are by, `acc` or `wacc`
        seed: of the shuffles
        runtime: how it is computed

    Returns:
        The claims, all of which are wrong; about one page in twenty may have one.

    Raises:
        InputError: no task set is decided by words or contexts, or what a re-evaluation needs is not there.

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
        missing = missing_inputs(sets, inputs)
        if missing:
            raise InputError(f"words cannot be shuffled: {missing}")
        shuffled = _shuffled(sets, inputs, pages, seed)
        if not shuffled:
            raise InputError(
                "no words to shuffle: expected tasks that attributes or contexts decide, such as fewstab or hard-ood"
            )
        reevaluated = reevaluate(sets, _COVERS, inputs)
    claims = []
    for page in range(pages):
        comparison = compare_sets(
            [_on_page(one, shuffled, page) for one in sets],
            _COVERS,
            metric=check_metric(metric),
            reevaluated=reevaluated,
        )
        claimed = tuple(claim for verdict in verdicts(comparison) for claim in _claims(comparison, verdict))
        if claimed:
            claims.append(claimed)
    return NullCheck(pages, tuple(claims))


def _shuffled(sets: Sequence[Evaluated], inputs: Inputs, pages: int, seed: int) -> dict[Hashable, FloatArray]:
    """Evaluate all task sets that have placebos with shuffled words: [pages, tasks], as `ShuffledTasks.by_task`."""
    values: dict[Hashable, FloatArray] = {}
    of_pages = int(draws.bits(seed, _PAGES) >> np.uint64(1))  # other shuffles than those that intervals are from
    for of_design in by_design(sets).values():
        labels = {one.label: one.origin for one in of_design}
        for one in of_design:
            if one.origin.placebo(labels):
                tasks = inputs.task_set(one.origin.tasks_digest, one.origin.design.catalog)
                catalog = inputs.catalog(one.origin.design.catalog)
                # Sets that are matched share the shuffles, by the seed.
                values |= evaluate_shuffled(
                    [tasks],
                    catalog,
                    classifiers_of([one], inputs),
                    shuffles=pages,
                    tasks=len(tasks),
                    seed=of_pages,
                ).by_task
    return values


def _on_page(one: Evaluated, shuffled: Mapping[Hashable, FloatArray], page: int) -> Evaluated:
    """Put the values with shuffled words in place of a task set's own; a set without words keeps them."""
    digest = one.origin.tasks_digest
    values = {
        classifier: {
            metric: own[metric] if (mean := (digest, classifier, metric)) not in shuffled else shuffled[mean][page]
            for metric in METRICS
        }
        for classifier, own in one.values.items()
    }
    return replace(one, values=values)


def _claims(comparison: Comparison, verdict: Verdict) -> Iterator[str]:
    """Say what is conclusive of a task set that words or contexts decide."""
    if not verdict.loss.is_shuffled:
        return
    where = f"on {verdict.loss.label} tasks ({comparison.design_name(verdict.block.design)})"
    for some, does in ((verdict.losing, "loses"), (verdict.gaining, "does better")):
        for classifier in some:
            yield f"{comparison.classifier_title(classifier)} {does} {where}"
    more = verdict.most[0] if verdict.most else verdict.more
    if more is not None:
        yield f"{comparison.classifier_title(more)} loses more than others {where}"
