"""Heads on frozen features."""
