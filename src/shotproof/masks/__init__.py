"""Masks of the foreground of images: cutters that make them, and the control of their quality."""
