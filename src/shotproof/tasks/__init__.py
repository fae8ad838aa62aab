"""Task sets and their files, the check of their constraints, and one file for each sampler."""
