"""Hard-Meta-Dataset++ on birds: what adaptation recovers of what class means lose on hard supports."""

from __future__ import annotations

from reproduction.kept import read_kept
from reproduction.markdown import NOT_RUN, estimate, table
from shotproof.stats.intervals import Estimate

MODELS = ("rfs", "protonet-5")
METHODS = ("ncc", "cosine", "finetune", "tsa", "transductive-finetune-network")


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    return {"hard": hard_table()}


def hard_table() -> str:
    """Random and hardest supports with the same queries, task by task."""
    kept, rows = read_kept("hard-birds"), []
    hard = next((one.tasks for one in kept.evaluated if one.tasks.startswith("hardest")), "")
    for model in MODELS:
        for method in METHODS:
            random, hardest = (kept.find(tasks, model, method) for tasks in ("random-5way-5shot", hard))
            if random is None or hardest is None:
                rows.append([model, method, NOT_RUN, "", ""])
                continue
            lost = Estimate.over_tasks(random.accuracy - hardest.accuracy)
            rows.append([model, method, estimate(random.acc), estimate(hardest.acc), estimate(lost)])
    return table(["network", "method", "Acc, random", "Acc, hardest", "lost"], rows)
