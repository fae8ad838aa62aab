"""Steps of a run, which write its files."""
