"""Heads that label each query by itself."""
