"""Check of class names against the pretraining data of encoders.

Evaluating a network trained with Shotproof on classes it has seen is an error. For a network trained elsewhere only
the names of its training classes are known, so there is a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.comparison.numbers import listed
from shotproof.features.pretraining.class_lists import TITLES, shared_names
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.origin import Origin
from shotproof.results.results import Results

SHOWN_NAMES = 3
SHOWN_ENCODERS = 3


def notes_of_pretraining(results: Sequence[Results]) -> list[str]:
    """Report how many classes share a name with classes that their encoders were trained on.

    Args:
        results: results of any encoders and data sets; their feature records name the encoder's training data

    Returns:
        One note for all encoders with the same training data, per data set.
    """
    origins = [Origin.of(evaluated) for evaluated in results]
    names = short_encoder_names(origin.encoder for origin in origins)
    data_sets = {origin.design.catalog: origin.design.data_set for origin in origins}
    labels: dict[tuple[str, str | None], dict[str, None]] = {}
    encoders: dict[tuple[str, str | None], dict[str, None]] = {}
    for evaluated, origin in zip(results, origins, strict=True):
        trained_on = evaluated.record.features.pretrained_on
        if trained_on in TITLES:
            key = (trained_on, origin.design.catalog)
            labels.setdefault(key, {}).update(dict.fromkeys(evaluated.table.column("label").unique().to_pylist()))
            encoders.setdefault(key, {})[names[origin.encoder]] = None
    notes = []
    for (trained_on, catalog), data_labels in labels.items():
        shared = shared_names(data_labels, trained_on)
        if shared:
            total, data_set = len(data_labels), data_sets[catalog] or "the data"
            total_names = (
                f"these {total:,} class names" if len(data_sets) == 1 else f"{total:,} class names of {data_set}"
            )
            first_names = sorted(shared, key=str.casefold)[:SHOWN_NAMES]
            shown_names = ", ".join([*first_names, *(["..."] if len(shared) > SHOWN_NAMES else [])])
            encoder_list = listed(list(encoders[trained_on, catalog]), SHOWN_ENCODERS)
            notes.append(
                f"{TITLES[trained_on]}, the training data of {encoder_list}, has {len(shared):,} of "
                f"{total_names} ({shown_names}), so accuracy on these classes does not measure accuracy on new ones"
            )
    return notes
