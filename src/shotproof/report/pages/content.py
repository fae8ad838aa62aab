"""Content of a page: computed elsewhere, only drawn by the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.analysis.explanation.explain import Explanation, MismatchExample
from shotproof.analysis.explored_tasks import ChosenTask
from shotproof.analysis.fooled import Fooled
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.plan_curve import PlanCurve
from shotproof.analysis.projection import Projection
from shotproof.analysis.similarity import Similarity
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.cures.cure import Cure
from shotproof.results.answers import AnsweredTasks
from shotproof.stats.costs import AttributeCosts


@dataclass(frozen=True)
class GalleryTask:
    """Task to show, with the name of its task set and the catalog that has its files.

    unchanged: answers on the same tasks without changes, if items of the task are changed and there are such results
    """

    set_name: str
    chosen: ChosenTask
    catalog: Catalog
    unchanged: AnsweredTasks | None = None


@dataclass(frozen=True)
class SetCosts:
    """Costs of a task set's planted attributes to one classifier, with the name of the set."""

    name: str
    classifier: str
    costs: AttributeCosts


@dataclass(frozen=True)
class ExplainedTasks:
    """Explanation of why a task set is hard, with its name and examples; the catalog, if any, has their files."""

    name: str
    explanation: Explanation
    examples: Sequence[MismatchExample] = ()
    catalog: Catalog | None = None


@dataclass(frozen=True)
class PageContent:
    """Numbers of a page, and the inputs that they were computed from.

    experiment: name of the experiment file, if the page belongs to its run
    """

    title: str
    comparison: Comparison
    inputs: Inputs
    gallery: Sequence[GalleryTask] = ()
    costs: Sequence[SetCosts] = ()
    plans: Sequence[PlanCurve] = ()
    explained: Sequence[ExplainedTasks] = ()
    projections: Sequence[Projection] = ()
    similarity: Similarity | None = None
    fooled: Fooled | None = None
    experiment: str | None = None
    cure: Cure | None = None
