"""Training: from a catalog and an objective to a model."""
