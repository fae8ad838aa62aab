"""Classifiers that are one and the same under several names are said to be.

With one shot, the nearest neighbor by cosine is the nearest class: `knn` and `cosine` give the same answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from shotproof.comparison.numbers import listed
from shotproof.results.evaluated import METRICS, Classifier, Evaluated


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
