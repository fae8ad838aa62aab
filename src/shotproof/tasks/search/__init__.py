"""Searches for supports that are hard or easy for given queries."""
