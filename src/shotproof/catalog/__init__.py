"""Catalog: the table of items, and the layouts of data sets on disk."""
