"""What it would take to tell a difference: more tasks, more data, or more than anybody has."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.stats.intervals import Estimate

MOST = 20.0  # times the tasks or the data: beyond this, the difference is taken to be too small to tell


@dataclass(frozen=True)
class Needed:
    """How many more tasks would make a difference conclusive if it is as large as it looks, or how much more data.

    tasks: None where no number of tasks would
    data: times the images per class (or the classes, by the interval), with as many tasks more; None where tasks alone
        would, or where nobody has so much
    """

    tasks: int | None
    data: float | None


def needed(estimate: Estimate, over_tasks: Estimate, tasks: int, level: float) -> Needed | None:
    """What would make an estimate conclusive.

    Args:
        estimate: under the interval in question
        over_tasks: the same under the interval `sampler`, whose variance falls with the number of tasks; the rest of
            the estimate's falls with the data
        tasks: how many there were
        level: of the interval

    Returns:
        None where the estimate is conclusive, or has no interval.
    """
    from scipy import special

    if estimate.spread is None or over_tasks.spread is None:
        return None
    wide = float(special.stdtrit(estimate.spread.freedom, (1 + level) / 2)) ** 2
    enough, of_tasks = estimate.mean**2 / wide, over_tasks.spread.variance
    of_data = max(estimate.spread.variance - of_tasks, 0.0)
    if estimate.spread.variance <= enough:
        return None
    if of_data < enough and of_tasks / (enough - of_data) <= MOST:
        return Needed(int(tasks * (of_tasks / (enough - of_data) - 1)) + 1, None)
    times = (of_data + of_tasks) / enough if enough else MOST + 1
    return Needed(None, times if times <= MOST else None)
