"""Commands for results: compare, view, gate."""
