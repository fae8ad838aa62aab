"""Small robustness cards with numbers of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shotproof.comparison.card import Card, CardAxis, CardBaseline, CardTasks, MissingAxis
from shotproof.core.records import Source
from shotproof.stats.intervals import Estimate, Interval, Spread
from shotproof.stats.ranks import RankRange

LEVEL = 0.95
MANY = 1e9  # degrees of freedom: as good as a known variance


def card_number(mean: float, error: float, task_error: float | None = None) -> Interval:
    """A number with this standard error, of which `task_error` comes of the tasks; all of it unless given."""
    spread = Spread(error**2, 2 * error**4 / MANY)
    of_tasks = Spread((error if task_error is None else task_error) ** 2, 0.0)
    return Estimate(mean, spread).interval("images", LEVEL, Estimate(mean, of_tasks))


def random_axis(shot: int = 5, accuracy: float = 80.0, error: float = 1.0) -> CardAxis:
    """Random tasks, which have no reference."""
    return CardAxis(
        name=f"random-{shot}-shot",
        axis="shots",
        way=5,
        shot=shot,
        query=15,
        tasks=CardTasks("random", f"digest of random {shot}", 600, 0),
        estimates={"accuracy": {"acc": card_number(accuracy, error), "wacc": card_number(accuracy - 20, error)}},
        chance={"acc": 20.0},
        rank={"accuracy": RankRange(1, 2, 3)},
        verdict="On random tasks.",
        baselines=(CardBaseline("pixels", "ncc", {"acc": 40.0, "wacc": 10.0}),),
    )


def stress_axis(name: str = "fewstab", lost: float = 10.0, error: float = 1.0) -> CardAxis:
    """An axis on which this share of the skill is lost, in percent; 60 points of skill are there."""
    gap, share = card_number(0.6 * lost, 0.6 * error), card_number(lost, error)
    own = random_axis(accuracy=80.0 - 0.6 * lost, error=error)
    return replace(
        own,
        name=name,
        axis={"fewstab": "attributes", "hardest": "difficulty", "hard-ood": "contexts"}[name],
        tasks=CardTasks(name, f"digest of {name}", 600, 0),
        reference=CardTasks("random", "digest of random 5", 600, 0),
        estimates={
            **own.estimates,
            "reference_accuracy": random_axis().estimates["accuracy"],
            "gap": {"acc": gap, "wacc": gap},
            "placebo": dict.fromkeys(("acc", "wacc"), card_number(0.0, 0.1)),
            "excess": {"acc": gap, "wacc": gap},
            "skill_lost": {"acc": share, "wacc": share},
        },
        rank={"accuracy": RankRange(1, 2, 3), "skill_lost": RankRange(2, 2, 3)},
        conclusion="+" if lost > 2 * error else "0",
        is_shuffled=name != "hardest",
        at_most=lost + 3 * error,
        baselines=(CardBaseline("pixels", "ncc", {"acc": 30.0, "wacc": 5.0}, {"acc": 50.0}),),
        verdict=f"On {name} tasks.",
    )


def with_estimates(axis: CardAxis, **numbers: Mapping[str, Interval]) -> CardAxis:
    """The axis with other numbers, by quantity and metric; without quantities whose numbers are none."""
    changed = {quantity: {**axis.estimates.get(quantity, {}), **of} if of else {} for quantity, of in numbers.items()}
    return replace(axis, estimates={quantity: of for quantity, of in {**axis.estimates, **changed}.items() if of})


def make_card(*axes: CardAxis) -> Card:
    """A card of these axes, by default of random and of FewSTAB's tasks."""
    return Card(
        name="birds",
        sources={"catalog": Source("digest of the catalog", "birds")},
        encoder="lite0",
        method="cosine",
        medium="image",
        axes=axes or (random_axis(), stress_axis()),
        missing=(MissingAxis("contexts", "no column looks like contexts"),),
        verdict=("cosine on lite0 was tested.",),
    )
