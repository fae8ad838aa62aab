"""Which words hold of which item, and one file for each detector."""

from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import Detector, detect, detectors

__all__ = ["Attributes", "Detector", "detect", "detectors"]
