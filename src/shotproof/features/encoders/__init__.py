"""Encoders, one per file, and their base classes."""
