"""Evaluation of methods on tasks: it yields counts, from which all metrics are computed."""
