"""Is the instrument right? What FewSTAB reads off encoders that lean on the context to a known share.

Each line is a mean over dial seeds, each of which draws the codes and the noise of all items anew; the interval is
Student's t over these seeds.
"""

from __future__ import annotations

from shotproof.tasks.sampler import sample
from shotproof.worlds.calibration import calibrate
from shotproof.worlds.shapes import ShapesWorld

TASKS, SEEDS = 600, 12


def run() -> None:
    """Print wAcc-R, wAcc-A and the gap by share, for 1 and 5 shots."""
    world = ShapesWorld()
    catalog, attributes = world.catalog(), world.attributes()
    print(f"{world.classes} classes x {world.items} items, {TASKS} tasks, {SEEDS} dial seeds; in percent")
    for shot in (1, 5):
        random = sample(catalog, "random", shot=shot, tasks=TASKS)
        biased = sample(catalog, "fewstab", attributes=attributes, shot=shot, tasks=TASKS)
        print(f"\n{f'5-way {shot}-shot':<14}{'share':>6}{'wAcc-R':>9}{'wAcc-A':>9}{'gap':>8}   95% interval")
        for reading in calibrate(catalog, random, biased, seeds=SEEDS):
            gap = reading.gap()
            figures = [reading.random.mean(), reading.biased.mean(), gap.mean, gap.low, gap.high]
            line = "{:>9.1f}{:>9.1f}{:>8.2f}   {:.2f} to {:.2f}".format(*(100 * figure for figure in figures))
            print(f"{reading.method:<14}{reading.share:>6.1f}{line}")
