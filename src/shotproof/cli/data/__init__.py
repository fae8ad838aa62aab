"""Commands that create data: catalogs, mixtures, attributes, features, models."""
