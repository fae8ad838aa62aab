"""What adaptations from a learned start share: the model's own inner loop, with other steps or another rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from shotproof.core.errors import Mismatch
from shotproof.core.options import option
from shotproof.methods.adaptation.adaptation import Adaptation
from shotproof.models.model import Model
from shotproof.models.objective import Objective


@dataclass(frozen=True)
class LearnedStart(Adaptation):
    """Gradient steps from the weights that an objective of the same name has learned to start from.

    objective: whose models it takes
    steps_option: what the objective calls its steps at test time
    """

    objective: ClassVar[str]
    steps_option: ClassVar[str] = "test_steps"
    rates = (0.01, 0.03, 0.1, 0.3)

    steps: int | None = option(None, "gradient steps on the support; None: as the model was trained for", least=0)
    rate: float | None = option(None, "learning rate; None: as the model was trained with", above=0)

    def require_model(self, model: Model) -> None:
        """Refuse models of other objectives."""
        if model.objective.name != self.objective:
            raise Mismatch(
                f"method '{self.spelling}' starts from what objective '{self.objective}' learns, the model is of "
                f"'{model.objective}'"
            )

    def changed(self, model: Model, **options: Any) -> Objective[Any]:
        """The model's objective with the steps and the rate that are asked for."""
        given = {self.steps_option: self.steps, "rate": self.rate, **options}
        objective: Any = model.objective
        changed: Objective[Any] = replace(
            objective, **{key: value for key, value in given.items() if value is not None}
        )
        return changed
