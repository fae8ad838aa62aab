"""What happens to a command that is killed, or that the system refuses something: `python -m benchmarks.faults`."""
