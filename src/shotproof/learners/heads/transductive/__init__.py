"""Heads that see all queries of a task at once."""
