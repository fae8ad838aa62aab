"""Provenance records: typed, versioned, stored in the metadata of each file.

A record has the component, its options, the digests of its sources and the seed. It has no time, so that the same
inputs give the same bytes; the log of a run has the times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from shotproof.core.options import Component
from shotproof.core.plain_values import default_of, plain, typed
from shotproof.core.storage.files import file_sha256, is_regular

Meta = dict[str, Any]

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Header:
    """First fields of the metadata of every file; all are None in a file that Shotproof did not write."""

    format: int | None = None
    kind: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Maker:
    """Component that made a file: its name, its spelling, and all options with their values."""

    name: str
    spelling: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, component: Component) -> Self:
        """Record a component; options that are not plain values are recorded by their repr.

        An absolute path is specific to this machine, so only its last name is recorded.
        """
        spelling, options = component.spelling, plain(component.parameters())
        for option in component.options():
            value = getattr(component, option.name)
            if (option.path or option.argument) and isinstance(value, str | Path) and Path(value).is_absolute():
                options[option.name] = Path(value).name if option.argument else options[option.name]
                spelling = spelling.replace(str(value), Path(value).name)
        return cls(component.name, spelling, options)

    def __str__(self) -> str:
        return self.spelling or self.name


TRANSFORMED = " > "  # separates an encoder and its transforms in names


@dataclass(frozen=True)
class Source:
    """File that another file was made from.

    transforms: for features, the spellings of the transforms applied after the encoder
    """

    digest: str
    name: str = ""
    transforms: tuple[str, ...] = ()


def sources_of(component: Component) -> dict[str, Source]:
    """Return the source file named by a component's options, with its digest, under the component's name."""
    sources = {}
    for value in (getattr(component, option.name) for option in component.options() if option.path):
        if isinstance(value, Path) and is_regular(value):
            sources[component.name] = Source(file_sha256(value)[:32], value.name)
    return sources


@dataclass(frozen=True)
class Record:
    """Fields shared by all records.

    name: the name shown on pages and in tables
    sources: the files it was made from, by role, e.g. `catalog`, `attributes`, `features`, `like`
    stated_digest: the digest stated in the file; None if it was not read from a file
    """

    name: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    stated_digest: str | None = None

    @classmethod
    def read(cls, meta: Mapping[str, Any] | Record) -> Self:
        """Read the record from a file's metadata; missing fields get their defaults.

        Raises:
            InputError: a value does not have the type of its field; the message has its location.
        """
        if isinstance(meta, cls):
            return meta
        header: Header = typed(meta, Header)
        values: Meta = typed(meta, Mapping[str, Any])
        record: Self = typed({**values, "stated_digest": header.digest}, cls)
        return record

    def to_meta(self) -> Meta:
        """Return the record as plain values for a file's metadata; fields at their default are left out."""
        return {
            field.name: plain(value)
            for field in dataclasses.fields(self)
            if field.name != "stated_digest" and (value := getattr(self, field.name)) != default_of(field)
        }

    def source(self, role: str) -> str | None:
        """Return the digest of the source in this role; None if there is none or it is not recorded."""
        source = self.sources.get(role)
        return None if source is None else source.digest


