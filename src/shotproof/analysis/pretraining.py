"""Whether pretrained encoders may have seen the classes that they are tested on: by the classes' names alone.

A network of ours is refused on classes that it has seen. Of one that was trained elsewhere only names are known, so
there is a note.
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
    """Say how many classes have names of classes that their encoders were trained on.

    Args:
        results: of any encoders and data sets; the record of their features says what the encoder was trained on

    Returns:
        One note for all encoders of a data set that were trained on the same.
    """
    origins = [Origin.of(given) for given in results]
    names = short_encoder_names(origin.encoder for origin in origins)
    data_sets = {origin.design.catalog: origin.design.data_set for origin in origins}
    labels: dict[tuple[str, str | None], dict[str, None]] = {}
    encoders: dict[tuple[str, str | None], dict[str, None]] = {}
    for given, origin in zip(results, origins, strict=True):
        trained_on = given.record.features.pretrained_on
        if trained_on in TITLES:
            key = (trained_on, origin.design.catalog)
            labels.setdefault(key, {}).update(dict.fromkeys(given.table.column("label").unique().to_pylist()))
            encoders.setdefault(key, {})[names[origin.encoder]] = None
    notes = []
    for (trained_on, catalog), of_data in labels.items():
        shared = shared_names(of_data, trained_on)
        if shared:
            total, data_set = len(of_data), data_sets[catalog] or "the data"
            among = f"these {total:,} class names" if len(data_sets) == 1 else f"{total:,} class names of {data_set}"
            first = sorted(shared, key=str.casefold)[:SHOWN_NAMES]
            shown = ", ".join([*first, *(["..."] if len(shared) > SHOWN_NAMES else [])])
            whose = listed(list(encoders[trained_on, catalog]), SHOWN_ENCODERS)
            notes.append(
                f"{TITLES[trained_on]}, which is the training data of {whose}, has {len(shared):,} of {among} "
                f"({shown}): accuracy on such classes is not that on new ones"
            )
    return notes
