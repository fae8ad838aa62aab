"""Runtime: engine, workers, devices, cache and progress. None of it affects results."""