@dataclass(frozen=True)
class CatalogRecord(Record):
    """Record of a catalog; its name is the name of the data set.

    splits: the file that replaced the layout's splits, with its SHA-256; names: the file with the names of the classes
    clean_value: the context that means that there is none
    path_columns: columns that hold paths, in addition to `path`
    mix: how sounds were mixed with backgrounds; skipped, dropped: what was left out, and why
    notes: further information from the layout
    """

    layout: Maker | None = None
    splits: Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None
    license: str | None = None
    citation: str | None = None
    clean_value: str | None = None
    path_columns: tuple[str, ...] = ()
    mix: Mapping[str, Any] | None = None
    skipped: tuple[Mapping[str, str], ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AttributesRecord(Record):
    """Record of attributes: the detectors, and the split if only one was used."""

    detectors: tuple[Maker, ...] = ()
    split: str | None = None

    @property
    def detector(self) -> str:
        """Return the spellings of all detectors."""
        return " + ".join(map(str, self.detectors)) or UNKNOWN


@dataclass(frozen=True)
class FittedOn:
    """Transform that was fitted on base classes, as the features that it was applied to state it.

    transform: what was fitted; None if a fitted map does not state it
    classes: number of classes that it was fitted on; 0 if unknown
    """

    transform: Maker | None = None
    classes: int = 0


@dataclass(frozen=True)
class FeaturesRecord(Record):
    """Record of features: the encoder and the transforms applied after it.

    shape: channels, height and width of local maps; None if an item has a single vector
    fingerprint: everything that a feature depends on, except the file's content
    skipped: items whose files could not be read
    trained_on: the classes that the encoder was trained on, if Shotproof trained it
    pretrained_on: the list of classes, e.g. `imagenet`, that its pretrained weights were trained on
    fitted: those of the transforms that were fitted on base classes, in order
    """

    encoder: Maker | None = None
    transforms: tuple[Maker, ...] = ()
    shape: tuple[int, ...] | None = None
    fingerprint: str | None = None
    skipped: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    pretrained_on: str | None = None
    fitted: tuple[FittedOn, ...] = ()

    @property
    def classifier(self) -> str:
        """Return the label shown in tables: `lite0 > l2`, or `features` if the encoder is unknown."""
        encoder = self.name or (str(self.encoder) if self.encoder else "features")
        return TRANSFORMED.join([encoder, *map(str, self.transforms)])

    def as_source(self, digest: str) -> Source:
        """Return the features of this digest as the source of another file."""
        return Source(digest, self.classifier, tuple(map(str, self.transforms)))


@dataclass(frozen=True)
class MapRecord(Record):
    """Record of a fitted map: the transform that fitted it, and what it was fitted on.

    features: the base set's name: its encoder and the transforms after it
    transforms: the spellings of the transforms of the base set, which features need as well before the map
    classes: the classes of the base set
    """

    transform: Maker | None = None
    features: str = ""
    transforms: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelRecord(Record):
    """Record of a trained model.

    architecture: what a pretrained backbone needs, in addition to its options, to be built without its original weights
    preprocessing: how items become its input
    settings: all values of the training settings
    classes: the classes of the training split, in the order of its head
    seen: all classes that its weights have seen, including those of the model it was trained from
    curve: one row per epoch: its loss, learning rate and validation accuracy
    best: the epoch of the saved weights
    """

    backbone: Maker | None = None
    objective: Maker | None = None
    architecture: Mapping[str, Any] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    split: str | None = None
    val_split: str | None = None
    classes: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    seed: int | None = None
    best: int | None = None
    curve: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class TasksRecord(Record):
    """Record of a task set.

    way, shot, query: the size of every task; None if tasks differ
    tasks: how many were drawn
    match: shared by sets whose tasks are paired one by one; None if the set is not paired with another
    summary: counts from drawing: tries, fallbacks, classes left out
    mix: how the sounds of the tasks were mixed
    medium: the kind of items, `image` or `sound`; None if it is unknown, or both
    """

    sampler: Maker | None = None
    split: str | None = None
    way: int | None = None
    shot: int | None = None
    query: int | None = None
    tasks: int | None = None
    seed: int | None = None
    match: str | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    mix: Mapping[str, Any] | None = None
    medium: str | None = None

    def __post_init__(self) -> None:
        typed(self.summary.get("tasks_in_all"), int, "summary.tasks_in_all")
        typed(self.summary.get("classes_left_out"), tuple[str, ...], "summary.classes_left_out")

    @property
    def classes_left_out(self) -> tuple[str, ...]:
        """Return the classes of the split that the sampler could not use."""
        return tuple(self.summary.get("classes_left_out") or ())

    @property
    def sampler_name(self) -> str:
        """Return the sampler's name, or `unknown`."""
        return self.sampler.name if self.sampler else UNKNOWN

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the sampler's options; empty if the sampler is unknown."""
        return self.sampler.options if self.sampler else {}

    @property
    def context_column(self) -> str | None:
        """Return the catalog's column of contexts, if the sampler uses contexts."""
        column = self.options.get("context_column")
        return column if isinstance(column, str) else None


@dataclass(frozen=True)
class MethodRecord:
    """Record of an evaluated method: its spelling, all options, and the number of warnings.

    unanswered: queries whose answers named none of the classes; they count as wrong
    collapsed: tasks in which it predicted at most half of the classes
    """

    spelling: str
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: int = 0
    unanswered: int = 0
    collapsed: int = 0


@dataclass(frozen=True)
class ResultsRecord(Record):
    """Record of results: the records of the task set and the features, and the methods."""

    tasks: TasksRecord = field(default_factory=TasksRecord)
    features: FeaturesRecord = field(default_factory=FeaturesRecord)
    methods: tuple[MethodRecord, ...] = ()
    seed: int | None = None

    @property
    def tasks_digest(self) -> str | None:
        """Return the digest of the task set."""
        return self.source("tasks")

    @property
    def features_digest(self) -> str | None:
        """Return the digest of the features."""
        return self.source("features")


@dataclass(frozen=True)
class SimilarityRecord(Record):
    """Record of a similarity: the image encoder, the two-tower model, the text template, the context column."""

    images: str | None = None
    model: str | None = None
    template: str | None = None
    context_column: str | None = None
