"""Faults: commands that are killed, or that the system refuses something: `python -m benchmarks.faults`."""
