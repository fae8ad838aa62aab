"""What re-evaluation needs beside results: the task sets, the data, the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.methods.method import AnyMethod, Method, make_method
from shotproof.stats.splits import SPLITS
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class Material:
    """What the intervals `images`, `classes` and `depletion` are made from.

    tasks: the task sets that the results are on
    features: one for each encoder of the results
    attributes: where a sampler needs them
    methods: those that cannot be made anew from their name, such as a scikit-learn estimator with its settings
    splits: random halvings of the data; the result is the same for any number of workers
    """

    tasks: Sequence[TaskSet] = ()
    catalog: Catalog | None = None
    features: Sequence[Features] = ()
    attributes: Attributes | None = None
    methods: Sequence[AnyMethod] = ()
    splits: int = SPLITS
    workers: int = 1
    seed: int = 0

    def require(self, interval: str, *names: str) -> None:
        """Refuse to go on without these."""
        missing = [name for name in names if getattr(self, name) in (None, (), [])]
        if missing:
            raise InputError(
                f"the interval '{interval}' re-evaluates the methods; it needs {', '.join(names)}, and there is no "
                + ", no ".join(f"{name} (--{name})" for name in missing)
            )

    def task_set(self, digest: str | None) -> TaskSet:
        """The task set with this digest."""
        for given in self.tasks:
            if given.digest == digest:
                return given
        known = ", ".join(given.digest for given in self.tasks)
        raise Mismatch(f"the results are on the task set {digest}, which was not given: given were {known}")

    def features_of(self, encoder: str, digest: str | None) -> Features:
        """The features that the results of an encoder were made from."""
        for given in self.features:
            if digest in (None, given.digest):
                return given
        known = ", ".join(given.digest for given in self.features)
        raise Mismatch(f"the results of encoder '{encoder}' are on features {digest}, not on those given ({known})")

    def method(self, name: str) -> Method:
        """The method with this name: one of those given, or made anew."""
        for given in map(make_method, self.methods):
            if given.name == name:
                return given
        try:
            return make_method(name)
        except InputError as error:
            raise InputError(f"method '{name}' of the results cannot be made anew: {error}") from error
