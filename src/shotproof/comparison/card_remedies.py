"""Remedies that a classifier was measured with, as the records of its features and of its task sets state them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from shotproof.comparison.card import CardRemedy
from shotproof.core.plain_values import plain
from shotproof.core.records import FeaturesRecord, Maker, TasksRecord
from shotproof.core.spelling import write_call
from shotproof.features.transforms import transforms
from shotproof.results.applied_change import CHANGED
from shotproof.results.origin import CHOSEN, COPIED, RANDOM
from shotproof.tasks.sampler import samplers

UNKNOWN_MAP = "a fitted map of unknown origin"
# Components that are described by their settings, with those that are stated even if they are the defaults.
_STATED: dict[str, tuple[str, ...]] = {
    "center-contexts": (),
    "nap": ("by", "directions"),
    "leace": ("by",),
    "wccn": ("ridge",),
    CHOSEN: ("choose",),
    COPIED: ("changes", "copies"),
}


def feature_remedies(features: FeaturesRecord) -> tuple[CardRemedy, ...]:
    """Return the transforms of features that were fitted on classes, in the order in which they were applied.

    Example:
        >>> from shotproof.core.records import FittedOn
        >>> nap = Maker("nap", "nap(base='base.parquet@1f2e3d4c', by='words')", {"by": "words", "directions": 15})
        >>> [str(remedy) for remedy in feature_remedies(FeaturesRecord(fitted=(FittedOn(nap, 130),)))]
        ["nap(by='words', directions=15), fitted on 130 classes"]
    """
    return tuple(
        CardRemedy(
            "features",
            _setting(fitted.transform) if fitted.transform else UNKNOWN_MAP,
            fitted.classes if fitted.classes > 0 else None,
        )
        for fitted in features.fitted
    )


def support_remedies(digest: str | None, tasks: Mapping[str | None, TasksRecord]) -> Iterator[CardRemedy]:
    """Yield how the supports of a task set were chosen or copied; supports at random are no remedy.

    Args:
        digest: digest of the task set
        tasks: records of all task sets that are known, by digest
    """
    passed: set[str | None] = set()
    while digest in tasks and digest not in passed:  # files could name each other
        passed.add(digest)
        record = tasks[digest]
        if record.sampler is None or record.sampler_name not in (CHOSEN, COPIED, CHANGED):
            return
        if record.sampler_name == COPIED:
            yield CardRemedy("copies", _setting(record.sampler))
        elif record.sampler_name == CHOSEN:
            if record.options.get("choose", RANDOM) != RANDOM:
                yield CardRemedy("supports", _setting(record.sampler))
            return
        digest = record.source("like")  # the set whose supports it takes


def merge_remedies(remedies: Iterable[CardRemedy]) -> tuple[CardRemedy, ...]:
    """Join remedies that differ only in their axes; one that applies to all axes names none."""
    axes: dict[CardRemedy, dict[str, None] | None] = {}
    for remedy in remedies:
        key = replace(remedy, axes=())
        earlier = axes.get(key, {})
        axes[key] = {**earlier, **dict.fromkeys(remedy.axes)} if earlier is not None and remedy.axes else None
    return tuple(replace(key, axes=tuple(names or ())) for key, names in axes.items())


def remedy_sentence(remedies: Iterable[CardRemedy]) -> str:
    """State the remedies; empty if there is none."""
    names = [str(remedy) for remedy in remedies]
    return f"Measured with {'a remedy' if len(names) == 1 else 'remedies'}: {'; '.join(names)}." if names else ""


def _setting(maker: Maker) -> str:
    """Spell a component by its settings, without the data that it was fitted on."""
    if maker.name not in _STATED:  # of another version, or of another package, whose code is not loaded for this
        return str(maker)
    component = samplers.get(maker.name) if maker.name in (CHOSEN, COPIED) else transforms.get(maker.name)
    settings = {}
    for option in component.options():
        value = maker.options.get(option.name)
        is_stated = option.name in _STATED[maker.name] or value != plain(option.default)
        is_data = option.path or option.name == "split"
        if option.name in maker.options and is_stated and not is_data:
            settings[option.name] = tuple(value) if isinstance(value, list) else value
    return write_call(maker.name, settings)
