"""One file per layout of a data set on disk."""
