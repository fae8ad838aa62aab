"""Verification of results and cards: against themselves, their task sets, and features or a model."""
