"""What is changed in the items of a task set, as the record of the task set states it.

The background is judged by a swap: items on the background of another class, or of any item, against the same tasks
with items on the background of another item of their class. Both are cut and pasted alike, so that traces cancel out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from shotproof.changes.change import Change, changes
from shotproof.core.errors import InputError
from shotproof.core.spelling import parse_call, write_call
from shotproof.results.origin import Origin
from shotproof.tasks.sampler import samplers

CHANGED: Final = "changed"  # the sampler of task sets whose items are changed
SWAPS: Final = ("mixed-rival", "mixed-random")  # the first is preferred: it shows the background of a wrong answer
PASTED: Final = "mixed-same"
BACKGROUND_ALONE: Final = "only-background"
_NOT_COMPARED: Final = ("seed", "plate")  # options of backgrounds that may differ between a swap and its reference
_PLACES: Final = {"query": "", "both": "on both sides", "support": "in the supports"}


@dataclass(frozen=True)
class AppliedChange:
    """What is changed in the items of a task set, and in which of them.

    change: its spelling, e.g. `blur(severity=5)`
    side: `query`, `support`, or `both`
    """

    change: str
    side: str = "query"

    @classmethod
    def of(cls, origin: Origin) -> AppliedChange | None:
        """Read the change from the options of the sampler; None if nothing is changed."""
        if origin.sampler != CHANGED:
            return None
        options = {option.name: option.default for option in samplers.get(CHANGED).options()}
        try:
            options |= parse_call(origin.spelling)[1]
        except InputError:  # a spelling from another program's file
            return None
        return cls(str(options["change"]), str(options["side"]))

    @property
    def name(self) -> str:
        """Return the name of the change, without its options."""
        return self._call[0]

    @property
    def severity(self) -> int | None:
        """Return the severity; None if the change has none, or is unknown here.

        Example:
            >>> AppliedChange("blur(severity=5)").severity, AppliedChange("blur").severity
            (5, 3)
        """
        try:
            change = changes.make(self.change)
        except InputError:  # of another version
            return None
        severity: int | None = getattr(change, "severity", None)
        return severity

    @property
    def without_severity(self) -> str:
        """Return the spelling without the severity, which tables show beside it."""
        name, options = self._call
        return write_call(name, {key: value for key, value in options.items() if key != "severity"})

    @property
    def place(self) -> str:
        """Say where items are changed, e.g. `on both sides`; empty for the queries alone."""
        return _PLACES.get(self.side, f"in the {self.side}")

    @property
    def is_background_alone(self) -> bool:
        """Return whether items are shown without their foreground: accuracy there comes from the background."""
        return self.name == BACKGROUND_ALONE

    def swaps_background(self, reference: AppliedChange | None) -> bool:
        """Return whether only the origin of the background differs from the reference, so a loss is reliance on it."""
        if reference is None or self.name not in SWAPS or reference.name != PASTED:
            return False
        return self.side == reference.side and self._shared_options == reference._shared_options

    @property
    def _shared_options(self) -> dict[str, Any]:
        """Return the options that a swap of backgrounds must share with its reference, such as `margin_db`."""
        try:
            return _compared_options(changes.make(self.change))
        except InputError:  # of another version
            return {key: value for key, value in self._call[1].items() if key not in _NOT_COMPARED}

    @property
    def _call(self) -> tuple[str, dict[str, Any]]:
        try:
            return parse_call(self.change)
        except InputError:  # of another version
            return self.change, {}


def pasted_reference(swap: Change) -> Change:
    """Return the change that a swap of backgrounds is compared with: `mixed-same` with the same options.

    Example:
        >>> pasted_reference(changes.make("mixed-rival(margin_db=3, seed=1)")).spelling
        'mixed-same(margin_db=3)'
    """
    return changes.make(PASTED, **_compared_options(swap))


def _compared_options(change: Change) -> dict[str, Any]:
    """Return the options of a change except those that may differ between a swap and its reference."""
    names = [option.name for option in change.options() if option.name not in _NOT_COMPARED]
    return {name: getattr(change, name) for name in names}
