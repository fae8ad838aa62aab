"""Base class and registry of remedies: each proposes treatments of a classifier, which are tried on the user's data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.cures.class_parts import FIT
from shotproof.features.encoder import Encoder
from shotproof.features.features import Features
from shotproof.features.transforms import Transform, transform
from shotproof.learners.method import Method
from shotproof.tasks.taskset import TaskShape

if TYPE_CHECKING:
    from shotproof.models.model import Model

Family = Literal["features", "supports", "copies", "heads", "encoders", "training"]


@dataclass(frozen=True)
class RemedyData:
    """Data that remedies are fitted on, and the classifier that they treat.

    catalog: items, with the part of each class as its split
    features, method: the classifier
    further_features: features by other encoders
    further_methods: other methods that were evaluated
    attributes: words of the items; None if there are none
    context_column: column of the catalog with the contexts; None if there is none
    changed: features that also have changed versions of items to fit on; None if there are none
    copies: changes that the features have changed versions of supports for
    encoder: encoder of the features; None if it is unknown
    shape: shape of the tasks
    seed: random seed
    """

    catalog: Catalog
    features: Features
    method: Method
    further_features: Sequence[Features] = ()
    further_methods: Sequence[Method] = ()
    attributes: Attributes | None = None
    context_column: str | None = None
    changed: Features | None = None
    copies: Sequence[str] = ()
    encoder: Encoder | None = None
    shape: TaskShape = field(default_factory=TaskShape)
    seed: int = 0

    @cached_property
    def base_catalog(self) -> Catalog:
        """Return the items to fit on."""
        return self.catalog.in_split(FIT)

    def base(self, steps: Sequence[Transform | str] = (), features: Features | None = None) -> Features:
        """Return the features of the items to fit on, with earlier steps applied."""
        return transform(select_items(features or self.features, self.base_catalog.item_column), steps)

    def require_contexts(self) -> str:
        """Return the column with the contexts. Raise InputError if there are none."""
        if self.context_column is None:
            raise InputError("the data has no contexts: add a column with the context of each item to the catalog")
        return self.context_column

    def require_changed(self) -> Features:
        """Return the features with changed versions of items to fit on. Raise InputError if there are none."""
        if self.changed is None:
            raise InputError(
                "there are no changed versions of the items to fit on: the run needs an encoder, not only a file of "
                "features, and a changed set, e.g. study.change('mixed-random')"
            )
        return self.changed


@dataclass(frozen=True)
class Treatment:
    """Way to classify the same queries: features with transforms, a method, and supports that a sampler chooses.

    name: short name, e.g. `nap(by='words', directions=15)`
    steps: transforms of the features, in order
    features, method: the classifier; None is the classifier's own
    replicas: features of further trainings, of which the mean effect counts
    model: trained model of the features; None if nothing was trained
    sampler: sampler that chooses the supports anew, `like` each task set; None leaves them
    apply: how to apply it: lines of a command, or of Python
    """

    name: str
    steps: tuple[Transform | str, ...] = ()
    features: Features | None = None
    method: Method | None = None
    sampler: str | None = None
    apply: tuple[str, ...] = ()
    replicas: tuple[Features, ...] = ()
    model: Model | None = None


class Remedy(Component, ABC):
    """Remedy for a loss: a record of options. It proposes one or more treatments, of which the data chooses one.

    family: what it treats
    needs: what it takes beyond the supports and queries themselves; empty if nothing
    """

    kind: ClassVar[str] = "remedy"
    family: ClassVar[Family]
    needs: ClassVar[str] = ""

    @abstractmethod
    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose treatments, fitted on the classes to fit on.

        Raises:
            InputError: it cannot be tried on this data; the message says why, and what would allow it.
        """


remedies: Registry[Remedy] = Registry(
    "remedy",
    {
        "center-contexts": "shotproof.cures.feature_remedies:CenterContextsRemedy",
        "copies": "shotproof.cures.support_remedies:CopiesRemedy",
        "encoder": "shotproof.cures.classifier_remedies:EncoderRemedy",
        "head": "shotproof.cures.classifier_remedies:HeadRemedy",
        "leace": "shotproof.cures.feature_remedies:LeaceRemedy",
        "nap": "shotproof.cures.feature_remedies:NapRemedy",
        "preprocess": "shotproof.cures.feature_remedies:PreprocessRemedy",
        "supports": "shotproof.cures.support_remedies:SupportsRemedy",
        "train": "shotproof.cures.training_remedy:TrainingRemedy",
        "wccn": "shotproof.cures.feature_remedies:WccnRemedy",
    },
)

DEFAULT_REMEDIES = (
    "nap(by='changes')",
    "nap(by='contexts')",
    "nap(by='words')",
    "leace(by='contexts')",
    "leace(by='words')",
    "center-contexts",
    "wccn",
    "preprocess",
    "head",
    "encoder",
    "copies",
    "supports(choose='spread')",
    "supports(choose='typical')",
    "supports(choose='easy')",
)
# They take hours without a GPU, so they are tried only if named.
REMEDIES_ON_REQUEST = ("train(on='stress')", "train(on='contexts')", "train(on='changes')")


def select_items(features: Features, items: pa.Array | pa.ChunkedArray) -> Features:
    """Return the features of some items, in their order."""
    rows = pa.array(features.rows_of(items))
    record = replace(features.record, stated_digest=None)
    return Features(features.table.take(rows).combine_chunks(), record)


def has_items(features: Features, items: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether features have all of these items."""
    return bool(pc.all(pc.is_in(items, value_set=features.table.column("item"))).as_py())
