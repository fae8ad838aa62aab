"""The JSON Schema of experiment files, so that editors complete and check them: made from the options of components.

python -m shotproof.pipeline.experiment_schema    # writes the file that is shipped
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from shotproof.analysis.explanation.mismatch import MISMATCHES
from shotproof.analysis.projection import PAGE_PROJECTIONS
from shotproof.core import limits
from shotproof.core.registry import Registry
from shotproof.core.storage.whole_files import write_text
from shotproof.pipeline.components import all_registries
from shotproof.pipeline.experiment import ON_ERROR
from shotproof.pipeline.mix_section import mix_options
from shotproof.pipeline.tune_on import TASKS
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import Covers

SHIPPED = Path(__file__).parent / "experiment.schema.json"


def _within(bounds: limits.Limits) -> dict[str, Any]:
    return {"type": "integer", "minimum": bounds.least, "maximum": bounds.most}


_SEED = _within(limits.SEED)
_TEXT = {"type": "string"}
_SHAPE: dict[str, Any] = {
    "split": {**_TEXT, "description": "The split to draw from; needed where there is more than one."},
    "way": {**_within(limits.WAY), "default": 5, "description": "Classes per task."},
    "shots": {
        "type": "array",
        "items": _within(limits.SHOT),
        "default": [1, 5],
        "description": "Support items per class, one by one.",
    },
    "query": {**_within(limits.QUERY), "default": 15, "description": "Query items per class."},
    "tasks": {**_within(limits.TASKS), "default": 600, "description": "Number of tasks."},
    "seeds": {"type": "array", "items": _SEED, "default": [0], "description": "One task set per seed."},
}


def experiment_schema() -> dict[str, Any]:
    """The schema, with every registered component and its options."""
    known = all_registries()
    sampler = {
        "encoder": {**_TEXT, "description": "Whose features the sampler is given; the first encoder's unless given."},
        "like": {**_TEXT, "description": "A sampler before it, whose queries are taken over."},
        "attributes": {**_TEXT, "description": "One set of attributes, by name; all of them unless given."},
        **_SHAPE,
    }
    on = "Encoders of [features], or models that it adapts; all of them unless given."
    use = {
        "on": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}], "description": on},
        "shots": {**_SHAPE["shots"], "description": "On tasks of so many shots; on all unless given."},
    }
    use["shots"].pop("default")
    detectors = {"type": "array", "items": _component(known["detectors"])}
    sections: dict[str, Any] = {
        "catalog": {
            "type": "object",
            "properties": {
                "root": {**_TEXT, "description": "The data's folder."},
                "file": {**_TEXT, "description": "A catalog that is there; its paths start from root, or its folder."},
                "layout": _component(known["layouts"]),
                "splits": {**_TEXT, "description": "A CSV with the columns label and split."},
                "split": {**_TEXT, "description": "The one split to use: nothing is made of the others."},
                "names": {**_TEXT, "description": "A CSV with the columns label and name, for pages and tables."},
                "name": {**_TEXT, "description": "What pages call the data set."},
            },
        },
        "mix": {
            **_section(
                {
                    "mapping": {**_TEXT, "description": "A TOML or CSV file, or the name of one that comes along."},
                    **{key: each.json_schema() for key, each in mix_options().items()},
                    "embedding": {**_TEXT, "default": "logmel", "description": "What says who is alike; or none."},
                }
            ),
            "required": ["mapping"],
            "description": "Mix the recordings with backgrounds first: the mixtures are the data.",
        },
        "attributes": _section(
            {
                "detectors": {**detectors, "description": "Detectors whose words are taken together."},
                "sets": {
                    "type": "object",
                    "additionalProperties": detectors,
                    "description": "Detectors by the name of a set of attributes; each set has its own tasks.",
                },
                "file": {**_TEXT, "description": "Attributes that are there."},
                "files": {"type": "object", "additionalProperties": _TEXT, "description": "Several, by name."},
            }
        ),
        "features": _section(
            {
                "encoders": {"type": "array", "items": _component(known["encoders"]), "minItems": 1},
                "stages": {
                    "anyOf": [{"const": "all"}, {"type": "array", "items": _within(limits.COUNT), "minItems": 1}],
                    "description": "Blocks of networks whose pooled output is encoded too, counted from 1.",
                },
                "transforms": {"type": "array", "items": _component(known["transforms"])},
                "on_error": {"enum": list(ON_ERROR), "description": "What to do with files that cannot be read."},
            }
        ),
        "tasks": _section(
            {
                **_SHAPE,
                "seed": {**_SEED, "description": "Instead of seeds, where there is one."},
                "placebo": {
                    "type": "boolean",
                    "default": True,
                    "description": "Draw the placebo of each task set that attributes or contexts decide.",
                },
                "samplers": {"type": "array", "items": _component(known["samplers"], sampler), "minItems": 1},
                "files": {
                    "type": "array",
                    "items": _TEXT,
                    "minItems": 1,
                    "description": "Task sets drawn before; with these, none are drawn unless samplers are given.",
                },
            }
        ),
        "evaluate": _section(
            {
                "methods": {"type": "array", "items": _component(known["methods"], use), "minItems": 1},
                "model": {**_TEXT, "description": "What methods such as finetune adapt: FILE.model, or lite0."},
                "models": {
                    "type": "array",
                    "items": _TEXT,
                    "minItems": 1,
                    "uniqueItems": True,
                    "description": "Instead of model, several.",
                },
                "tune_on": {
                    **_section(
                        {
                            "split": {**_TEXT, "description": "The split of the validation tasks."},
                            "tasks": {
                                **_within(limits.TASKS),
                                "default": TASKS,
                                "description": "How many for each shape of tasks.",
                            },
                            "rates": {
                                "type": "array",
                                "items": {"type": "number", "minimum": 0},
                                "minItems": 1,
                                "uniqueItems": True,
                                "description": "The learning rates to choose from; each method's own unless given.",
                            },
                        }
                    ),
                    "required": ["split"],
                    "description": "Random validation tasks, on which the learning rates of adaptations are chosen.",
                },
                "allow_seen": {
                    "type": "boolean",
                    "default": False,
                    "description": "Tasks may have classes that a model was trained on.",
                },
                "seed": {**_SEED, "description": "For methods that draw random numbers."},
            }
        ),
        "runtime": _section(
            {
                "engine": {**_TEXT, "default": "local"},
                "workers": {**_within(limits.WORKERS), "description": "Processes; as many as pay off unless given."},
                "device": {**_TEXT, "description": "cpu, cuda:0, or cuda for all GPUs."},
                "batch_size": {**_within(limits.BATCH), "description": "Items that a network takes at a time."},
                "cache": {**_TEXT, "description": "The folder that keeps features."},
            }
        ),
        "output": _section(
            {
                "folder": {**_TEXT, "description": "Where all files go; the file's name and -results unless given."},
                "title": {**_TEXT, "description": "The page's title."},
                "intervals": {
                    "type": "array",
                    "items": {"enum": list(get_args(Covers))},
                    "uniqueItems": True,
                    "description": "The first is what statements are by; images where the data allows unless given.",
                },
                "mismatch": {
                    "enum": list(MISMATCHES),
                    "default": "class",
                    "description": "Between support and query: class by class, or pooled over a task.",
                },
                "metric": {"enum": list(METRICS), "default": "acc", "description": "What statements and ranks are by."},
                "projection": {
                    "enum": list(PAGE_PROJECTIONS),
                    "default": "pca",
                    "description": "How an iid task and its ood one are laid out on a plane.",
                },
            }
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Shotproof experiment",
        **_section(sections),
        "required": ["catalog"],
    }


def _section(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _component(registry: Registry[Any], further: dict[str, Any] | None = None) -> dict[str, Any]:
    """A spelling, or a table of a name and options: one alternative per registered name, and one for spellings."""
    names = registry.names()
    tables = []
    for name in names:
        component = registry.get(name)
        options = {each.name: each.json_schema() for each in component.options()}
        tables.append(
            {
                "title": name,
                "description": component.about,
                **_section({"name": {"const": name}, **options, **(further or {})}),
                "required": ["name"],
            }
        )
    spelled = {"type": "string", "pattern": r"[(:]"}
    any_spelled = {**_section({"name": spelled, **(further or {})}), "required": ["name"]}
    return {"anyOf": [{"enum": names}, spelled, *tables, any_spelled]}


def schema_text() -> str:
    """The schema as it is shipped."""
    return json.dumps(experiment_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SHIPPED, schema_text())
