"""What numbers say: comparisons, cards, gates and leaderboards, and their words, tables and plots."""
