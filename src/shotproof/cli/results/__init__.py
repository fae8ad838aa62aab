"""Commands on results: compare, view, gate."""
