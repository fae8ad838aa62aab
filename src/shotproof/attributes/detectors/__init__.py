"""Detectors of attributes, one per file, and their base classes."""
