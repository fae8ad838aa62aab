"""All that a page shows, computed: the page only draws it."""

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
from shotproof.stats.costs import AttributeCosts


@dataclass(frozen=True)
class GalleryTask:
    """A task to show, under the name of its task set, with the catalog that has its files."""

    set_name: str
    chosen: ChosenTask
    catalog: Catalog


@dataclass(frozen=True)
class SetCosts:
    """What the planted attributes of a task set cost the classifier in focus there, under the set's name."""

    name: str
    classifier: str
    costs: AttributeCosts


@dataclass(frozen=True)
class ExplainedTasks:
    """Why a task set is hard, under its name, with examples; the catalog has their files, if it is there."""

    name: str
    explanation: Explanation
    examples: Sequence[MismatchExample] = ()
    catalog: Catalog | None = None


@dataclass(frozen=True)
class PageContent:
    """The numbers of a page, and the inputs that they are from.

    experiment: the name of the experiment's file, where the page is of its run
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
