"""Decoding of images and sounds, with limits."""
