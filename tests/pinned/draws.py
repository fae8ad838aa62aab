"""The task sets that are pinned: every sampler and variant."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import shotproof as sp
from tests.context_data import sample_context
from tests.pinned.worlds import World, features_of, world_of

Given = Literal["attributes", "features"]


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

    yield {"sampler": "changed", "options": {"change": "blur(severity=5)", "side": "both"}, "like": "random"}
    for change in ("only-foreground", "mixed-same", "mixed-random", "mixed-rival"):
        yield {"sampler": "changed", "options": {"change": change}, "like": "random", "world": "masked"}

    yield {"sampler": "chosen", "like": "random"}
    yield {"sampler": "chosen", "like": "random", "world": "sources"}
    yield {"sampler": "chosen", "options": {"choose": "spread"}, "like": "random", **attributes}
    yield {"sampler": "chosen", "options": {"choose": "spread"}, "like": "iid", "way": 3}
    yield {"sampler": "chosen", "options": {"choose": "spread", "cues": 2}, "like": "random"}
    for choose in ("typical", "easy"):
        yield {"sampler": "chosen", "options": {"choose": choose}, "like": "random", **features}
        yield {"sampler": "chosen", "options": {"choose": choose, "normalise": True}, "like": "random", **features}

    yield {"sampler": "copied", "options": {"changes": ("noise", "blur(severity=5)")}, "like": "random"}
    for change in ("mixed-same", "mixed-random", "mixed-rival"):
        yield {"sampler": "copied", "options": {"changes": (change,)}, "like": "random", "world": "masked"}

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
            return sample_context(catalog, sampler, **design, seed=call.seed)[call.part.replace("_", "-")]
        return sp.sample(catalog, sampler, **design, seed=call.seed, **data)


def pin_of(tasks: sp.TaskSet) -> str:
    """The digest of a task set, and what pairs it with others where that is not the digest itself."""
    return tasks.digest if tasks.match == tasks.digest else f"{tasks.digest} paired by {tasks.match}"
