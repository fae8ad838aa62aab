"""Synthetic data with a known truth: the instrument's calibration, and the demo."""

from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld

__all__ = ["DialEncoder", "ShapesWorld"]
