"""Shotproof stress-tests few-shot classifiers.

    data on disk -> Catalog -> Attributes -> Tasks -> Results -> Comparison -> Report
                       \\-> Features (encoder) --------^

The folders follow the flow, and imports go down only: `cli`, `pipeline`, `report`, `analysis`, `stats`, `evaluation`
and `training`, `learners` and `tasks`, `worlds`, `sounds`, `models`, `features`, `attributes`, `catalog`, `media`
and `functional`, `core`.

    import shotproof as sp

    catalog = sp.read_layout("birds/", "folder")
    attributes = sp.detect(catalog, "photometric")
    features = sp.encode(catalog, "lite0")
    random = sp.sample(catalog, "random", split="test", tasks=600, seed=0)
    biased = sp.sample(catalog, "fewstab", attributes=attributes, split="test", tasks=600, seed=0)
    results = [sp.evaluate(tasks, features, ["ncc", "logistic"]) for tasks in (random, biased)]
    study = sp.Study.of([*results, random, biased, catalog, attributes, features])
    study.compare().to_pandas("gaps")
    study.report("report.html")
"""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import TYPE_CHECKING, Any

from shotproof.core.declared import declared
from shotproof.version import __version__

if TYPE_CHECKING:
    from shotproof.analysis.explanation.explain import explain as explain
    from shotproof.analysis.feature_change import feature_change as feature_change
    from shotproof.analysis.feature_distances import feature_distances as feature_distances
    from shotproof.analysis.null_check import check_null as check_null
    from shotproof.analysis.projection import project_task as project_task
    from shotproof.analysis.similarity import measure_similarity as measure_similarity
    from shotproof.analysis.transfer import transfer as transfer
    from shotproof.attributes.attributes import Attributes as Attributes
    from shotproof.attributes.detector import Detector as Detector
    from shotproof.attributes.detector import detect as detect
    from shotproof.attributes.detector import detectors as detectors
    from shotproof.attributes.statistics import detection_accuracy as detection_accuracy
    from shotproof.catalog.catalog import Catalog as Catalog
    from shotproof.catalog.catalog_check import check_catalog as check_catalog
    from shotproof.catalog.contexts import context_statistics as context_statistics
    from shotproof.catalog.layout import Layout as Layout
    from shotproof.catalog.layout import layouts as layouts
    from shotproof.catalog.layout import read_layout as read_layout
    from shotproof.comparison.card import Card as Card
    from shotproof.comparison.comparison import Comparison as Comparison
    from shotproof.comparison.gate import GateLimits as GateLimits
    from shotproof.comparison.gate import Limits as Limits
    from shotproof.comparison.gate import gate as gate
    from shotproof.comparison.stages import stage_curves as stage_curves
    from shotproof.core.errors import ShotproofError as ShotproofError
    from shotproof.core.options import option as option
    from shotproof.core.runtime.runtime import Runtime as Runtime
    from shotproof.core.runtime.runtime import runtime as runtime
    from shotproof.evaluation.evaluate import evaluate as evaluate
    from shotproof.features.encoder import Encoder as Encoder
    from shotproof.features.encoder import encode as encode
    from shotproof.features.encoder import encoders as encoders
    from shotproof.features.encoders.staged import encode_stages as encode_stages
    from shotproof.features.feature_parts import encode_parts as encode_parts
    from shotproof.features.features import Features as Features
    from shotproof.features.transforms import Transform as Transform
    from shotproof.features.transforms import transform as transform
    from shotproof.features.transforms import transforms as transforms
    from shotproof.learners.adaptation.adaptation import Adaptation as Adaptation
    from shotproof.learners.items import ItemsMethod as ItemsMethod
    from shotproof.learners.items import ItemsTask as ItemsTask
    from shotproof.learners.method import Method as Method
    from shotproof.learners.method import methods as methods
    from shotproof.media.clip import read_clip as read_clip
    from shotproof.models.backbone import Backbone as Backbone
    from shotproof.models.backbone import backbones as backbones
    from shotproof.models.model import Model as Model
    from shotproof.models.objective import Objective as Objective
    from shotproof.models.objective import objectives as objectives
    from shotproof.pipeline.bundle.bundle import Bundle as Bundle
    from shotproof.pipeline.bundle.bundle_run import run_bundle as run_bundle
    from shotproof.pipeline.bundle.write import bundle as bundle
    from shotproof.pipeline.experiment import Experiment as Experiment
    from shotproof.pipeline.explorer import view as view
    from shotproof.pipeline.leaderboard_files import leaderboard as leaderboard
    from shotproof.pipeline.profile.profile import profile as profile
    from shotproof.pipeline.read import read as read
    from shotproof.pipeline.study import Study as Study
    from shotproof.pipeline.study import compare as compare
    from shotproof.pipeline.study import run as run
    from shotproof.pipeline.verify import verify as verify
    from shotproof.planning.pilot import Pilot as Pilot
    from shotproof.planning.plan import ScoreMoments as ScoreMoments
    from shotproof.planning.plan import estimate_moments as estimate_moments
    from shotproof.planning.plan import plan as plan
    from shotproof.planning.statistical_power import tasks_needed as tasks_needed
    from shotproof.results.results import Results as Results
    from shotproof.sounds.mapping import read_mapping as read_mapping
    from shotproof.sounds.mix import MixSettings as MixSettings
    from shotproof.sounds.mix import mix as mix
    from shotproof.sounds.quality import Thresholds as Thresholds
    from shotproof.tasks.context.context_sets import sample_context as sample_context
    from shotproof.tasks.sampler import Sampler as Sampler
    from shotproof.tasks.sampler import sample as sample
    from shotproof.tasks.sampler import samplers as samplers
    from shotproof.tasks.task_check import check_tasks as check_tasks
    from shotproof.tasks.taskset import TaskSet as TaskSet
    from shotproof.training.train import Trial as Trial
    from shotproof.training.train import train as train
    from shotproof.training.train import train_trials as train_trials
    from shotproof.worlds.context_world import ContextWorld as ContextWorld
    from shotproof.worlds.dial import DialEncoder as DialEncoder
    from shotproof.worlds.gaussian import GaussianWorld as GaussianWorld
    from shotproof.worlds.scenes import ScenesWorld as ScenesWorld
    from shotproof.worlds.shapes import ShapesWorld as ShapesWorld
    from shotproof.worlds.sounds import SoundsWorld as SoundsWorld

