"""Sounds: reading, loudness, mixing, and what can be measured of a mixture."""
