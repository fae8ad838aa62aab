"""What exists: the table of items, and one file for each layout on disk."""

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, layouts, read_layout

__all__ = ["Catalog", "Layout", "layouts", "read_layout"]
