"""The sections of docs/reproduction.md that are derived from results: one file per paper."""
