"""Bundles: a benchmark as one file that anyone can run on their own encoder."""
