"""Places, files, stores, archives and locks: where bytes lie and how they are written whole."""
