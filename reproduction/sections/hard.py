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
    """Each derived section by its name."""
    return {
        "hard": hard_table(read_kept("hard-birds")),
        "hard-frozen": frozen_table(),
        "hard-transfer": transfer_table(read_kept("hard-birds-transfer")),
    }


def hard_table(kept: Table) -> str:
    """Random and hardest supports with the same queries, task by task, and how a method differs from class means."""
    hard = next((one.tasks for one in kept.evaluated if one.tasks.startswith("hardest")), "")
    rows = []
    for model in MODELS:
        for method in METHODS:
            above = [_above_class_means(kept, tasks, model, method) for tasks in (RANDOM, hard)]
            rows.append([model, method, *_cells(kept, hard, model, method), *above])
    header = ["network", "method", "Acc, random", "Acc, hardest", "lost"]
    return table([*header, f"above {CLASS_MEANS}, random", f"above {CLASS_MEANS}, hardest"], rows)


def _above_class_means(kept: Table, tasks: str, model: str, method: str) -> str:
    found, means = kept.find(tasks, model, method), kept.find(tasks, model, CLASS_MEANS)
    if found is None or means is None or found is means:
        return ""
    return estimate(Estimate.over_tasks(found.accuracy - means.accuracy))


def frozen_table() -> str:
    """The same of heads on encoders that are not trained here, each on the tasks that are hard for either."""
    kept, rows = read_kept("hard-birds-frozen"), []
    for searched in FROZEN:
        for encoder in FROZEN:
            for head in HEADS:
                hard = f"hardest-on-{searched}-like-random-5way-5shot"
                rows.append([searched, encoder, head, *_cells(kept, hard, encoder, head)])
    return table(["supports are hard for", "encoder", "method", "Acc, random", "Acc, hardest", "lost"], rows)


def transfer_table(kept: Table) -> str:
    """What class means lose on each network, on supports that are hard for it and for others."""
    rows = []
    for searched in SEARCHED:
        # Spelled with the folder that the experiment was run in.
        spelled = re.sub(r"[^A-Za-z0-9.]+", "-", f"/{searched}.model")
        hard = next((one.tasks for one in kept.evaluated if f"{spelled}-" in one.tasks), "")
        lost = [_lost(kept, hard, network, "cosine") for network in NETWORKS]
        rows.append([searched, *(NOT_RUN if one is None else estimate(one) for one in lost)])
    return table(["supports are hard for", *(f"lost by {network}" for network in NETWORKS)], rows)


def _cells(kept: Table, hard: str, model: str, method: str) -> list[str]:
    random, hardest, lost = (
        kept.find(RANDOM, model, method),
        kept.find(hard, model, method),
        _lost(kept, hard, model, method),
    )
    if random is None or hardest is None or lost is None:
        return [NOT_RUN, "", ""]
    return [estimate(random.acc), estimate(hardest.acc), estimate(lost)]


def _lost(kept: Table, hard: str, model: str, method: str) -> Estimate | None:
    random, hardest = kept.find(RANDOM, model, method), kept.find(hard, model, method)
    return None if random is None or hardest is None else Estimate.over_tasks(random.accuracy - hardest.accuracy)
