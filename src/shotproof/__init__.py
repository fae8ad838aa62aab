"""Shotproof stress-tests few-shot classifiers.

    data on disk -> Catalog -> Attributes -> Tasks -> Results -> Comparison -> Report
                       \\-> Features (encoder) --------^

A study holds all of these, and computes each once:

    import shotproof as sp

    study = sp.Study("birds/", encoder="lite0")
    study.evaluate(["ncc", "logistic"], on=["random", "fewstab"])
    study.verdict()
    study.report("report.html")

Synthetic data is in `sp.worlds`, mixing of sounds in `sp.sounds`, cutting of images in `sp.masks`, planning of
experiments in `sp.planning`, and further analyses of results and features in `sp.analysis`. The folders follow this
flow, and each imports only from those below; CONTRIBUTING.md lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof import analysis as analysis
from shotproof import masks as masks
from shotproof import planning as planning
from shotproof import sounds as sounds
from shotproof import worlds as worlds
from shotproof.core.declared import declared
from shotproof.core.public_names import public_names
from shotproof.version import __version__ as __version__

if TYPE_CHECKING:
    from shotproof.analysis.explanation.explain import explain as explain
    from shotproof.attributes.attributes import Attributes as Attributes
    from shotproof.attributes.detector import Detector as Detector
    from shotproof.attributes.detector import detect as detect
    from shotproof.attributes.detector import detectors as detectors
    from shotproof.catalog.catalog import Catalog as Catalog
    from shotproof.catalog.layout import Layout as Layout
    from shotproof.catalog.layout import layouts as layouts
    from shotproof.catalog.layout import read_layout as read_layout
    from shotproof.comparison.card import Card as Card
    from shotproof.comparison.comparison import Comparison as Comparison
    from shotproof.comparison.gate import gate as gate
    from shotproof.core.errors import InputError as InputError
    from shotproof.core.errors import ShotproofError as ShotproofError
    from shotproof.core.options import option as option
    from shotproof.core.runtime.runtime import Runtime as Runtime
    from shotproof.core.runtime.runtime import runtime as runtime
    from shotproof.cures.remedy import Remedy as Remedy
    from shotproof.cures.remedy import remedies as remedies
    from shotproof.evaluation.evaluate import evaluate as evaluate
    from shotproof.features.encoder import Encoder as Encoder
    from shotproof.features.encoder import encoders as encoders
    from shotproof.features.features import Features as Features
    from shotproof.features.transforms import Transform as Transform
    from shotproof.features.transforms import transform as transform
    from shotproof.features.transforms import transforms as transforms
    from shotproof.learners.adaptation.adaptation import Adaptation as Adaptation
    from shotproof.learners.items import ItemsMethod as ItemsMethod
    from shotproof.learners.method import Method as Method
    from shotproof.learners.method import methods as methods
    from shotproof.masks.mix import mix as mix
    from shotproof.models.backbone import Backbone as Backbone
    from shotproof.models.backbone import backbones as backbones
    from shotproof.models.model import Model as Model
    from shotproof.models.objective import Objective as Objective
    from shotproof.models.objective import objectives as objectives
    from shotproof.pipeline.bundle.write import bundle as bundle
    from shotproof.pipeline.diagnosis import doctor as doctor
    from shotproof.pipeline.encode_tasks import encode as encode
    from shotproof.pipeline.explorer import view as view
    from shotproof.pipeline.leaderboard_files import leaderboard as leaderboard
    from shotproof.pipeline.profile.profile import profile as profile
    from shotproof.pipeline.read import read as read
    from shotproof.pipeline.study import Study as Study
    from shotproof.pipeline.study import compare as compare
    from shotproof.pipeline.study import cure as cure
    from shotproof.pipeline.study import run as run
    from shotproof.pipeline.verify import verify as verify
    from shotproof.results.results import Results as Results
    from shotproof.tasks.sampler import Sampler as Sampler
    from shotproof.tasks.sampler import sample as sample
    from shotproof.tasks.sampler import samplers as samplers
    from shotproof.tasks.taskset import TaskSet as TaskSet
    from shotproof.training.train import train as train

HOMES = {
    # objects
    "Study": "pipeline.study",
    "Catalog": "catalog.catalog",
    "Attributes": "attributes.attributes",
    "TaskSet": "tasks.taskset",
    "Features": "features.features",
    "Model": "models.model",
    "Results": "results.results",
    "Comparison": "comparison.comparison",
    "Card": "comparison.card",
    # functions, in the order of the commands
    "read": "pipeline.read",
    "run": "pipeline.study",
    "profile": "pipeline.profile.profile",
    "cure": "pipeline.study",
    "doctor": "pipeline.diagnosis",
    "read_layout": "catalog.layout",
    "mix": "masks.mix",
    "detect": "attributes.detector",
    "encode": "pipeline.encode_tasks",
    "transform": "features.transforms",
    "train": "training.train",
    "sample": "tasks.sampler",
    "evaluate": "evaluation.evaluate",
    "compare": "pipeline.study",
    "explain": "analysis.explanation.explain",
    "view": "pipeline.explorer",
    "gate": "comparison.gate",
    "bundle": "pipeline.bundle.write",
    "verify": "pipeline.verify",
    "leaderboard": "pipeline.leaderboard_files",
    # registries
    "layouts": "catalog.layout",
    "detectors": "attributes.detector",
    "encoders": "features.encoder",
    "transforms": "features.transforms",
    "samplers": "tasks.sampler",
    "methods": "learners.method",
    "backbones": "models.backbone",
    "objectives": "models.objective",
    "remedies": "cures.remedy",
    # base classes of components, and their options
    "Layout": "catalog.layout",
    "Detector": "attributes.detector",
    "Encoder": "features.encoder",
    "Transform": "features.transforms",
    "Sampler": "tasks.sampler",
    "Method": "learners.method",
    "ItemsMethod": "learners.items",
    "Adaptation": "learners.adaptation.adaptation",
    "Backbone": "models.backbone",
    "Objective": "models.objective",
    "Remedy": "cures.remedy",
    "option": "core.options",
    # runtime and errors
    "Runtime": "core.runtime.runtime",
    "runtime": "core.runtime.runtime",
    "ShotproofError": "core.errors",
    "InputError": "core.errors",
}

# Components of layers above their registry, which must not import them.
declared.update(
    encoder={"dial": "shotproof.worlds.dial:DialEncoder", "model": "shotproof.models.model_encoder:ModelEncoder"},
    sampler={"filter": "shotproof.evaluation.filter:Filter"},
)

if not TYPE_CHECKING:
    MODULES = ("analysis", "masks", "planning", "sounds", "worlds")
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES, ("__version__", *MODULES))
