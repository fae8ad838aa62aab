"""Planning of the numbers of tasks and queries of an experiment, before or after the first results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.planning.pilot import Pilot as Pilot
    from shotproof.planning.statistical_power import tasks_needed as tasks_needed
    from shotproof.planning.task_plan import ScoreMoments as ScoreMoments
    from shotproof.planning.task_plan import estimate_moments as estimate_moments
    from shotproof.planning.task_plan import plan as plan

HOMES = {
    "Pilot": "planning.pilot",
    "ScoreMoments": "planning.task_plan",
    "estimate_moments": "planning.task_plan",
    "plan": "planning.task_plan",
    "tasks_needed": "planning.statistical_power",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
