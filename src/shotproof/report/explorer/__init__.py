"""Explorer of all tasks of a run in a browser, served or as static files."""
