"""Layouts of data sets on disk: declarations of published ones, and general ones."""
