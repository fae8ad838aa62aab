"""Tasks times methods give counts; metrics are computed from counts alone."""

from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.results import Results

__all__ = ["Results", "evaluate"]
