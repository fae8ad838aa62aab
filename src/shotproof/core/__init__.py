"""Foundations of the package: errors, options, registries, records, random draws, files and the runtime."""
