"""Shotproof stress-tests few-shot classifiers.

    data on disk -> Catalog -> Attributes -> Tasks -> Results -> Report
                       \\-> Features (encoder) --------^

In the order of the flow: `catalog`, `attributes`, `features`, `tasks`, `methods`, `evaluation`, `report`. `run` goes
through all of it from one file; `cli` is a thin layer over the same functions; `worlds` makes data with a known truth.

    import shotproof as sp

    catalog = sp.read_layout("birds/", "folder")
    attributes = sp.detect(catalog, "photometric")
    features = sp.encode(catalog, "lite0")
    random = sp.sample(catalog, "random", split="test", tasks=600, seed=0)
    biased = sp.sample(catalog, "fewstab", attributes=attributes, split="test", tasks=600, seed=0)
    results = [sp.evaluate(tasks, features, ["ncc", "logistic"]) for tasks in (random, biased)]
    sp.write_report("report.html", results, tasks=[random, biased], catalog=catalog)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shotproof.version import __version__

if TYPE_CHECKING:
    from shotproof.attributes.attributes import Attributes as Attributes
    from shotproof.attributes.detector import Detector as Detector
    from shotproof.attributes.detector import detect as detect
    from shotproof.attributes.detector import detectors as detectors
    from shotproof.catalog.catalog import Catalog as Catalog
    from shotproof.catalog.check import check_catalog as check_catalog
    from shotproof.catalog.context_statistics import context_statistics as context_statistics
    from shotproof.catalog.layout import Layout as Layout
    from shotproof.catalog.layout import layouts as layouts
    from shotproof.catalog.layout import read_layout as read_layout
    from shotproof.errors import ShotproofError as ShotproofError
    from shotproof.evaluation.evaluate import evaluate as evaluate
    from shotproof.evaluation.results import Results as Results
    from shotproof.explanation.explain import explain as explain
    from shotproof.features.encoder import Encoder as Encoder
    from shotproof.features.encoder import encode as encode
    from shotproof.features.encoder import encoders as encoders
    from shotproof.features.features import Features as Features
    from shotproof.features.transforms import transform as transform
    from shotproof.features.transforms import transforms as transforms
    from shotproof.geometry.change import feature_change as feature_change
    from shotproof.geometry.distribution import feature_distances as feature_distances
    from shotproof.methods.method import Method as Method
    from shotproof.methods.method import methods as methods
    from shotproof.report.comparison import compare_results as compare_results
    from shotproof.report.page import write_report as write_report
    from shotproof.run import run as run
    from shotproof.similarity.similarity import measure_similarity as measure_similarity
    from shotproof.sounds.clip import read_clip as read_clip
    from shotproof.sounds.mapping import read_mapping as read_mapping
    from shotproof.sounds.mix import MixSettings as MixSettings
    from shotproof.sounds.mix import mix as mix
    from shotproof.sounds.quality import Thresholds as Thresholds
    from shotproof.stats.compare import compare as compare
    from shotproof.stats.material import Material as Material
    from shotproof.stats.pilot import Pilot as Pilot
    from shotproof.stats.plan import Moments as Moments
    from shotproof.stats.plan import estimate_moments as estimate_moments
    from shotproof.stats.plan import plan as plan
    from shotproof.stats.power import tasks_needed as tasks_needed
    from shotproof.stats.transfer import transfer as transfer
    from shotproof.tasks.check import check_tasks as check_tasks
    from shotproof.tasks.context_sets import sample_context as sample_context
    from shotproof.tasks.sampler import Sampler as Sampler
    from shotproof.tasks.sampler import sample as sample
    from shotproof.tasks.sampler import samplers as samplers
    from shotproof.tasks.taskset import TaskSet as TaskSet
    from shotproof.worlds.contexts import ContextWorld as ContextWorld
    from shotproof.worlds.dial import DialEncoder as DialEncoder
    from shotproof.worlds.shapes import ShapesWorld as ShapesWorld
    from shotproof.worlds.sounds import SoundsWorld as SoundsWorld

# Where each public name lives. Names are imported when first used, so that `import shotproof` stays light.
_HOME = {
    "Attributes": "attributes.attributes",
    "Catalog": "catalog.catalog",
    "Detector": "attributes.detector",
    "ContextWorld": "worlds.contexts",
    "DialEncoder": "worlds.dial",
    "Encoder": "features.encoder",
    "Features": "features.features",
    "Layout": "catalog.layout",
    "Material": "stats.material",
    "Method": "methods.method",
    "MixSettings": "sounds.mix",
    "Moments": "stats.plan",
    "Pilot": "stats.pilot",
    "Results": "evaluation.results",
    "Sampler": "tasks.sampler",
    "ShapesWorld": "worlds.shapes",
    "ShotproofError": "errors",
    "SoundsWorld": "worlds.sounds",
    "TaskSet": "tasks.taskset",
    "Thresholds": "sounds.quality",
    "check_catalog": "catalog.check",
    "check_tasks": "tasks.check",
    "compare": "stats.compare",
    "compare_results": "report.comparison",
    "context_statistics": "catalog.context_statistics",
    "detect": "attributes.detector",
    "detectors": "attributes.detector",
    "encode": "features.encoder",
    "encoders": "features.encoder",
    "estimate_moments": "stats.plan",
    "evaluate": "evaluation.evaluate",
    "explain": "explanation.explain",
    "feature_change": "geometry.change",
    "feature_distances": "geometry.distribution",
    "layouts": "catalog.layout",
    "measure_similarity": "similarity.similarity",
    "methods": "methods.method",
    "mix": "sounds.mix",
    "plan": "stats.plan",
    "read_clip": "sounds.clip",
    "read_layout": "catalog.layout",
    "read_mapping": "sounds.mapping",
    "run": "run",
    "sample": "tasks.sampler",
    "sample_context": "tasks.context_sets",
    "samplers": "tasks.sampler",
    "tasks_needed": "stats.power",
    "transfer": "stats.transfer",
    "transform": "features.transforms",
    "transforms": "features.transforms",
    "write_report": "report.page",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shotproof' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"shotproof.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
