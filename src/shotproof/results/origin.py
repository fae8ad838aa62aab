"""Origin of results, according to their record: data set, design, sampler, attributes, seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.core.records import UNKNOWN, FeaturesRecord, Source, TasksRecord
from shotproof.core.spelling import parse_call, write_call
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.results import Results
from shotproof.tasks.sampler import Axis, Sampler, samplers

RANDOM, PLACEBO = "random", "placebo"
NOTHING = FeaturesRecord()  # the record of features, if results do not state any
REFERENCES = (RANDOM, "iid")  # samplers that others are compared with
CHOSEN, COPIED = "chosen", "copied"
OF_OTHER_SETS = (CHOSEN, COPIED)  # samplers without an axis that take the tasks of another set


@dataclass(frozen=True)
class Design:
    """Data that tasks were drawn from, and their size; None if the record does not state it, or if tasks differ.

    dial: level of the backgrounds of mixed sounds
    """

    data_set: str = field(compare=False)
    catalog: str | None
    split: str | None
    way: int | None
    shot: int | None
    query: int | None
    dial: float | None = None

    @property
    def shape(self) -> str:
        """Return the shape of the tasks, e.g. `5-way 1-shot`."""
        ways = "variable-way" if self.way is None else f"{self.way}-way"
        unknown = "variable-shot" if self.way is None else "unknown shots"
        return f"{ways} {unknown if self.shot is None else f'{self.shot}-shot'}"

    @property
    def order(self) -> tuple[str | float, ...]:
        """Return the key by which designs are sorted: data set, split, then size."""
        sizes = (-1 if value is None else value for value in (self.dial, self.way, self.shot, self.query))
        return (self.data_set, self.catalog or "" if self.dial is None else "", self.split or "", *sizes)


@dataclass(frozen=True)
class Origin:
    """Origin of one results file, according to its record.

    sampler, spelling: name of the sampler, and the name with its options
    detector: detector of the attributes that the sampler used; None if it uses none
    attributes: digest of these attributes
    searched: name and digest of the features that the sampler used; None if it uses none
    match: the same for all task sets whose tasks are paired one by one; the set's own digest if it is not paired
    like: digest of the task set that the sampler had to match; None if there was none
    medium: kind of the items, `image` or `sound`; None if the record does not state it
    context: column of the catalog with the contexts, for a sampler that uses them
    """

    design: Design
    sampler: str
    spelling: str
    detector: str | None
    attributes: str | None
    searched: Source | None
    seed: int | None
    tasks_digest: str | None
    match: str | None
    like: str | None
    encoder: str
    features: str | None
    medium: str | None = None
    context: str | None = None

    @classmethod
    def of(cls, results: Results) -> Origin:
        """Read the origin from the record; infer way and query size from the counts if the record lacks them."""
        record, tasks = results.record, results.record.tasks
        source = tasks.sources.get("attributes")
        way, query = tasks.way, tasks.query
        if tasks.sampler is None:
            way = pc.max(results.table.column("slot")).as_py() + 1
            query = pc.max(results.table.column("n_query")).as_py()
        return cls(
            design=design_of(tasks, way, query),
            sampler=tasks.sampler_name,
            spelling=str(tasks.sampler or UNKNOWN),
            detector=None if source is None else source.name or source.digest[:8],
            attributes=tasks.source("attributes"),
            searched=tasks.sources.get("features"),
            seed=tasks.seed,
            tasks_digest=record.tasks_digest,
            match=tasks.match or record.tasks_digest,
            like=tasks.source("like"),
            encoder=record.features.classifier if record.features_digest or record.features != NOTHING else UNKNOWN,
            features=record.features_digest,
            medium=tasks.medium or ("sound" if tasks.mix else None),
            context=tasks.context_column,
        )

    @property
    def axis(self) -> Axis | None:
        """Return what the tasks stress; None for a reference or a placebo."""
        if self.sampler == RANDOM and "query_dirichlet" not in _parse_sampler(self)[0]:
            return None
        return _sampler_class(self).axis

    @property
    def is_random(self) -> bool:
        """Return whether these are random tasks with as many queries of each class, the usual reference."""
        return self.sampler == RANDOM and self.axis is None

    @property
    def has_placebo(self) -> bool:
        """Return whether the tasks are built from attributes or contexts, so that they have a placebo."""
        return _sampler_class(self).has_placebo

    def reference(self, origins: Mapping[str, Origin]) -> str | None:
        """Return the label of the task set that this one is compared with, among those of its design.

        It is the set that this one was drawn to match; otherwise the sampler's reference (`iid` for contexts) among the
        matched sets; otherwise the sampler's reference among all sets. None if there is no such set, and for sets that
        are references themselves.
        """
        if self.axis is None or self.sampler == UNKNOWN:
            return None
        if self.axis == "changes":  # what is changed is compared with what it was changed from
            return next((label for label, origin in origins.items() if origin.tasks_digest == self.like), None)
        # A record whose sampler's name and spelling disagree could otherwise be its own reference.
        others = {label: origin for label, origin in origins.items() if origin is not self}
        matched = {
            label: origin
            for label, origin in others.items()
            if origin.match == self.match and origin.sampler != PLACEBO
        }
        originals = [
            label for label, origin in matched.items() if origin.tasks_digest == self.match != self.tasks_digest
        ]
        reference = _sampler_class(self).reference
        references = [
            label
            for candidates in (matched, others)
            for label, origin in candidates.items()
            if _parse_sampler(origin)[0] == reference
        ]
        return next(iter([*originals, *references]), None)

    def placebo(self, origins: Mapping[str, Origin]) -> str | None:
        """Return the label of this set's placebo, among those of its design; None if there is none."""
        placebos = {
            origin.like: label for label, origin in origins.items() if origin.sampler == PLACEBO and origin.like
        }
        return placebos.get(self.tasks_digest or "")