# Where each public name lives. Names are imported when first used, so that `import shotproof` stays light.
_HOME = {
    "Adaptation": "learners.adaptation.adaptation",
    "Attributes": "attributes.attributes",
    "Backbone": "models.backbone",
    "Bundle": "pipeline.bundle.bundle",
    "Card": "comparison.card",
    "Catalog": "catalog.catalog",
    "Comparison": "comparison.comparison",
    "ContextWorld": "worlds.context_world",
    "Detector": "attributes.detector",
    "DialEncoder": "worlds.dial",
    "Encoder": "features.encoder",
    "Experiment": "pipeline.experiment",
    "Features": "features.features",
    "GateLimits": "comparison.gate",
    "GaussianWorld": "worlds.gaussian",
    "ItemsMethod": "learners.items",
    "ItemsTask": "learners.items",
    "Layout": "catalog.layout",
    "Limits": "comparison.gate",
    "Method": "learners.method",
    "MixSettings": "sounds.mix",
    "Model": "models.model",
    "Objective": "models.objective",
    "ScoreMoments": "planning.plan",
    "Pilot": "planning.pilot",
    "Results": "results.results",
    "Runtime": "core.runtime.runtime",
    "Sampler": "tasks.sampler",
    "ScenesWorld": "worlds.scenes",
    "ShapesWorld": "worlds.shapes",
    "ShotproofError": "core.errors",
    "Study": "pipeline.study",
    "SoundsWorld": "worlds.sounds",
    "TaskSet": "tasks.taskset",
    "Thresholds": "sounds.quality",
    "Transform": "features.transforms",
    "backbones": "models.backbone",
    "bundle": "pipeline.bundle.write",
    "verify": "pipeline.verify",
    "check_catalog": "catalog.catalog_check",
    "check_null": "analysis.null_check",
    "check_tasks": "tasks.task_check",
    "compare": "pipeline.study",
    "context_statistics": "catalog.contexts",
    "detect": "attributes.detector",
    "detection_accuracy": "attributes.statistics",
    "detectors": "attributes.detector",
    "encode": "features.encoder",
    "encode_parts": "features.feature_parts",
    "encode_stages": "features.encoders.staged",
    "encoders": "features.encoder",
    "estimate_moments": "planning.plan",
    "evaluate": "evaluation.evaluate",
    "explain": "analysis.explanation.explain",
    "feature_change": "analysis.feature_change",
    "feature_distances": "analysis.feature_distances",
    "gate": "comparison.gate",
    "layouts": "catalog.layout",
    "leaderboard": "pipeline.leaderboard_files",
    "measure_similarity": "analysis.similarity",
    "methods": "learners.method",
    "mix": "sounds.mix",
    "objectives": "models.objective",
    "option": "core.options",
    "plan": "planning.plan",
    "profile": "pipeline.profile.profile",
    "project_task": "analysis.projection",
    "read": "pipeline.read",
    "read_clip": "media.clip",
    "read_layout": "catalog.layout",
    "read_mapping": "sounds.mapping",
    "run": "pipeline.study",
    "run_bundle": "pipeline.bundle.bundle_run",
    "runtime": "core.runtime.runtime",
    "sample": "tasks.sampler",
    "sample_context": "tasks.context.context_sets",
    "samplers": "tasks.sampler",
    "stage_curves": "comparison.stages",
    "tasks_needed": "planning.statistical_power",
    "train": "training.train",
    "Trial": "training.train",
    "train_trials": "training.train",
    "transfer": "analysis.transfer",
    "transform": "features.transforms",
    "transforms": "features.transforms",
    "view": "pipeline.explorer",
}

# Components of layers above their registry, which may not name them itself.
declared.update(
    encoder={"dial": "shotproof.worlds.dial:DialEncoder", "model": "shotproof.models.model_encoder:ModelEncoder"},
    sampler={"filter": "shotproof.evaluation.filter:Filter"},
)

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shotproof' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"shotproof.{_HOME[name]}"), name)
    # What users pass is trusted, and what the library passes on from a file is not: they have wrappers of their own.
    from shotproof.core.registry import Registry
    from shotproof.core.trust import typed_by_user

    if isinstance(value, FunctionType):
        value = typed_by_user(value)
    elif isinstance(value, Registry):
        value = value.for_users()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
