"""The task set and its file, the check of its constraints, and one file for each sampler."""