def design_of(tasks: TasksRecord, way: int | None, query: int | None) -> Design:
    """Build the design of a task set from its record, its way and its query size."""
    catalog = tasks.sources.get("catalog")
    dial = (tasks.mix or {}).get("dial")
    return Design(
        data_set=catalog.name if catalog else "",
        catalog=catalog.digest if catalog else None,
        split=tasks.split,
        way=way,
        shot=tasks.shot,
        query=query,
        dial=dial if isinstance(dial, int | float) else None,
    )


def design_name(design: Design, among: Sequence[Design]) -> str:
    """Build a design's name, e.g. `5-way 1-shot`, with data set, queries, dial and split if they differ in `among`."""
    data_sets = {other.data_set for other in among}
    extras: list[tuple[Callable[[Design], Any], str]] = [
        (lambda d: d.query, "queries that vary" if design.query is None else counted(design.query, "query", "queries")),
        (lambda d: d.dial, f"a = {design.dial:g}" if design.dial is not None else "not mixed"),
        (lambda d: d.split, f"split {design.split or UNKNOWN}"),
    ]
    differing = [text for value, text in extras if len({value(other) for other in among}) > 1]
    data_set = [design.data_set] if len(data_sets) > 1 and design.data_set else []
    return ", ".join([*data_set, design.shape, *differing])


def labels_of(origins: Sequence[Origin]) -> list[str]:
    """Label the task set of each origin: its sampler, with whatever distinguishes it from others of its design.

    Variants of a sampler show the options in which they differ, `hardest(effort='high')`; the same sampler with other
    attributes shows the detector, `fewstab [captions]`, and with other features the encoder. Random tasks have the same
    label whatever classes were left out, because they are the reference.
    """
    parsed = [_parse_sampler(origin) for origin in origins]
    variants: dict[tuple[Design, str], list[Mapping[str, Any]]] = {}
    for origin, (name, options) in zip(origins, parsed, strict=True):
        variants.setdefault((origin.design, name), []).append(options)
    calls = []
    for origin, (name, options) in zip(origins, parsed, strict=True):
        others = variants[origin.design, name]
        differing = {key: value for key, value in options.items() if any(o.get(key) != value for o in others)}
        is_change = origin.sampler == "changed"
        calls.append(_change_label(origin, options) if is_change else write_call(name, differing))
    inputs: dict[tuple[Design, str], set[tuple[str | None, Source | None]]] = {}
    for origin, call in zip(origins, calls, strict=True):
        inputs.setdefault((origin.design, call), set()).add((origin.attributes, origin.searched))
    encoders = short_encoder_names(
        origin.searched.name for origin in origins if origin.searched and origin.searched.name
    )
    labels = []
    for origin, call in zip(origins, calls, strict=True):
        attributes, searched = (set(column) for column in zip(*inputs[origin.design, call], strict=True))
        names = [origin.detector] if len(attributes) > 1 and origin.detector else []
        if len(searched) > 1 and origin.searched:
            names.append(encoders.get(origin.searched.name) or origin.searched.digest[:8])
        labels.append(f"{call} [{', '.join(names)}]" if names else call)
    by_digest: dict[str | None, int] = {}
    for index, origin in enumerate(origins):
        by_digest.setdefault(origin.tasks_digest, index)  # several sets of the same tasks: the first
    changed_from: dict[tuple[Design, str, int | None], set[str | None]] = {}
    for origin, label in zip(origins, labels, strict=True):
        changed_from.setdefault((origin.design, label, origin.seed), set()).add(origin.like)
    is_of_another = [
        origin.sampler == PLACEBO
        or (
            (origin.axis == "changes" or origin.sampler in OF_OTHER_SETS)
            and len(changed_from[origin.design, label, origin.seed]) > 1
        )
        for origin, label in zip(origins, labels, strict=True)
    ]

    def full_label(index: int, outer: tuple[int, ...] = ()) -> str:
        other = by_digest.get(origins[index].like)
        if not is_of_another[index] or other is None or other in (*outer, index):  # records may name each other
            return labels[index]
        return f"{labels[index]} of {full_label(other, (*outer, index))}"

    return [full_label(index) for index in range(len(origins))]


def _change_label(origin: Origin, options: Mapping[str, Any]) -> str:
    """Label a set whose items are changed: `blur(severity=5)`, or `blur on both sides`."""
    values = {option.name: option.default for option in _sampler_class(origin).options()} | dict(options)
    side = values["side"]
    return f"{values['change']}{'' if side == 'query' else ' on both sides' if side == 'both' else f' on the {side}'}"


def _sampler_class(origin: Origin) -> type[Sampler]:
    """Return the class of the sampler; the base class if the sampler is unknown here."""
    return samplers.get(origin.sampler) if origin.sampler in samplers else Sampler


def _parse_sampler(origin: Origin) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a sampler and the options that distinguish its variants."""
    try:
        name, options = parse_call(origin.spelling)
    except InputError:  # a spelling from another program's file
        return origin.sampler, {}
    if name == RANDOM:
        options = {key: value for key, value in options.items() if key == "query_dirichlet"}
        return (write_call(name, options), {}) if options else (name, {})
    return name, options
