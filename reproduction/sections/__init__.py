"""Sections of docs/results/reproduction*.md that are derived from results: one file per paper."""
