"""What it would take to tell a difference: more tasks, more data, or more than anybody has."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.stats.intervals import Interval

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


def needed(interval: Interval, tasks: int, limit: float = 0.0) -> Needed | None:
    """What would tell a number from a limit.

    Args:
        interval: of the number; its `task_variance` falls with the number of tasks, the rest with the data
        tasks: how many there were
        limit: what it is told from

    Returns:
        None if it can be told from the limit, or has no interval.
    """
    from scipy import special

    spread, of_tasks = interval.estimate.spread, interval.task_variance
    if spread is None or of_tasks is None:
        return None
    wide = float(special.stdtrit(spread.freedom, (1 + interval.level) / 2)) ** 2
    enough = (interval.mean - limit) ** 2 / wide
    of_data = max(spread.variance - of_tasks, 0.0)
    if spread.variance <= enough:
        return None
    if of_data < enough and of_tasks / (enough - of_data) <= MOST:
        return Needed(int(tasks * (of_tasks / (enough - of_data) - 1)) + 1, None)
    times = (of_data + of_tasks) / enough if enough else MOST + 1
    return Needed(None, times if times <= MOST else None)
