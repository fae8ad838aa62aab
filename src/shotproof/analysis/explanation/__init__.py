"""Explanation of why tasks are hard, attribute by attribute."""
