"""What a file was made from: typed, versioned, kept in the file's metadata.

A record says what, by which options, from which digests, with which seed. It does not say when, so that the same inputs
give the same bytes; a run's log does.
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
    """What the metadata of a file of any kind begins with; all of it is lacking in somebody's own file."""

    format: int | None = None
    kind: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Maker:
    """A component as it was used: its name, how a user spells it, and every option with its value."""

    name: str
    spelling: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, component: Component) -> Self:
        """A component's record; options that are no plain values are told by their description.

        A file or folder is told by its name where it was given by its full path, which is of this machine alone.
        """
        spelling, options = component.spelling, plain(component.parameters())
        for each in component.options():
            value = getattr(component, each.name)
            if (each.path or each.argument) and isinstance(value, str | Path) and Path(value).is_absolute():
                options[each.name] = Path(value).name if each.argument else options[each.name]
                spelling = spelling.replace(str(value), Path(value).name)
        return cls(component.name, spelling, options)

    def __str__(self) -> str:
        return self.spelling or self.name


TRANSFORMED = " > "  # what stands in names between an encoder and each of its transforms


@dataclass(frozen=True)
class Source:
    """A file that another was made from.

    transforms: of features, the transforms that followed the encoder, spelled
    """

    digest: str
    name: str = ""
    transforms: tuple[str, ...] = ()


def sources_of(component: Component) -> dict[str, Source]:
    """The files that a component's options name, with their digests, by the component's name."""
    sources = {}
    for value in (getattr(component, each.name) for each in component.options() if each.path):
        if isinstance(value, Path) and is_regular(value):
            sources[component.name] = Source(file_sha256(value)[:32], value.name)
    return sources


@dataclass(frozen=True)
class Record:
    """What all records share.

    name: what pages and tables call it
    sources: what it was made from, by role, e.g. `catalog`, `attributes`, `features`, `like`
    stated_digest: the digest that the file says it has; None of what was not read from a file
    """

    name: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    stated_digest: str | None = None

    @classmethod
    def read(cls, meta: Mapping[str, Any] | Record) -> Self:
        """From a file's metadata; what somebody's own file lacks is left at its default.

        Raises:
            InputError: a value has another type than the record's field; the message has its place.
        """
        if isinstance(meta, cls):
            return meta
        header: Header = typed(meta, Header)
        given: Meta = typed(meta, Mapping[str, Any])
        read: Self = typed({**given, "stated_digest": header.digest}, cls)
        return read

    def to_meta(self) -> Meta:
        """As plain values, for a file's metadata; what is at its default is left out."""
        return {
            each.name: plain(value)
            for each in dataclasses.fields(self)
            if each.name != "stated_digest" and (value := getattr(self, each.name)) != default_of(each)
        }

    def source(self, role: str) -> str | None:
        """The digest of what it was made from in this role; None where it was not, or does not say."""
        found = self.sources.get(role)
        return None if found is None else found.digest


@dataclass(frozen=True)
class CatalogRecord(Record):
    """A catalog's: its name is that of the data set.

    splits: the file that replaced the layout's splits, with its SHA-256; names: that of the classes' names
    clean_value: the context that means none
    path_columns: columns that hold paths, beside `path`
    mix: how sounds were mixed with backgrounds; skipped, dropped: what was left out, and why
    notes: what else the layout tells
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
    """Attributes': the detectors whose words they are, and the split if they are of one alone."""

    detectors: tuple[Maker, ...] = ()
    split: str | None = None

    @property
    def detector(self) -> str:
        """All detectors, spelled."""
        return " + ".join(map(str, self.detectors)) or UNKNOWN


@dataclass(frozen=True)
class FeaturesRecord(Record):
    """Features': the encoder, and the transforms that followed.

    shape: channels, height and width of local maps; None where an item has one vector
    fingerprint: all that a feature depends on besides the file's content
    skipped: items whose files could not be read
    trained_on: the classes that the encoder was trained on, where it is a model of ours
    pretrained_on: the list of classes, e.g. `imagenet`, that its weights from elsewhere were trained on
    """

    encoder: Maker | None = None
    transforms: tuple[Maker, ...] = ()
    shape: tuple[int, ...] | None = None
    fingerprint: str | None = None
    skipped: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    pretrained_on: str | None = None

    @property
    def classifier(self) -> str:
        """What tables call the features: `lite0 > l2`, or `features` where nothing is known of them."""
        encoder = self.name or (str(self.encoder) if self.encoder else "features")
        return TRANSFORMED.join([encoder, *map(str, self.transforms)])

    def as_source(self, digest: str) -> Source:
        """Name the features of this digest as what something was made from."""
        return Source(digest, self.classifier, tuple(map(str, self.transforms)))


@dataclass(frozen=True)
class ModelRecord(Record):
    """A trained model's.

    architecture: what a pretrained backbone must know, beside its options, to be built without its original weights
    preprocessing: how items become its input
    settings: how it was trained: every value of the training settings
    classes: the classes of the split that it was trained on, in the order of its head
    seen: all classes that its weights have seen, with those of the model that it was trained from
    curve: one row per epoch: its loss, learning rate and validation accuracy
    best: the epoch whose weights these are
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
    """A task set's.

    way, shot, query: the size of every task; None where tasks differ
    tasks: how many were drawn
    match: the same for sets whose tasks are paired one by one; None of a set that is like no other
    summary: what happened while drawing: tries, fallbacks, classes left out
    mix: how the sounds that the tasks are of were mixed
    medium: what the items are, `image` or `sound`; None where it is not known, or both
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
        """The classes of the split that the sampler could not use."""
        return tuple(self.summary.get("classes_left_out") or ())

    @property
    def sampler_name(self) -> str:
        """The sampler's name, or `unknown`."""
        return self.sampler.name if self.sampler else UNKNOWN

    @property
    def options(self) -> Mapping[str, Any]:
        """The sampler's options; none where nothing is known."""
        return self.sampler.options if self.sampler else {}

    @property
    def context_column(self) -> str | None:
        """The catalog's column with the contexts, of a sampler that goes by these."""
        column = self.options.get("context_column")
        return column if isinstance(column, str) else None


@dataclass(frozen=True)
class MethodRecord:
    """A method as it was evaluated: its spelling, every option, and how often it warned.

    unanswered: queries whose answers named none of the classes, and counted as wrong
    collapsed: tasks in which it answered with at most half of the classes
    """

    spelling: str
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: int = 0
    unanswered: int = 0
    collapsed: int = 0


@dataclass(frozen=True)
class ResultsRecord(Record):
    """Results': the task set and the features, with all that their files say of themselves, and the methods."""

    tasks: TasksRecord = field(default_factory=TasksRecord)
    features: FeaturesRecord = field(default_factory=FeaturesRecord)
    methods: tuple[MethodRecord, ...] = ()
    seed: int | None = None

    @property
    def tasks_digest(self) -> str | None:
        """The digest of the task set."""
        return self.source("tasks")

    @property
    def features_digest(self) -> str | None:
        """The digest of the features."""
        return self.source("features")


@dataclass(frozen=True)
class SimilarityRecord(Record):
    """A similarity's: the images' encoder, the two-tower model, the text around names, the column of contexts."""

    images: str | None = None
    model: str | None = None
    template: str | None = None
    context_column: str | None = None
