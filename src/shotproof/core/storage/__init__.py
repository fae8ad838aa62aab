"""Storage: paths, files, object stores, archives, locks and atomic writes."""
