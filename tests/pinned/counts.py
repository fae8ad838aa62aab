"""The counts that are pinned: every method, on tasks of several kinds."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa

import shotproof as sp
from tests.drawn_tasks import draw_task_set
from tests.pinned.draws import Draw, Given, draw
from tests.pinned.worlds import features_of, shapes

Kind = Literal["vectors", "maps", "positive", "texts", "pixels", "dial"]
Asked = Literal["varying sizes", "fewstab", "shapes random", "shapes fewstab"]


@dataclass(frozen=True)
class Count:
    """The correct answers of one method on one task set, class by class.

    tasks: the task set, from `asked`
    features: which features of its items, from `asked`
    """

    method: str
    tasks: Asked = "varying sizes"
    features: Kind = "vectors"
    seed: int = 0

    @property
    def id(self) -> str:
        """Readable, and as the pin is called."""
        return " | ".join([self.method, self.tasks, self.features, *([f"seed {self.seed}"] if self.seed else [])])


# Every method, with its options at their defaults.
METHODS = (
    "ncc",
    "cosine",
    "logistic",
    "ridge",
    "knn",
    "simpleshot",
    "matching",
    "linear",
    "svm",
    "diffkendall",
    "dn4",
    "deepbdc",
    "frn",
    "mcl",
    "adm",
    "hela-vfa",
    "bd-cspn",
    "laplacianshot",
    "tim",
    "pt-map",
    "proto-lp",
    "paddle",
    "bpa",
    "ecpe",
    "transductive-finetune",
    "dn4-global",
    "baseline++",
    "alpha-tim",
)
# Options beside the defaults.
VARIANTS: dict[str, tuple[str, ...]] = {
    "cosine": ("cosine(rows='raw')",),
    "ridge": ("ridge(penalty=1)",),
    "simpleshot": ("simpleshot(form='UN')",),
    "matching": ("matching(scale=10)",),
    "linear": ("linear(init='zero', batch=None)",),
    "diffkendall": ("diffkendall(form='smooth')",),
    "dn4": ("dn4(k=1)",),
    "frn": ("frn(divide=False)",),
    "bd-cspn": ("bd-cspn(form='laplacianshot')",),
    "laplacianshot": ("laplacianshot(strength=0.7, rectify=False)",),
    "paddle": (
        "paddle(penalty=0, steps=20, scale='unit')",
        "paddle(penalty=12)",
    ),
    "transductive-finetune": ("transductive-finetune(epochs=0)",),
    "tip-adapter": ("tip-adapter(scale=5)",),
    "tip-adapter-f": ("tip-adapter-f(scale=5, rate=0.05)",),
    "text-probe": ("text-probe(rate=0.05)",),
}
TEXTS = ("zero-shot", "tip-adapter", "tip-adapter-f", "text-probe")  # methods that read the texts of classes
MAPS = ("adm", "deepbdc", "dn4", "frn", "mcl")  # methods that need local maps
POSITIVE = ("ecpe", "proto-lp", "pt-map")  # methods that take powers of features: made for values above 0
DRAWING = ("baseline++", "linear", "transductive-finetune")  # methods that draw random numbers


def _counts() -> Iterator[Count]:
    for name in METHODS:
        kind: Kind = "maps" if name in MAPS else "positive" if name in POSITIVE else "vectors"
        for spec in (name, *VARIANTS.get(name, ())):
            yield Count(spec, features=kind)
            yield Count(spec, "fewstab", kind)
        if name in DRAWING:
            yield Count(name, seed=3)
        if name in MAPS:
            continue
        yield Count(name, "shapes random", "pixels")
        yield Count(name, "shapes fewstab", "dial")
    for name in TEXTS:
        for spec in (name, *VARIANTS.get(name, ())):
            yield Count(spec, features="texts")
            yield Count(spec, "fewstab", "texts")
    yield Count("ncc", features="maps")  # methods of vectors average maps
    yield Count("sklearn:sklearn.neighbors.KNeighborsClassifier(n_neighbors=1)")


COUNTS = list(_counts())


def count(call: Count) -> str:
    """A digest of the counts of a call: the one place that knows how methods are evaluated."""
    tasks, features = asked(call.tasks, call.features)
    results = sp.evaluate(tasks, features, [call.method], seed=call.seed)
    correct = results.table.column("n_correct").to_numpy().astype("<i8")
    return hashlib.sha256(correct.tobytes()).hexdigest()[:16]


@cache
def asked(tasks: Asked, kind: Kind) -> tuple[sp.TaskSet, sp.Features]:
    """A task set, and features of its items."""
    if tasks in ("shapes random", "shapes fewstab"):
        sampler = tasks.removeprefix("shapes ")
        given: tuple[Given, ...] = ("attributes",) if sampler == "fewstab" else ()
        return draw(Draw(sampler, 5, 0, world="shapes", way=5, query=10, given=given)), _shape_features(kind)
    if tasks == "fewstab":
        drawn = draw(Draw("fewstab", 5, 0, given=("attributes",)))
        features = features_of("plain", (4, 2, 2) if kind == "maps" else (16,))
    else:
        drawn, features = draw_task_set(tasks=5)
    values, items = features.array, features.table.column("item").to_pylist()
    if kind == "maps" and tasks == "varying sizes":
        features = sp.Features.from_array(items, values.reshape(-1, 4, 2, 2))
    if kind == "positive":
        features = sp.Features.from_array(items, np.exp(values / 2))
    if kind == "texts":
        features = _with_texts(features)
    return drawn, features


def _with_texts(features: sp.Features) -> sp.Features:
    """With a text for each class that lies near the mean of its items."""
    items = features.table.column("item").to_pylist()
    labels = [item.split("/")[0] for item in items]
    names, label_of_item = np.unique(labels, return_inverse=True)
    means = np.stack([features.array[label_of_item == label].mean(0) for label in range(len(names))])
    texts = means + 0.3 * np.random.default_rng(5).normal(size=means.shape)
    catalog = sp.Catalog(pa.table({"item": items, "path": items, "label": labels, "split": ["test"] * len(items)}))
    return features.with_texts(catalog, sp.Features.from_array(names.tolist(), texts))


@cache
def _shape_features(kind: Kind) -> sp.Features:
    """Of pictures that are drawn for it, or made up from the catalog."""
    if kind == "dial":
        return sp.encode(
            shapes().catalog(), sp.worlds.DialEncoder(share=0.4), runtime=sp.runtime(cache=None, workers=1)
        )
    with tempfile.TemporaryDirectory() as folder:
        return sp.encode(shapes().write(folder), "pixels", runtime=sp.runtime(cache=None, workers=1))
