"""Every head on vectors: 1,000 tasks, 5-way with 15 queries per class, 1- and 5-shot, 640 and 1,280 dimensions.

Timed from the task set to the results, all included, and compared with a loop over tasks: plain torch for transductive
heads (`plain_heads.py`), the package's own method on batches of one for the others. Both are the best of several times.

    python -m benchmarks.heads --device cuda --json heads.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from benchmarks.evaluation import QUERY, WAY, draw, items_of
from benchmarks.plain_heads import PLAIN
from shotproof.core.runtime.devices import one_thread_per_operation
from shotproof.core.runtime.runtime import runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import make_method, methods
from shotproof.tasks.taskset import TaskSet

ENOUGH = 2.0  # seconds that a timing takes at least
PATIENCE = 10.0  # seconds at most: a slower head is timed on fewer tasks


@dataclass(frozen=True)
class Timing:
    """Milliseconds per task of one head in one setting, and the share of classes with as many right answers."""

    head: str
    shot: int
    dimensions: int
    tasks: int
    ms: float
    loop_ms: float
    same: float

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the loop it is."""
        return self.loop_ms / self.ms


def run(arguments: Sequence[str] = ()) -> None:
    """Print a line for each head and setting."""
    options = parser().parse_args(arguments)
    print(f"5-way {QUERY}-query, {options.device}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{'head':<24}{'shot':>5}{'dims':>6}{'tasks':>7}{'per task':>12}{'loop':>12}{'ratio':>8}{'same':>8}")
    timings = []
    for dimensions in options.dimensions:
        for shot in options.shots:
            tasks, features = draw(options.tasks, shot, dimensions)
            for head in options.heads:
                timing = time_head(head, tasks, features, shot, options.device)
                timings.append(timing)
                print(
                    f"{head:<24}{shot:>5}{dimensions:>6}{timing.tasks:>7}{timing.ms:>9.3f} ms{timing.loop_ms:>9.2f} ms"
                    f"{timing.ratio:>7.1f}x{timing.same:>8.1%}",
                    flush=True,
                )
    if options.json:
        rows = [asdict(timing) | {"ratio": timing.ratio, "device": options.device} for timing in timings]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    on_vectors = [name for name in methods.names() if methods.get(name).needs == "vectors"]
    options = argparse.ArgumentParser(description="Compare the time of every head with a task-by-task loop.")
    options.add_argument("--device", default="cpu")
    options.add_argument("--tasks", type=int, default=1000)
    options.add_argument("--shots", type=int, nargs="+", default=[1, 5])
    options.add_argument("--dimensions", type=int, nargs="+", default=[640, 1280])
    options.add_argument("--heads", nargs="+", default=on_vectors)
    options.add_argument("--json", type=Path)
    return options


def time_head(head: str, tasks: TaskSet, features: Features, shot: int, device: str) -> Timing:
    """Time the batched head and its loop on the same tasks."""
    few, here = min(len(tasks), 32), runtime(device=device)
    evaluate(first(tasks, few), features, [head], runtime=here)  # warms up
    start = time.perf_counter()
    evaluate(first(tasks, few), features, [head], runtime=here)
    count = min(len(tasks), max(few, int(PATIENCE * few / (time.perf_counter() - start))))
    best, spent = float("inf"), 0.0
    while spent < ENOUGH:
        chosen = first(tasks, count)
        start = time.perf_counter()
        results = evaluate(chosen, Features(features.table), [head], runtime=here)
        seconds = time.perf_counter() - start
        best, spent = min(best, seconds), spent + seconds
    loop_seconds, correct = loop(head, tasks, features, shot, device)
    counted = results.counts(make_method(head).spelling).n_correct
    same = np.mean(counted[: len(correct)] == correct[: len(counted)])
    return Timing(head, shot, features.array.shape[1], count, 1e3 * best / count, 1e3 * loop_seconds, float(same))


def first(tasks: TaskSet, count: int) -> TaskSet:
    """Return the first tasks as a new object, so that digests are computed again."""
    return TaskSet(tasks.table.slice(0, count * WAY))


def loop(head: str, tasks: TaskSet, features: Features, shot: int, device: str) -> tuple[float, np.ndarray]:
    """Measure a loop over the first tasks: its best seconds per task, and the right answers of each class."""
    values = torch.tensor(features.array, device=device)
    rows = {
        name: torch.from_numpy(features.rows_of(pa.array(items_of(first(tasks, 32), name)))).view(-1, WAY * each)
        for name, each in (("support", shot), ("query", QUERY))
    }
    labels, truth = (torch.arange(WAY, device=device).repeat_interleave(each) for each in (shot, QUERY))

    def answer(task: int) -> Tensor:
        support, query = (values[rows[name][task].to(device)] for name in ("support", "query"))
        if head in PLAIN:
            return PLAIN[head](support, labels, query, WAY)
        return make_method(head).scores(support[None], labels[None], query[None], WAY)[0]

    correct: list[Tensor] = []

    def rounds(tasks: int) -> float:
        """Measure the seconds of the tasks, one after another."""
        start = time.perf_counter()
        correct[:] = [(answer(task).argmax(1) == truth).view(WAY, QUERY).sum(1).cpu() for task in range(tasks)]
        return time.perf_counter() - start

    rounds(2)  # warms up
    count = min(len(rows["support"]), max(2, int(ENOUGH / 4 / rounds(2) * 2)))
    best, spent = float("inf"), 0.0
    while spent < ENOUGH:
        # Small operations may be faster in one thread than in all.
        with one_thread_per_operation():
            alone = rounds(count)
        together = rounds(count)
        best, spent = min(best, alone, together), spent + alone + together
    return best / count, torch.cat(correct).numpy()


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
