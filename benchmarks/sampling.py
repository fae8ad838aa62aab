"""Speed of context tasks, and of FewSTAB tasks against a plain baseline that goes item by item and word by word."""

from __future__ import annotations

import random
import time

from benchmarks.fixture import birds, caption_like
from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import detect
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.tasks.sampler import sample
from shotproof.worlds.context_world import CLEAN, ContextWorld

TASKS = 3000
WAY, QUERY = 5, 15


def plain_tasks(catalog: Catalog, attributes: Attributes, shot: int, tasks: int) -> float:
    """Measure milliseconds per task of a simple sampler: sets of words, all shares counted anew for every class."""
    words = {item: set(words_held or []) for item, words_held in attributes.to_words().items()}
    classes: dict[str, list[str]] = {}
    for item, label in zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True):
        classes.setdefault(label, []).append(item)
    vocabulary = sorted(set().union(*words.values()))
    rng = random.Random(0)
    start = time.perf_counter()
    done = 0
    while done < tasks:
        chosen = rng.sample(sorted(classes), WAY)
        planted = []
        for label in chosen:
            words_held = {word: sum(word in words[item] for item in classes[label]) for word in vocabulary}
            eligible = [w for w, n in words_held.items() if n >= shot and len(classes[label]) - n >= QUERY]
            planted.append(rng.choice(eligible) if eligible else None)
        if None in planted or len(set(planted)) < WAY:
            continue
        for label, word in zip(chosen, planted, strict=True):
            others = set(planted) - {word}
            support = [i for i in classes[label] if word in words[i] and not words[i] & others]
            if len(support) < shot:
                break
            lacking = [item for item in classes[label] if word not in words[item]]
            inter = [item for item in lacking if words[item] & others]
            candidates = inter if len(inter) >= QUERY else lacking
            share = {
                w: sum(w in words[i] for i in candidates) / len(candidates) for w in vocabulary if w not in planted
            }
            sorted(candidates, key=lambda i: sum(share[w] for w in words[i] if w in share))[:QUERY]
        else:
            done += 1
    return (time.perf_counter() - start) / tasks * 1e3


def fast_tasks(catalog: Catalog, attributes: Attributes, shot: int, split: str) -> tuple[float, float]:
    """Measure milliseconds per task of our sampler, everything included, and tries per task."""
    start = time.perf_counter()
    tasks = sample(catalog, "fewstab", attributes=attributes, split=split, way=WAY, shot=shot, query=QUERY, tasks=TASKS)
    return (time.perf_counter() - start) / TASKS * 1e3, tasks.record.summary["tries_mean"]


def report(name: str, catalog: Catalog, attributes: Attributes, shot: int, split: str, baseline_tasks: int) -> None:
    """Print the times of both samplers in one line."""
    ours, tries = fast_tasks(catalog, attributes, shot, split)
    plain = plain_tasks(catalog.in_split(split), attributes, shot, baseline_tasks)
    print(
        f"{name}, {shot} shot: {ours:.3f} ms per task ({TASKS} tasks in {ours * TASKS / 1e3:.2f} s, "
        f"{tries:.1f} tries per task), plain {plain:.0f} ms, ratio {plain / ours:.0f}",
        flush=True,
    )


def run() -> None:
    """Measure the caption-like fixture at 1 and 5 shots, and the birds' test split at 5."""
    catalog, attributes = caption_like()
    for shot in (1, 5):
        report("20 x 600 items, 1,111 words", catalog, attributes, shot, "test", baseline_tasks=3)
    start = time.perf_counter()
    sample(catalog, "random", way=WAY, shot=5, query=QUERY, tasks=TASKS)
    print(f"random tasks: {(time.perf_counter() - start) / TASKS * 1e3:.3f} ms per task")
    mixed = ContextWorld(concepts=50, contexts=8, figures=40).catalog()
    for name in ("iid", "ood", "hard-ood", "clean"):
        start = time.perf_counter()
        sample(mixed, {"name": name, "clean_value": CLEAN}, way=WAY, shot=5, query=QUERY, tasks=TASKS)
        spent = (time.perf_counter() - start) / TASKS * 1e3
        print(f"{name} tasks, 50 x 40 sources in 9 contexts: {spent:.3f} ms per task")
    root = birds()
    if root is None:
        print("skipped: the birds are missing (set SHOTPROOF_DATA to the folder that holds CUB_200_2011)")
        return
    catalog = read_layout(root, "cub", splits=root.parent / "cub-130-20-50.csv").in_split("test")
    report("birds, test split", catalog, detect(catalog, "photometric", "table"), 5, "test", baseline_tasks=1)
