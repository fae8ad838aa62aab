"""Notes on a comparison that readers need besides its numbers: what was left out, is identical, or was drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from shotproof.comparison.numbers import listed
from shotproof.results.evaluated import METRICS, Classifier, Evaluated, Metric
from shotproof.results.metrics import FloatArray
from shotproof.stats.block import Block
from shotproof.stats.evidence import DEPLETION, Evidence, Reevaluated, Replicates
from shotproof.stats.intervals import Estimate


def notes_on_design(
    block: Block,
    evidence: Evidence,
    sets: Sequence[Evaluated],
    encoders: Mapping[str, str],
    level: float,
    place: str = "",
) -> list[str]:
    """Write the notes on one design.

    Args:
        block: measured numbers
        evidence: values that the numbers were computed from
        sets: task sets, before identical ones were merged
        encoders: display name of each encoder spelling
        level: level at which a difference is conclusive
        place: prefix of notes that hold for this design only

    Returns:
        Sentences without their periods.
    """
    reevaluated = evidence.reevaluated
    of_design = [
        *notes_of_identical(sets, encoders),
        *_notes_on_depletion(sets, reevaluated, level),
        *_notes_on_near_duplicates(reevaluated),
    ]
    left_out = [note for replicates in evidence.replicates for note in _notes_on_missing_seeds(replicates, encoders)]
    return [*left_out, *_notes_on_unused_placebos(block), *(f"{place}{note}" for note in of_design)]


def notes_of_identical(sets: Sequence[Evaluated], encoders: Mapping[str, str]) -> list[str]:
    """Report classifiers that are right equally often in every class of every task.

    Args:
        sets: task sets of one design
        encoders: display name of each encoder spelling

    Returns:
        One note per group of identical classifiers.
    """
    by_digest: dict[bytes, list[str]] = {}
    for classifier in dict.fromkeys(classifier for task_set in sets for classifier in task_set.values):
        name = str(classifier._replace(encoder=encoders[classifier.encoder]))
        by_digest.setdefault(_digest_accuracies(sets, classifier), []).append(name)
    return [
        f"{listed(names)} are right equally often in every class of every task, so they are the same classifier here"
        for names in by_digest.values()
        if len(names) > 1
    ]


def _digest_accuracies(sets: Sequence[Evaluated], classifier: Classifier) -> bytes:
    """Return a digest of all accuracies, which for thousands of classifiers are too many to keep."""
    digest = hashlib.sha256()
    for index, task_set in enumerate(sets):
        if classifier in task_set.values:
            digest.update(f"{index} ".encode())
            # After several evaluations, the rows are those of the last; the values are of all.
            for values in (task_set.by_row[classifier], *(task_set.values[classifier][metric] for metric in METRICS)):
                digest.update(values.tobytes())
    return digest.digest()


def _notes_on_unused_placebos(block: Block) -> list[str]:
    """Report placebos that no loss uses."""
    unused = [block.placebos[loss.label] for loss in block.losses if not loss.excess and loss.label in block.placebos]
    return [
        f"{label}: left out, because it and a placebo of the reference need results of all classifiers"
        for label in unused
    ]


def _notes_on_missing_seeds(replicates: Replicates, encoders: Mapping[str, str]) -> list[str]:
    """Report classifiers that are left out because they were evaluated on some of the seeds only."""
    complete = replicates.classifiers
    incomplete = dict.fromkeys(
        classifier for task_set in replicates.sets for classifier in task_set.values if classifier not in complete
    )
    names = [classifier._replace(encoder=encoders[classifier.encoder]) for classifier in incomplete]
    return [f"{replicates.label}: {name} is left out, because it was not evaluated on all seeds" for name in names]


def _notes_on_depletion(sets: Sequence[Evaluated], reevaluated: Reevaluated, level: float) -> list[str]:
    """Report how many tasks were drawn without replacement, and why their mean may differ."""
    if not isinstance(reevaluated.depletion, Mapping):
        return []
    is_input = any(task_set.origin.sampler == DEPLETION for task_set in sets)
    drawn = f"depletion: {reevaluated.depletion_tasks} tasks were drawn without replacement for this interval"
    random = next((task_set for task_set in sets if task_set.origin.is_random), None)
    differs = random and note_of_open_means(random, reevaluated.depletion, reevaluated.class_uses, level)
    return [*([] if is_input else [drawn]), *([differs] if differs else [])]


def _notes_on_near_duplicates(reevaluated: Reevaluated) -> list[str]:
    """Report how many items stay together as near-duplicates when the data is halved."""
    halves = reevaluated.halves.get("images")
    if halves is None or isinstance(halves, str) or not halves.near_duplicates:
        return []
    return [
        f"images: {halves.near_duplicates:,} items are near-duplicates of others by their features, so they stay "
        "together like items of one source; a column source in the catalog would state which items belong together"
    ]


def note_of_open_means(
    random: Evaluated,
    depletion: Mapping[Classifier, Mapping[Metric, FloatArray]],
    class_uses: Mapping[str, int],
    level: float,
) -> str | None:
    """Report by how much Acc differs, and how much of that is due to which classes are used.

    Args:
        random: random tasks
        depletion: values on tasks drawn without replacement
        class_uses: number of the latter tasks that each class is in
        level: level at which a difference is conclusive

    Returns:
        One sentence without its period, on the mean over classifiers; None if the difference is not conclusive.
    """
    shared = [classifier for classifier in random.values if classifier in depletion]
    if not shared or not class_uses:
        return None
    closed, opened = (
        np.mean([values[classifier]["acc"] for classifier in shared], axis=0) for values in (random.values, depletion)
    )
    difference = Estimate.over_tasks(opened).minus(Estimate.over_tasks(closed))
    if difference.p_value() > 1 - level:
        return None
    labels, row = np.unique(np.asarray(random.rows[0].column("label").to_pylist(), dtype=str), return_inverse=True)
    accuracy = np.mean([random.by_row[classifier] for classifier in shared], axis=0)
    has_queries = ~np.isnan(accuracy)
    closed_uses = np.bincount(row[has_queries], minlength=len(labels))
    means = np.bincount(row[has_queries], accuracy[has_queries], len(labels)) / np.maximum(closed_uses, 1)
    opened_uses = np.array([class_uses.get(label, 0) for label in labels.tolist()], dtype=np.float64)
    explained = float((opened_uses / opened_uses.sum() - closed_uses / closed_uses.sum()) @ means)
    most, least = (max(class_uses, key=lambda label: sign * class_uses[label]) for sign in (1, -1))
    higher = "higher" if difference.mean > 0 else "lower"
    return (
        f"depletion: Acc is {abs(difference.mean):.1f} points {higher} than on random tasks (mean over classifiers); "
        f"{explained:+.1f} points are due to large classes being in more tasks ('{most}' in {class_uses[most]} of "
        f"{len(opened)}, '{least}' in {class_uses[least]})"
    )
