"""Analyses of results and features beyond comparisons: why tasks are hard, for which encoders, what contexts change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.analysis.context_effect import feature_change as feature_change
    from shotproof.analysis.null_check import check_null as check_null
    from shotproof.analysis.projection import project_task as project_task
    from shotproof.analysis.set_distances import feature_distances as feature_distances
    from shotproof.analysis.similarity import measure_similarity as measure_similarity
    from shotproof.analysis.transfer_tables import transfer as transfer
    from shotproof.attributes.statistics import detection_accuracy as detection_accuracy
    from shotproof.catalog.catalog_check import check_catalog as check_catalog
    from shotproof.catalog.contexts import context_statistics as context_statistics
    from shotproof.comparison.stages import stage_curves as stage_curves
    from shotproof.features.encoders.staged import encode_stages as encode_stages
    from shotproof.tasks.task_check import check_tasks as check_tasks

HOMES = {
    "check_catalog": "catalog.catalog_check",
    "check_null": "analysis.null_check",
    "check_tasks": "tasks.task_check",
    "context_statistics": "catalog.contexts",
    "detection_accuracy": "attributes.statistics",
    "encode_stages": "features.encoders.staged",
    "feature_change": "analysis.context_effect",
    "feature_distances": "analysis.set_distances",
    "measure_similarity": "analysis.similarity",
    "project_task": "analysis.projection",
    "stage_curves": "comparison.stages",
    "transfer": "analysis.transfer_tables",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
