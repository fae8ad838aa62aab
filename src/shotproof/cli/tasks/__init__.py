"""Commands for tasks: sample, evaluate."""
