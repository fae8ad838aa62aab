"""Heads that use all queries of a task at once."""
