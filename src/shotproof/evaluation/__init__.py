"""Evaluation of methods on tasks: it gives counts, from which all metrics are computed."""
