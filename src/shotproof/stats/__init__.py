"""Intervals that name what they cover, and paired comparisons."""
