"""Searches for the supports that are hardest for given queries."""
