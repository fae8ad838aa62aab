"""Calls whose answers must never change: which tasks every sampler draws, and what every method counts on them.

The tables say what is called, as data. Only `draw` and `count` know how Shotproof is called: when its functions change,
they change, and the tables and `pinned.json` stay. `python -m tests.pinned_calls` pins calls that are new in the tables
and never touches a pin that is there.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import shotproof as sp
from tests.conftest import draw_data
from tests.context_data import mixtures
from tests.drawn_tasks import draw_task_set

PINS = Path(__file__).parent / "pinned.json"
Given = Literal["attributes", "features"]
World = Literal["plain", "sources", "small class", "mixtures", "shapes"]
Kind = Literal["vectors", "maps", "positive", "texts", "pixels", "dial"]
Asked = Literal["varying sizes", "fewstab", "shapes random", "shapes fewstab"]


# Tasks


@dataclass(frozen=True)
class Draw:
    """One task set.

    world: the catalog that it is drawn from, with its attributes and features
    given: which of these the sampler gets
    like: the sampler of the task set whose queries it gets
    part: which of the matched sets, where the sampler is `context`
    """

    sampler: str
    shot: int
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    world: World = "plain"
    given: tuple[Given, ...] = ()
    like: str | None = None
    part: str | None = None
    way: int = 4
    query: int = 6
    tasks: int = 20

    @property
    def id(self) -> str:
        """Readable, and as the pin is called."""
        options = [f"{name}={value}" for name, value in self.options.items()]
        options += [f"like={self.like}"] if self.like else []
        call = f"{self.sampler}({', '.join(options)})" if options else self.sampler
        extra = [self.part] if self.part else []
        extra += [self.world] if self.world != "plain" else []
        # Where class distances are not given, features stand in for them.
        extra += ["by features"] if self.sampler == "semantic" and "features" in self.given else []
        return " | ".join([call, *extra, f"{self.shot}-shot", f"seed {self.seed}"])


def _variants() -> Iterator[dict[str, Any]]:
    """Every sampler and variant, without shots and seeds."""
    attributes, features = {"given": ("attributes",)}, {"given": ("features",)}

    yield {"sampler": "random"}
    yield {"sampler": "random", "world": "sources"}
    yield {"sampler": "random", "options": {"query_dirichlet": 2.0}}
    yield {"sampler": "random", "options": {"query_dirichlet": 0.5}, "world": "sources"}
    yield {"sampler": "random", "options": {"skip_small_classes": True}, "world": "small class"}

    yield {"sampler": "depletion"}
    yield {"sampler": "depletion", "world": "sources"}
    yield {"sampler": "depletion", "options": {"skip_small_classes": True}, "world": "small class"}

    yield {"sampler": "fewstab", **attributes}
    for support in ("exclusive", "attribute", "random"):
        for selection in ("lowest", "inter", "intra"):
            yield {"sampler": "fewstab", "options": {"support": support, "query_selection": selection}, **attributes}
        yield {"sampler": "fewstab", "options": {"support": support}, "world": "sources", **attributes}
    yield {"sampler": "fewstab", "options": {"skip_small_classes": True}, "world": "small class", **attributes}
    yield {"sampler": "fewstab", "options": {"variant": "published"}, **attributes}
    yield {"sampler": "fewstab", "options": {"variant": "published"}, "world": "sources", **attributes}

    for name in ("fastdiffsel", "greedy", "hardest"):
        yield {"sampler": name, **features}
        yield {"sampler": name, "options": {"mode": "easy"}, **features}
        yield {"sampler": name, "options": {"normalise": True}, **features}
        yield {"sampler": name, "like": "random", **features}
        yield {"sampler": name, "like": "meta_dataset", "tasks": 4, **features}
        yield {"sampler": name, "world": "sources", **features}
    yield {"sampler": "fastdiffsel", "options": {"loss": "mean"}, **features}
    yield {"sampler": "fastdiffsel", "options": {"steps": 3}, **features}
    yield {"sampler": "fastdiffsel", "options": {"alpha": 20000.0, "scale": 2.0}, **features}
    yield {"sampler": "greedy", "options": {"rounds": 1, "scale": 2.0}, **features}
    yield {"sampler": "hardest", "options": {"effort": "low"}, **features}
    yield {"sampler": "hardest", "options": {"effort": "high"}, **features}

    yield {"sampler": "filter", "options": {"candidates": 5}, **features}
    yield {"sampler": "filter", "options": {"candidates": 5, "by": "loss", "keep": "best"}, **features}
    yield {"sampler": "filter", "options": {"candidates": 5, "base": "meta_dataset"}, **features}
    yield {"sampler": "filter", "tasks": 4, **features}  # the default is a hundred candidates

    yield {"sampler": "meta_dataset"}
    yield {"sampler": "meta_dataset", "world": "sources"}
    limits = {"max_way": 6, "max_query": 4, "max_shot": 8, "max_support": 20}
    yield {"sampler": "meta_dataset", "options": limits}

    yield {"sampler": "semantic", **features}
    for file in DISTANCES:
        yield {"sampler": "semantic", "options": {"class_distances": file}}
    yield {"sampler": "semantic", "options": {"class_distances": "matrix.csv", "temperature": 0.6}, "world": "sources"}

    words = {"support_where": "word00 or word01", "query_where": "not word00 and not word01"}
    contexts = {"support_where": "context in (context0, context1)", "query_where": "context != none"}
    for where in (words, contexts):
        yield {"sampler": "shift", "options": where, **attributes}
        yield {"sampler": "shift", "options": {**where, "shifted": False}, **attributes}
    yield {"sampler": "shift", "options": words, "world": "sources", **attributes}

    # Three ways of four contexts: `ood` has a context that `hard_ood` has not.
    clean, no_hard = {"clean_value": "none"}, {"clean_value": "none", "hard_ood": False}
    for name in ("iid", "ood", "hard_ood", "clean"):
        yield {"sampler": name, "options": clean, "way": 3}
        yield {"sampler": name, "options": clean, "world": "sources", "way": 3}
        yield {"sampler": "context", "options": clean, "part": name, "world": "mixtures", "way": 3}
        if name != "clean":
            yield {"sampler": name, "way": 3}
            yield {"sampler": "context", "part": name, "way": 3}
        if name != "hard_ood":
            yield {"sampler": "context", "options": no_hard, "part": name}
        several = {"clean_value": "none", "support_contexts": 2}
        yield {"sampler": "context", "options": several, "part": name, "world": "mixtures", "way": 3}

    yield {"sampler": "placebo", "like": "random"}
    yield {"sampler": "placebo", "options": {"per_task": False}, "like": "random"}
    yield {"sampler": "placebo", "like": "random", "world": "sources"}
    yield {"sampler": "placebo", "like": "iid", "way": 3}

    yield {"sampler": "random", "world": "shapes", "way": 5, "query": 10}
    yield {"sampler": "fewstab", "world": "shapes", "way": 5, "query": 10, **attributes}


def _chooses_shots(variant: dict[str, Any]) -> bool:
    """Whether the tasks do not depend on the shots that are asked for."""
    samplers = (variant["sampler"], variant.get("like"), variant.get("options", {}).get("base"))
    return "meta_dataset" in samplers


# Distances between the eight classes of `draw_data`, in each kind of file.
DISTANCES = {
    "matrix.csv": "\n".join(
        [f"class,{','.join(f'class{c:02d}' for c in range(8))}"]
        + [f"class{a:02d},{','.join(str((a - b) ** 2 + abs(a - b)) for b in range(8))}" for a in range(8)]
    ),
    "tree.json": json.dumps(
        {"all": {"low": ["class00", "class01", "class02"], "high": {"odd": ["class05", "class07"], "class03": []}}}
        | {"rest": ["class04", "class06"]}
    ),
    "attributes.csv": "\n".join(
        ["class,legs,size", *[f"class{c:02d},{c * c % 7},{c / 4}" for c in range(8)]],
    ),
}

DRAWS = [
    Draw(**variant, shot=shot, seed=seed)
    for variant in _variants()
    for shot, seed in (((5, 0), (5, 3)) if _chooses_shots(variant) else ((1, 0), (5, 3)))
]


def draw(call: Draw) -> sp.TaskSet:
    """The task set of a call: the one place that knows how tasks are sampled."""
    catalog, attributes = world_of(call.world)
    design: dict[str, Any] = {"way": call.way, "shot": call.shot, "query": call.query, "tasks": call.tasks}
    # The tables keep the spelling of the time when they were pinned.
    options: dict[str, Any] = {name.replace("normalise", "normalize"): value for name, value in call.options.items()}
    if "base" in options:
        options["base"] = options["base"].replace("_", "-")
    data: dict[str, Any] = {}
    if "attributes" in call.given:
        data["attributes"] = attributes
    if "features" in call.given:
        data["features"] = features_of(call.world)
    if call.like is not None:
        data["like"] = sp.sample(catalog, call.like, **design, seed=call.seed + 9)
    with tempfile.TemporaryDirectory() as folder:
        if "class_distances" in options:
            file = Path(folder) / options["class_distances"]
            file.write_text(DISTANCES[file.name], encoding="utf-8")
            options["class_distances"] = file
        sampler = sp.samplers.make({"name": call.sampler, **options})
        if call.part is not None:
            return sp.sample_context(catalog, sampler, **design, seed=call.seed)[call.part.replace("_", "-")]
        return sp.sample(catalog, sampler, **design, seed=call.seed, **data)


def pin_of(tasks: sp.TaskSet) -> str:
    """The digest of a task set, and what pairs it with others where that is not the digest itself."""
    return tasks.digest if tasks.match == tasks.digest else f"{tasks.digest} paired by {tasks.match}"


# Counts


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


# What the calls are given


@cache
def world_of(world: World) -> tuple[sp.Catalog, sp.Attributes]:
    """A catalog and its attributes."""
    if world == "shapes":
        return _shapes().catalog(), _shapes().attributes()
    if world == "mixtures":
        return mixtures(), draw_data()[1]
    catalog, attributes = draw_data(items=60, source_of=2 if world == "sources" else None)
    if world == "small class":
        small = [item.startswith("class03/") and not item.endswith("0") for item in catalog.items]
        catalog = sp.Catalog(catalog.table.filter(pa.array(~np.array(small))))
    return catalog, attributes


@cache
def features_of(world: World, shape: tuple[int, ...] = (8,)) -> sp.Features:
    """Features by chance, in which classes stand a little apart."""
    table = world_of(world)[0].table
    labels = np.unique(table.column("label").to_pylist(), return_inverse=True)[1]
    random = np.random.default_rng(3)
    means = 0.6 * random.normal(size=(labels.max() + 1, *shape))
    values = means[labels] + random.normal(size=(len(labels), *shape))
    return sp.Features.from_array(table.column("item").to_pylist(), values)


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
        return sp.encode(_shapes().catalog(), sp.DialEncoder(share=0.4), runtime=sp.runtime(cache=None, workers=1))
    with tempfile.TemporaryDirectory() as folder:
        return sp.encode(_shapes().write(folder), "pixels", runtime=sp.runtime(cache=None, workers=1))


@cache
def _shapes() -> sp.ShapesWorld:
    return sp.ShapesWorld(classes=8, items=40, size=32)


@cache
def pins() -> dict[str, dict[str, Any]]:
    """What was pinned: of tasks and counts, the digest of each call."""
    read: dict[str, dict[str, Any]] = json.loads(PINS.read_text(encoding="utf-8"))
    return read


def pin_new() -> None:
    """Add the calls that have no pin yet."""
    known = pins() if PINS.exists() else {}
    tables: dict[str, tuple[list[Any], Callable[[Any], str]]] = {
        "tasks": (DRAWS, lambda call: pin_of(draw(call))),
        "counts": (COUNTS, count),
    }
    made = {
        table: {call.id: known.get(table, {}).get(call.id) or answer(call) for call in calls}
        for table, (calls, answer) in tables.items()
    }
    PINS.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    pin_new()
