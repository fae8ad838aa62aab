"""Re-evaluation on other tasks or on halves of the data, for the intervals that need it."""
