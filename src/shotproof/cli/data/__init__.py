"""Commands that make data: catalogs, mixtures, attributes, features, models."""
