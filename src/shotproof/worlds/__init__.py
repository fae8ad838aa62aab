"""Synthetic data with a known truth: the instrument's calibration, and the demo."""
