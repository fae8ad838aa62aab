"""Commands on tasks: sample, evaluate."""
