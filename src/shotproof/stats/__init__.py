"""Intervals that name what they cover, paired comparisons, planning: arrays in, records out."""
