"""Attributes: the words of each item, and the detectors that determine them."""
