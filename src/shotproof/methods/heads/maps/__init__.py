"""Heads on local maps."""
