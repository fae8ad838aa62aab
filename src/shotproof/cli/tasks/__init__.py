"""Commands on tasks: sample, check, evaluate."""
