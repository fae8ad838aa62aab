"""Statistical power: the number of tasks that detects a difference between two methods, by Student's t over tasks."""

from __future__ import annotations

import math

from shotproof.core.errors import InputError
from shotproof.stats.intervals import check_level

MOST_TASKS = 10**9


def statistical_power(
    difference: float, variance: float, tasks: int, *, level: float = 0.95, paired: bool = True
) -> float:
    """Compute the probability that the interval of a difference lies on the correct side of 0.

    Args:
        difference: true difference between the mean accuracies, in points
        variance: variance of the paired difference on a task, in squared points; if not paired, the variance of each
            method's accuracy on a task
        tasks: number of tasks; of each method if not paired
        level: confidence level of the interval
        paired: whether both methods are evaluated on the same tasks

    Returns:
        The power, from 0 to 1.

    Example:
        >>> round(statistical_power(2.0, 100.0, 200), 2)
        0.8
    """
    from scipy import special, stats

    samples = 1 if paired else 2
    freedom = samples * (tasks - 1)
    shift = difference * math.sqrt(tasks / (samples * variance))
    return float(stats.nct.sf(special.stdtrit(freedom, (1 + level) / 2), freedom, shift))


def tasks_needed(
    difference: float, variance: float, *, level: float = 0.95, power: float = 0.8, paired: bool = True
) -> int:
    """Compute the smallest number of tasks (of each method if not paired) that detects a difference with this power.

    Args:
        difference: true difference between the mean accuracies, in points
        variance: variance of the paired difference on a task, in squared points; if not paired, the variance of each
            method's accuracy on a task
        level: confidence level of the interval
        power: probability of detecting the difference
        paired: whether both methods are evaluated on the same tasks

    Returns:
        The number of tasks, at least 2.

    Raises:
        InputError: a value that cannot be used, or more than a billion tasks.

    Example:
        >>> tasks_needed(2.0, 100.0)
        199
    """
    check_level(level)
    check_power(power)
    if not 0 < difference <= 100:
        raise InputError(f"difference: expected more than 0 and at most 100 points, found {difference:g}")
    if not variance > 0:
        raise InputError("the difference does not vary between tasks, so two tasks are enough")

    def is_enough(tasks: int) -> bool:
        return statistical_power(difference, variance, tasks, level=level, paired=paired) >= power

    high = 2
    while not is_enough(high):
        high *= 2
        if high > MOST_TASKS:
            raise InputError(f"detecting a difference of {difference:g} points takes more than {MOST_TASKS:,} tasks")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def check_power(power: float) -> None:
    """Reject a power that is not strictly between 0 and 1."""
    if not 0 < power < 1:
        raise InputError(f"power: expected a share above 0 and below 1, e.g. 0.8, found {power:g}")
