"""How things are computed, without a say in what comes out: engine, workers, device, cache, progress."""
