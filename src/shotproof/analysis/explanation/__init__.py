"""Why tasks are hard, attribute by attribute."""
