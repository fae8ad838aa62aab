"""Whole experiments: from one file to a report."""
