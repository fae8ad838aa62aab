"""What reads results: counts, metrics, where they come from, answers."""
