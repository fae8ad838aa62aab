"""Power: how many tasks tell two methods apart, by Student's t on the mean difference over tasks."""

from __future__ import annotations

import math

from scipy import stats

from shotproof.errors import InputError

MOST_TASKS = 10**9


def power(difference: float, variance: float, tasks: int, *, level: float = 0.95, paired: bool = True) -> float:
    """The chance that the interval of a difference lies on its right side of 0, with so many tasks.

    `variance` is that of the paired difference on a task; or, not paired, of each of two methods on tasks of its own.
    """
    samples = 1 if paired else 2
    freedom = samples * (tasks - 1)
    shift = difference * math.sqrt(tasks / (samples * variance))
    return float(stats.nct.sf(stats.t.ppf((1 + level) / 2, freedom), freedom, shift))


def tasks_needed(
    difference: float, variance: float, *, level: float = 0.95, chance: float = 0.8, paired: bool = True
) -> int:
    """The least number of tasks (of each method, where not paired) that tells a difference apart with that `chance`."""
    require_share("level", level)
    require_share("power", chance)
    if not 0 < difference <= 1:
        raise InputError(f"difference: expected more than 0 and at most 100 points, found {100 * difference:g}")
    if not variance > 0:
        raise InputError("the difference never varies: any two tasks say all that there is to say")

    def enough(tasks: int) -> bool:
        return power(difference, variance, tasks, level=level, paired=paired) >= chance

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_TASKS:
            raise InputError(f"telling {100 * difference:g} points apart takes more than {MOST_TASKS:,} tasks")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def require_share(name: str, value: float) -> None:
    """Refuse a level or power that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name}: expected a share between 0 and 1, e.g. 0.95, found {value:g}")
