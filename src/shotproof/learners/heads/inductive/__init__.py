"""Heads that classify each query independently of the others."""
