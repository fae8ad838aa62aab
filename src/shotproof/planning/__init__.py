"""How many tasks and queries an experiment needs, before or after the first results."""
