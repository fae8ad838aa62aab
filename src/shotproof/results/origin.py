"""What results are on, as their record says: the data set, the design, the sampler, the attributes, the seed."""

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
NOTHING = FeaturesRecord()  # of results that do not say what they are on
REFERENCES = (RANDOM, "iid")  # samplers that others are measured against


@dataclass(frozen=True)
class Design:
    """The data that tasks were drawn from, and their size; None where the record does not say, or where tasks differ.

    dial: how loud the backgrounds of mixed sounds are
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
        """E.g. `5-way 1-shot`."""
        ways = "variable-way" if self.way is None else f"{self.way}-way"
        unknown = "variable-shot" if self.way is None else "unknown shots"
        return f"{ways} {unknown if self.shot is None else f'{self.shot}-shot'}"

    @property
    def order(self) -> tuple[str | float, ...]:
        """What designs are sorted by: data set, split, then size."""
        sizes = (-1 if value is None else value for value in (self.dial, self.way, self.shot, self.query))
        return (self.data_set, self.catalog or "" if self.dial is None else "", self.split or "", *sizes)


@dataclass(frozen=True)
class Origin:
    """What a results file says that it is on.

    sampler, spelling: the sampler's name, and the name with its options
    detector: whose attributes the sampler was given; None where it takes none
    attributes: their digest
    searched: whose features the sampler was given, by name and digest; None where it takes none
    match: the same for task sets whose tasks are paired one by one; of a set that is like no other, its own digest
    like: the digest of the task set that the sampler was given to be like; None where there was none
    medium: what the items are, `image` or `sound`; None where the record does not say
    context: the catalog's column with the contexts, of a sampler that goes by these
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
        """From the record; the way and the query size are read off the counts where the record lacks them."""
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
        """What the tasks stress; None where they are a reference, or a placebo."""
        if self.sampler == RANDOM and "query_dirichlet" not in _spelled(self)[0]:
            return None
        return _sampler_class(self).axis

    @property
    def is_random(self) -> bool:
        """Return whether these are random tasks with as many queries of each class, the usual reference."""
        return self.sampler == RANDOM and self.axis is None

    @property
    def has_placebo(self) -> bool:
        """Whether attributes or contexts decide the tasks."""
        return _sampler_class(self).has_placebo

    def reference(self, origins: Mapping[str, Origin]) -> str | None:
        """The label of the task set that this one is measured against, among those of its design.

        It is the set that this one is like, or of matched sets the sampler's reference (`iid`, for contexts), or the
        sampler's reference among all; None where it is not there, and for sets that are references themselves.
        """
        if self.axis is None or self.sampler == UNKNOWN:
            return None
        # A record whose sampler has one name and is spelled as another would be its own reference.
        others = {label: one for label, one in origins.items() if one is not self}
        matched = {label: one for label, one in others.items() if one.match == self.match and one.sampler != PLACEBO}
        liked = [label for label, one in matched.items() if one.tasks_digest == self.match != self.tasks_digest]
        usual = _sampler_class(self).reference
        named = [label for among in (matched, others) for label, one in among.items() if _spelled(one)[0] == usual]
        return next(iter([*liked, *named]), None)

    def placebo(self, origins: Mapping[str, Origin]) -> str | None:
        """The label of this set's placebo, among those of its design."""
        placebos = {one.like: label for label, one in origins.items() if one.sampler == PLACEBO and one.like}
        return placebos.get(self.tasks_digest or "")


def design_of(tasks: TasksRecord, way: int | None, query: int | None) -> Design:
    """The design of a task set, with its way and its query size."""
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
    """E.g. `5-way 1-shot`, with the data set, the queries and the split where they tell these designs apart."""
    names = {other.data_set for other in among}
    extras: list[tuple[Callable[[Design], Any], str]] = [
        (lambda d: d.query, "queries that vary" if design.query is None else counted(design.query, "query", "queries")),
        (lambda d: d.dial, f"a = {design.dial:g}" if design.dial is not None else "not mixed"),
        (lambda d: d.split, f"split {design.split or UNKNOWN}"),
    ]
    differing = [text for value, text in extras if len({value(other) for other in among}) > 1]
    data_set = [design.data_set] if len(names) > 1 and design.data_set else []
    return ", ".join([*data_set, design.shape, *differing])


def labels_of(origins: Sequence[Origin]) -> list[str]:
    """What tables call the task set of each: the sampler, with whatever tells it from the others of its design.

    Variants of a sampler show the options in which they differ, `hardest(effort='high')`; the same sampler with other
    attributes shows the detector, `fewstab [captions]`, and with other features the encoder. Random tasks are called so
    whatever classes were left out, for they are the reference.
    """
    spelled = [_spelled(origin) for origin in origins]
    variants: dict[tuple[Design, str], list[Mapping[str, Any]]] = {}
    for origin, (name, options) in zip(origins, spelled, strict=True):
        variants.setdefault((origin.design, name), []).append(options)
    labels = []
    for origin, (name, options) in zip(origins, spelled, strict=True):
        others = variants[origin.design, name]
        differing = {key: value for key, value in options.items() if any(o.get(key) != value for o in others)}
        labels.append(write_call(name, differing))
    given: dict[tuple[Design, str], set[tuple[str | None, Source | None]]] = {}
    for origin, label in zip(origins, labels, strict=True):
        given.setdefault((origin.design, label), set()).add((origin.attributes, origin.searched))
    encoders = short_encoder_names(one.searched.name for one in origins if one.searched and one.searched.name)
    told = []
    for origin, label in zip(origins, labels, strict=True):
        attributes, searched = (set(each) for each in zip(*given[origin.design, label], strict=True))
        names = [origin.detector] if len(attributes) > 1 and origin.detector else []
        if len(searched) > 1 and origin.searched:
            names.append(encoders.get(origin.searched.name) or origin.searched.digest[:8])
        told.append(f"{label} [{', '.join(names)}]" if names else label)
    by_digest: dict[str | None, str] = {}
    for origin, label in zip(origins, told, strict=True):
        by_digest.setdefault(origin.tasks_digest, label)  # of sets that are the same tasks, the first
    return [
        f"{label} of {by_digest[one.like]}" if one.sampler == PLACEBO and one.like in by_digest else label
        for one, label in zip(origins, told, strict=True)
    ]


def _sampler_class(origin: Origin) -> type[Sampler]:
    """The sampler's class; of one that is not known here, what all samplers have in common."""
    return samplers.get(origin.sampler) if origin.sampler in samplers else Sampler


def _spelled(origin: Origin) -> tuple[str, Mapping[str, Any]]:
    """A sampler's name and the options that tell its variants apart."""
    try:
        name, options = parse_call(origin.spelling)
    except InputError:  # of somebody's own file
        return origin.sampler, {}
    if name == RANDOM:
        options = {key: value for key, value in options.items() if key == "query_dirichlet"}
        return (write_call(name, options), {}) if options else (name, {})
    return name, options
