"""Layouts of data sets on disk: those of published data sets, and general ones."""
