"""On which validation tasks the learning rates of adaptations are chosen: `tune_on` of [evaluate]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.core import limits
from shotproof.core.errors import InputError, did_you_mean
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.pipeline.table_reader import TableReader

SECTION = "evaluate.tune_on"
KEYS = ("split", "tasks", "rates")
TASKS = 20


@dataclass(frozen=True)
class TuneOn:
    """Random tasks of a split, of the same shape as the tasks that are evaluated.

    tasks: how many for each shape
    rates: the learning rates to choose from; none: each method's own
    """

    split: str
    tasks: int = TASKS
    rates: tuple[float, ...] = ()


def read_tune_on(read: TableReader, methods: Sequence[Method]) -> TuneOn | None:
    """What the experiment's tables say of it.

    Args:
        read: the experiment's tables
        methods: its methods

    Returns:
        None where nothing is tuned.

    Raises:
        InputError: it cannot be; the message says where.
    """
    table = read.value("evaluate", "tune_on", dict, None)
    if table is None:
        return None
    adaptations = [method for method in methods if isinstance(method, Adaptation)]
    if not adaptations:
        raise InputError(", [evaluate], tune_on: no method adapts a network: there is no learning rate to choose")
    for key in table:
        if key not in KEYS:
            raise InputError(f", [{SECTION}]: unknown key '{key}'{did_you_mean(key, KEYS)}")
    own = TableReader({SECTION: table}, read.folder)
    split = own.value(SECTION, "split", str, None)
    if split is None:
        raise InputError(f', [{SECTION}]: expected the split of the validation tasks, e.g. split = "val"')
    rates = [float(rate) for rate in own.items(SECTION, "rates", (float, int), [])]
    own.refuse_repeated(SECTION, "rates", rates)
    _check_rates(adaptations, rates)
    return TuneOn(split, own.number(SECTION, "tasks", TASKS, limits.TASKS), tuple(rates))


def _check_rates(adaptations: Sequence[Adaptation], rates: Sequence[float]) -> None:
    """Refuse rates that a method cannot have, and methods that would be the same with the rate that is chosen."""
    first_of: dict[str, Adaptation] = {}
    for method in adaptations:
        try:
            tried = [method.with_rate(rate) for rate in rates or method.rates]
        except InputError as error:
            raise error.placed(f", [{SECTION}], rates: ") from error
        first = first_of.setdefault(tried[0].with_rate(1.0).spelling, method)
        if first is not method:
            raise InputError(
                f", [evaluate], methods: '{first}' and '{method}' differ in the learning rate alone, which tune_on "
                "chooses: name one of them"
            )
