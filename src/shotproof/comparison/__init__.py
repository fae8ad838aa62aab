"""Comparisons, cards, gates and leaderboards, with their sentences, tables and plots."""
