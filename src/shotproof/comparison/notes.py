"""What a reader must know of a comparison beside its numbers: what was left out, what is the same, what was drawn."""

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
    """Give the notes on one design.

    Args:
        block: what was measured
        evidence: what it was measured from
        sets: the task sets, before those that are the same were joined
        encoders: what people read in place of each encoder's spelling
        level: at which a difference is conclusive
        place: what notes begin with that hold of this design alone

    Returns:
        Sentences without their periods.
    """
    known = evidence.reevaluated
    own = [*notes_of_identical(sets, encoders), *_notes_of_depletion(sets, known, level), *_notes_of_halves(known)]
    left_out = [note for one in evidence.replicates for note in _left_out(one, encoders)]
    return [*left_out, *_unused_placebos(block), *(f"{place}{note}" for note in own)]


def notes_of_identical(sets: Sequence[Evaluated], encoders: Mapping[str, str]) -> list[str]:
    """Say which classifiers are right equally often in every class of every task.

    Args:
        sets: the task sets of one design
        encoders: what people read in place of each encoder's spelling

    Returns:
        One note for all classifiers that are the same.
    """
    alike: dict[bytes, list[str]] = {}
    for classifier in dict.fromkeys(classifier for one in sets for classifier in one.values):
        name = str(classifier._replace(encoder=encoders[classifier.encoder]))
        alike.setdefault(_answers(sets, classifier), []).append(name)
    return [
        f"{listed(names)} are right equally often in every class of every task: they are one classifier here"
        for names in alike.values()
        if len(names) > 1
    ]


def _answers(sets: Sequence[Evaluated], classifier: Classifier) -> bytes:
    """A digest of all accuracies: of thousands of classifiers, these are many."""
    digest = hashlib.sha256()
    for number, one in enumerate(sets):
        if classifier in one.values:
            digest.update(f"{number} ".encode())
            # Of several evaluations, the rows are those of the last; the values are of all.
            for values in (one.by_row[classifier], *(one.values[classifier][metric] for metric in METRICS)):
                digest.update(values.tobytes())
    return digest.digest()


def _unused_placebos(block: Block) -> list[str]:
    """Which placebos are there and yet in no loss."""
    without = [block.placebos[loss.label] for loss in block.losses if not loss.excess and loss.label in block.placebos]
    return [
        f"{label}: left out, it needs results of all classifiers, as a placebo of the reference does"
        for label in without
    ]


def _left_out(replicates: Replicates, encoders: Mapping[str, str]) -> list[str]:
    """Which classifiers are not in the table, for they were evaluated on some of the seeds alone."""
    everywhere = replicates.classifiers
    on_some = dict.fromkeys(one for given in replicates.sets for one in given.values if one not in everywhere)
    names = [one._replace(encoder=encoders[one.encoder]) for one in on_some]
    return [f"{replicates.label}: {name} is left out, it was not evaluated on all seeds" for name in names]


def _notes_of_depletion(sets: Sequence[Evaluated], known: Reevaluated, level: float) -> list[str]:
    """How many tasks without replacement were drawn, and why their mean may be another."""
    if not isinstance(known.depletion, Mapping):
        return []
    given = any(one.origin.sampler == DEPLETION for one in sets)
    drawn = f"depletion: {known.depletion_tasks} tasks without replacement, drawn for this interval"
    random = next((one for one in sets if one.origin.is_random), None)
    differs = random and note_of_open_means(random, known.depletion, known.class_uses, level)
    return [*([] if given else [drawn]), *([differs] if differs else [])]


def _notes_of_halves(known: Reevaluated) -> list[str]:
    """How many items stay together as near-duplicates on halves of the data."""
    halves = known.halves.get("images")
    if halves is None or isinstance(halves, str) or not halves.near_duplicates:
        return []
    return [
        f"images: {halves.near_duplicates:,} items are near-duplicates of others by their features, and stay together "
        "as those of one source do; the catalog's column source would say which they are"
    ]


def note_of_open_means(
    random: Evaluated,
    depletion: Mapping[Classifier, Mapping[Metric, FloatArray]],
    class_uses: Mapping[str, int],
    level: float,
) -> str | None:
    """That Acc differs, by how much, and how much of it comes of which classes are used; None where it does not.

    Args:
        random: random tasks
        depletion: the values on tasks without replacement
        class_uses: in how many of the latter each class is
        level: at which a difference is conclusive

    Returns:
        One sentence without its period, on the mean over classifiers.
    """
    shared = [one for one in random.values if one in depletion]
    if not shared or not class_uses:
        return None
    closed, opened = (np.mean([by[one]["acc"] for one in shared], axis=0) for by in (random.values, depletion))
    difference = Estimate.over_tasks(opened).minus(Estimate.over_tasks(closed))
    if difference.p_value() > 1 - level:
        return None
    labels, row = np.unique(np.asarray(random.rows[0].column("label").to_pylist(), dtype=str), return_inverse=True)
    accuracy = np.mean([random.by_row[one] for one in shared], axis=0)
    asked = ~np.isnan(accuracy)
    used = np.bincount(row[asked], minlength=len(labels))
    means = np.bincount(row[asked], accuracy[asked], len(labels)) / np.maximum(used, 1)
    opened_uses = np.array([class_uses.get(label, 0) for label in labels.tolist()], dtype=np.float64)
    explained = float((opened_uses / opened_uses.sum() - used / used.sum()) @ means)
    most, least = (max(class_uses, key=lambda label: sign * class_uses[label]) for sign in (1, -1))
    higher = "higher" if difference.mean > 0 else "lower"
    return (
        f"depletion: Acc is {abs(difference.mean):.1f} points {higher} than on random tasks (mean over classifiers); "
        f"{explained:+.1f} points come of large classes being in more tasks ('{most}' in {class_uses[most]} of "
        f"{len(opened)}, '{least}' in {class_uses[least]})"
    )
