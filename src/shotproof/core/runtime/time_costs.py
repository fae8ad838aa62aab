"""What long work will cost, told as soon as a part of it has been timed."""

from __future__ import annotations

import time
from collections.abc import Callable

from shotproof.core.runtime.progress import Advance

TRIAL_SECONDS = 5.0  # of work that are timed
WORTH_TELLING = 30.0  # seconds of work left from which on it is told

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def duration(seconds: float) -> str:
    """Say about how long something takes.

    Example:
        >>> duration(34), duration(2_380), duration(5_000), duration(200_000)
        ('30 seconds', '40 minutes', '83 minutes', '56 hours')
    """
    for name, length in _UNITS:
        if seconds >= 1.5 * length and (name != "day" or seconds >= 3 * length):
            return f"{seconds / length:.0f} {name}s"
    return f"{max(10, 10 * round(seconds / 10))} seconds"


def cost_note(what: str, seconds: float, device: str, amount: str) -> str:
    """Say what work will cost.

    Args:
        what: the work
        seconds: how long it takes
        device: the type of the device, as PyTorch names it
        amount: how much of it there is, e.g. `30 epochs`

    Example:
        >>> cost_note("training protonet", 2_400, "cpu", "30 epochs")
        'training protonet: about 40 minutes on this CPU for 30 epochs'
    """
    place = {"cpu": "CPU", "cuda": "GPU"}.get(device, "device")
    return f"{what}: about {duration(seconds)} on this {place} for {amount}"


def timed(
    advance: Advance, steps: float, tell: Callable[[float], None], clock: Callable[[], float] = time.monotonic
) -> Advance:
    """Give a function that advances a bar and, once some seconds are timed, tells how long all steps will take.

    Args:
        advance: what advances the bar
        steps: how many there are in all, those between which nothing advances the bar counted too
        tell: is called once at most, with seconds, if much is left
        clock: gives the time in seconds
    """
    began, done, told = clock(), 0, False

    def step(count: int) -> None:
        nonlocal done, told
        advance(count)
        done += count
        spent = clock() - began
        if told or spent < TRIAL_SECONDS:
            return
        told = True
        whole = spent / done * steps
        if whole - spent >= WORTH_TELLING:
            tell(whole)

    return step
