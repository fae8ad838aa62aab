"""Hard-Meta-Dataset++ on birds: what adaptation recovers on hard supports, and whether these are hard for others."""

from __future__ import annotations

import re

from reproduction.kept import Table, read_kept
from reproduction.markdown import NOT_RUN, estimate, table
from shotproof.stats.intervals import Estimate

RANDOM = "random-5way-5shot"
MODELS = ("rfs", "protonet-5")
CLASS_MEANS = "ncc"
METHODS = (CLASS_MEANS, "cosine", "finetune", "tsa", "transductive-finetune-network")
FROZEN = ("lite0", "pixels")
HEADS = ("ncc", "cosine", "logistic", "linear", "transductive-finetune", "pt-map")
NETWORKS = ("rfs", "baseline++", "protonet-5", "r2d2-5", "dn4-5")
SEARCHED = NETWORKS[:3]


def sections() -> dict[str, str]:
    """Build each derived section, by name."""
    return {
        "hard": hard_table(read_kept("hard-birds")),
        "hard-frozen": frozen_table(),
        "hard-transfer": transfer_table(read_kept("hard-birds-transfer")),
    }


def hard_table(results: Table) -> str:
    """Compare random and hardest supports with the same queries, and each method with class means, task by task."""
    hard = next((result.tasks for result in results.evaluated if result.tasks.startswith("hardest")), "")
    rows = []
    for model in MODELS:
        for method in METHODS:
            above = [_above_class_means(results, tasks, model, method) for tasks in (RANDOM, hard)]
            rows.append([model, method, *_cells(results, hard, model, method), *above])
    header = ["network", "method", "Acc, random", "Acc, hardest", "lost"]
    return table([*header, f"above {CLASS_MEANS}, random", f"above {CLASS_MEANS}, hardest"], rows)


def _above_class_means(results: Table, tasks: str, model: str, method: str) -> str:
    result, means = results.find(tasks, model, method), results.find(tasks, model, CLASS_MEANS)
    if result is None or means is None or result is means:
        return ""
    return estimate(Estimate.over_tasks(result.accuracy - means.accuracy))


def frozen_table() -> str:
    """Compare heads on encoders that are not trained here, each on the tasks that are hard for either encoder."""
    results, rows = read_kept("hard-birds-frozen"), []
    for searched in FROZEN:
        for encoder in FROZEN:
            for head in HEADS:
                hard = f"hardest-on-{searched}-like-random-5way-5shot"
                rows.append([searched, encoder, head, *_cells(results, hard, encoder, head)])
    return table(["supports are hard for", "encoder", "method", "Acc, random", "Acc, hardest", "lost"], rows)


def transfer_table(results: Table) -> str:
    """Write what class means lose on each network, on supports that are hard for it and for others."""
    rows = []
    for searched in SEARCHED:
        # Spelled with the folder that the experiment was run in.
        spelling = re.sub(r"[^A-Za-z0-9.]+", "-", f"/{searched}.model")
        hard = next((result.tasks for result in results.evaluated if f"{spelling}-" in result.tasks), "")
        lost = [_lost(results, hard, network, "cosine") for network in NETWORKS]
        rows.append([searched, *(NOT_RUN if result is None else estimate(result) for result in lost)])
    return table(["supports are hard for", *(f"lost by {network}" for network in NETWORKS)], rows)


def _cells(results: Table, hard: str, model: str, method: str) -> list[str]:
    random, hardest, lost = (
        results.find(RANDOM, model, method),
        results.find(hard, model, method),
        _lost(results, hard, model, method),
    )
    if random is None or hardest is None or lost is None:
        return [NOT_RUN, "", ""]
    return [estimate(random.acc), estimate(hardest.acc), estimate(lost)]


def _lost(results: Table, hard: str, model: str, method: str) -> Estimate | None:
    random, hardest = results.find(RANDOM, model, method), results.find(hard, model, method)
    return None if random is None or hardest is None else Estimate.over_tasks(random.accuracy - hardest.accuracy)
